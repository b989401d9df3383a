/*
 * flatten.c - each sample as one row: (N, C, H, W) -> (N, C * H * W).
 */
#include "ops/rules.h"

static co_status flatten_shape(co_shape *out, const co_shape *in, const void *attr)
{
    int64_t features = 1;

    (void)attr;
    CO_TRY(rules_need_size(in, "input"));
    for (int i = 1; i < in->ndim; i++)
        features *= in->dim[i];
    *out = (co_shape){2, {in->dim[0], features}};
    return CO_OK;
}

static void flatten_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                         const void *attr)
{
    (void)in, (void)out_shape, (void)attr;
    *out = (co_op_work){0, 0, 0};
}

static void flatten_onnx(co_onnx *to, const co_shape *in, const co_shape *out, const void *attr)
{
    (void)in, (void)out, (void)attr;
    to->node(to, "Flatten", "", to->in);
    to->set_int(to, "axis", 1);
}

const co_op co_op_flatten = {
    .name = "flatten",
    .summary = "each sample as one row",
    .n_in = 1,
    .n_out = 1,
    .grad_in = 1,
    .shape = flatten_shape,
    .work = flatten_work,
    .write_onnx = flatten_onnx,
};
