/*
 * dropout.c - in training, drop random elements (dropout) or whole channels (dropout2d).
 */
#include "ops/rules.h"

static const co_key dropout_keys[] = {
    {.name = "p",
     .type = CO_KEY_REAL,
     .offset = offsetof(co_dropout_attr, p),
     .fallback = "0.5",
     .min = 0,
     .max = 1,
     .help = "probability of dropping"},
    CO_KEYS_END,
};

static co_status dropout2d_shape(co_shape *out, const co_shape *in, const void *attr)
{
    (void)attr;
    CO_TRY(rules_need_image(in));
    *out = *in;
    return CO_OK;
}

const co_op co_op_dropout = {
    .name = "dropout",
    .summary = "drop random elements in training",
    .keys = dropout_keys,
    .bare = "p",
    .attr_size = sizeof(co_dropout_attr),
    .along = CO_ALONG_NONE,
    .n_in = 1,
    .n_out = 1,
    .grad_in = 1,
    .shape = rules_shape_same,
    .receptive = rules_same_extent,
    .onnx = "Identity", /* no effect in inference */
};

const co_op co_op_dropout2d = {
    .name = "dropout2d",
    .summary = "drop random channels in training",
    .keys = dropout_keys,
    .bare = "p",
    .attr_size = sizeof(co_dropout_attr),
    .n_in = 1,
    .n_out = 1,
    .grad_in = 1,
    .shape = dropout2d_shape,
    .receptive = rules_same_extent,
    .onnx = "Identity",
};
