/*
 * first.c - the first position of each sequence.
 */
#include "ops/rules.h"

static co_status first_shape(co_shape *out, const co_shape *in, const void *attr)
{
    char text[RULES_SHAPE_TEXT];

    (void)attr;
    if (in->ndim != 3)
        return co_fail(CO_E_USAGE, "needs sequences of rows (N, T, F) but gets %s",
                       rules_format(text, in));
    *out = (co_shape){2, {in->dim[0], in->dim[2]}};
    return CO_OK;
}

static void first_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                       const void *attr)
{
    (void)in, (void)out_shape, (void)attr;
    *out = (co_op_work){0, 0, 0};
}

static void first_onnx(co_onnx *to, const co_shape *in, const co_shape *out, const void *attr)
{
    static const int64_t begin[1] = {0}, end[1] = {1};
    const int64_t rows[2] = {0, in->dim[2]};
    const char *x = to->node(to, "Slice", "/sequence",
                             (const char *[]){to->in[0], to->constant_ints(to, ".begin", begin, 1),
                                              to->constant_ints(to, ".end", end, 1),
                                              to->constant_ints(to, ".axis", end, 1), NULL});

    (void)out, (void)attr;
    to->node(to, "Reshape", "", (const char *[]){x, to->constant_ints(to, ".rows", rows, 2), NULL});
}

const co_op co_op_first = {
    .name = "first",
    .summary = "the first position of a sequence",
    .n_in = 1,
    .n_out = 1,
    .grad_in = 1,
    .shape = first_shape,
    .work = first_work,
    .write_onnx = first_onnx,
};
