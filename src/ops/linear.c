/*
 * linear.c - fully connected layer: every output is a weighted sum of every input of its row.
 */
#include "ops/rules.h"

static const co_key linear_keys[] = {
    {.name = "out",
     .type = CO_KEY_INT,
     .offset = offsetof(co_linear_attr, out),
     .min = 1,
     .max = RULES_MAX_CHANNELS,
     .help = "output features"},
    {.name = "bias",
     .type = CO_KEY_BOOL,
     .offset = offsetof(co_linear_attr, bias),
     .fallback = "true",
     .help = "add a trained constant to each output"},
    RULES_INIT_KEYS(co_linear_attr),
    CO_KEYS_END,
};

static co_status linear_shape(co_shape *out, const co_shape *in, const void *attr)
{
    const co_linear_attr *a = attr;
    co_shape weight;

    CO_TRY(rules_need_rows(in));
    weight = (co_shape){2, {a->out, in->dim[in->ndim - 1]}};
    CO_TRY(rules_need_size(&weight, "weight"));
    *out = *in;
    out->dim[in->ndim - 1] = a->out;
    return rules_need_size(out, "output");
}

static int linear_params(co_param_spec *out, const co_shape *in, const void *attr)
{
    const co_linear_attr *a = attr;
    const co_shape weight = {2, {a->out, in->dim[in->ndim - 1]}};

    return rules_init_params(out, &weight, a->bias, &a->init);
}

static void linear_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                        const void *attr)
{
    const double all = 2.0 * (double)co_shape_count(out_shape) * (double)in->dim[in->ndim - 1];

    (void)attr;
    *out = (co_op_work){all, all, all};
}

static void linear_onnx(co_onnx *to, const co_shape *in, const co_shape *out, const void *attr)
{
    static const int64_t swapped[2] = {1, 0};
    const co_linear_attr *a = attr;
    const char *weight, *product;

    (void)out;
    if (in->ndim == 2) {
        to->node(to, "Gemm", "", to->in);
        to->set_int(to, "transB", 1);
        return;
    }
    weight = to->node(to, "Transpose", "/weight", (const char *[]){to->in[1], NULL});
    to->set_ints(to, "perm", swapped, 2);
    product = to->node(to, "MatMul", a->bias ? "/product" : "",
                       (const char *[]){to->in[0], weight, NULL});
    if (a->bias)
        to->node(to, "Add", "", (const char *[]){product, to->in[2], NULL});
}

const co_op co_op_linear = {
    .name = "linear",
    .summary = "fully connected layer",
    .keys = linear_keys,
    .bare = "out",
    .attr_size = sizeof(co_linear_attr),
    .precision = CO_PRECISION_LOW,
    .along = CO_ALONG_NONE,
    .n_in = 1,
    .n_out = 1,
    .saves = CO_SAVES_IN,
    .grad_in = 1,
    .shape = linear_shape,
    .params = linear_params,
    .work = linear_work,
    .write_onnx = linear_onnx,
};
