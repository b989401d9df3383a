/*
 * class_token.c - puts a trained row in front of each sequence, in which attention gathers what the
 * sample is (Devlin et al., arXiv:1810.04805).
 */
#include "ops/rules.h"

static co_status class_token_shape(co_shape *out, const co_shape *in, const void *attr)
{
    char text[RULES_SHAPE_TEXT];

    (void)attr;
    if (in->ndim != 3)
        return co_fail(CO_E_USAGE, "needs sequences of rows (N, T, F) but gets %s",
                       rules_format(text, in));
    *out = *in;
    out->dim[1]++;
    return rules_need_size(out, "output");
}

static int class_token_params(co_param_spec *out, const co_shape *in, const void *attr)
{
    (void)attr;
    out[0] = (co_param_spec){"weight", {1, {in->dim[2]}}, CO_INIT_ZERO, 0, false};
    return 1;
}

static void class_token_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                             const void *attr)
{
    (void)out_shape, (void)attr;
    *out = (co_op_work){0, 0, (double)(in->dim[0] * in->dim[2])};
}

/* The row for each sample: its shape is known when there is a batch. */
static void class_token_onnx(co_onnx *to, const co_shape *in, const co_shape *out, const void *attr)
{
    static const int64_t first[1] = {0}, second[1] = {1};
    const int64_t row[2] = {1, in->dim[2]};
    const char *x = to->in[0], *n = to->node(to, "Shape", "/shape", (const char *[]){x, NULL});

    (void)out, (void)attr;
    n = to->node(to, "Slice", "/batch",
                 (const char *[]){n, to->constant_ints(to, ".begin", first, 1),
                                  to->constant_ints(to, ".end", second, 1), NULL});
    n = to->node(to, "Concat", "/sizes",
                 (const char *[]){n, to->constant_ints(to, ".row", row, 2), NULL});
    to->set_int(to, "axis", 0);
    n = to->node(to, "Expand", "/rows", (const char *[]){to->in[1], n, NULL});
    to->node(to, "Concat", "", (const char *[]){n, x, NULL});
    to->set_int(to, "axis", 1);
}

const co_op co_op_class_token = {
    .name = "class_token",
    .summary = "a trained row in front of each sequence",
    .n_in = 1,
    .n_out = 1,
    .grad_in = 1,
    .shape = class_token_shape,
    .params = class_token_params,
    .work = class_token_work,
    .write_onnx = class_token_onnx,
};
