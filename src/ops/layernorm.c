/*
 * layernorm.c - normalise each row, then scale and shift its elements (Ba et al.,
 * arXiv:1607.06450).
 */
#include "ops/rules.h"

static const co_key layernorm_keys[] = {
    RULES_EPS_KEY(co_layernorm_attr),
    {.name = "bias",
     .type = CO_KEY_BOOL,
     .offset = offsetof(co_layernorm_attr, bias),
     .fallback = "true",
     .help = "add a trained constant to each element of a row"},
    CO_KEYS_END,
};

static int layernorm_params(co_param_spec *out, const co_shape *in, const void *attr)
{
    const co_layernorm_attr *a = attr;
    const co_shape row = {1, {in->dim[in->ndim - 1]}};

    out[0] = (co_param_spec){"weight", row, CO_INIT_ONE, 0, false};
    out[1] = (co_param_spec){"bias", row, CO_INIT_ZERO, 0, false};
    return a->bias ? 2 : 1;
}

/* As batchnorm. */
static void layernorm_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                           const void *attr)
{
    const double n = (double)co_shape_count(in);

    (void)out_shape, (void)attr;
    *out = (co_op_work){5 * n, 4 * n, 3 * n};
}

/* Opset 13 has no LayerNormalization. */
static void layernorm_onnx(co_onnx *to, const co_shape *in, const co_shape *out, const void *attr)
{
    static const int64_t last[1] = {-1};
    const co_layernorm_attr *a = attr;
    const char *x = to->in[0], *mean, *centred, *y;

    (void)in, (void)out;
    mean = to->node(to, "ReduceMean", "/mean", (const char *[]){x, NULL});
    to->set_ints(to, "axes", last, 1);
    centred = to->node(to, "Sub", "/centred", (const char *[]){x, mean, NULL});
    y = rules_onnx_root_mean(to, centred, a->eps);
    y = to->node(to, "Mul", a->bias ? "/scaled" : "", (const char *[]){y, to->in[1], NULL});
    if (a->bias)
        to->node(to, "Add", "", (const char *[]){y, to->in[2], NULL});
}

const co_op co_op_layernorm = {
    .name = "layernorm",
    .summary = "normalise each row over its elements",
    .keys = layernorm_keys,
    .attr_size = sizeof(co_layernorm_attr),
    .is_norm = true,
    .along = CO_ALONG_NONE,
    .n_in = 1,
    .n_out = 1,
    .saves = CO_SAVES_IN,
    .grad_in = 1,
    .shape = rules_shape_rows,
    .params = layernorm_params,
    .work = layernorm_work,
    .write_onnx = layernorm_onnx,
};
