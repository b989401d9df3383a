/*
 * registry.c - every op by name.
 */
#include "ops/ops.h"

const co_op *const co_ops[] = {
#define OP(name) &co_op_##name,
#include "ops/list.h"
#undef OP
    NULL,
};

const co_plugins co_op_plugins = {"layer", "layers", co_ops, 0, NULL};

CO_PLUGIN_CHECK(co_op, attr_size);
