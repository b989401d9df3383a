/*
 * rmsnorm.c - divide each row by the root of the mean of its squares, then scale its elements
 * (Zhang & Sennrich, arXiv:1910.07467).
 */
#include "ops/rules.h"

static const co_key rmsnorm_keys[] = {
    RULES_EPS_KEY(co_rmsnorm_attr),
    CO_KEYS_END,
};

static int rmsnorm_params(co_param_spec *out, const co_shape *in, const void *attr)
{
    (void)attr;
    out[0] = (co_param_spec){"weight", {1, {in->dim[in->ndim - 1]}}, CO_INIT_ONE, 0, false};
    return 1;
}

/* A square and its sum, two products; back: two products and sums, and those of the weight. */
static void rmsnorm_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                         const void *attr)
{
    const double n = (double)co_shape_count(in);

    (void)out_shape, (void)attr;
    *out = (co_op_work){4 * n, 4 * n, 2 * n};
}

static void rmsnorm_onnx(co_onnx *to, const co_shape *in, const co_shape *out, const void *attr)
{
    const co_rmsnorm_attr *a = attr;
    const char *y = rules_onnx_root_mean(to, to->in[0], a->eps);

    (void)in, (void)out;
    to->node(to, "Mul", "", (const char *[]){y, to->in[1], NULL});
}

const co_op co_op_rmsnorm = {
    .name = "rmsnorm",
    .summary = "divide each row by the root of the mean of its squares",
    .keys = rmsnorm_keys,
    .attr_size = sizeof(co_rmsnorm_attr),
    .is_norm = true,
    .along = CO_ALONG_NONE,
    .n_in = 1,
    .n_out = 1,
    .saves = CO_SAVES_IN,
    .grad_in = 1,
    .shape = rules_shape_rows,
    .params = rmsnorm_params,
    .work = rmsnorm_work,
    .write_onnx = rmsnorm_onnx,
};
