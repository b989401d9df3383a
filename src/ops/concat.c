/*
 * concat.c - rows of three sequences, one after the other: queries, keys and values for attention.
 */
#include "ops/rules.h"

static co_status concat_shape(co_shape *out, const co_shape *in, const void *attr)
{
    char a[RULES_SHAPE_TEXT], b[RULES_SHAPE_TEXT], c[RULES_SHAPE_TEXT];
    bool fits = in[0].ndim == 3;

    (void)attr;
    for (int i = 1; i < 3; i++)
        fits = fits && in[i].ndim == 3 && in[i].dim[1] == in[0].dim[1];
    if (!fits)
        return co_fail(CO_E_USAGE,
                       "cannot put the rows of %s, %s and %s after each other: all need as many "
                       "positions (N, T, F)",
                       rules_format(a, &in[0]), rules_format(b, &in[1]), rules_format(c, &in[2]));
    *out = in[0];
    out->dim[2] += in[1].dim[2] + in[2].dim[2];
    return rules_need_size(out, "output");
}

static void concat_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                        const void *attr)
{
    (void)in, (void)out_shape, (void)attr;
    *out = (co_op_work){0, 0, 0};
}

static void concat_onnx(co_onnx *to, const co_shape *in, const co_shape *out, const void *attr)
{
    (void)in, (void)out, (void)attr;
    to->node(to, "Concat", "", to->in);
    to->set_int(to, "axis", 2);
}

const co_op co_op_concat = {
    .name = "concat",
    .summary = "rows of three sequences, one after the other",
    .along = CO_ALONG_NONE,
    .n_in = 3,
    .n_out = 1,
    .grad_in = 1 | 2 | 4,
    .shape = concat_shape,
    .work = concat_work,
    .write_onnx = concat_onnx,
};
