/*
 * gelu.c - the Gaussian error linear unit (Hendrycks & Gimpel, arXiv:1606.08415), exact.
 */
#include "ops/rules.h"

/* Product, error function (as ten), sum, two products; back: the same, exponential, sum. */
static void gelu_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                      const void *attr)
{
    const double n = (double)co_shape_count(in);

    (void)out_shape, (void)attr;
    *out = (co_op_work){14 * n, 28 * n, 0};
}

/* x (1 + erf(x sqrt(1/2))) / 2: opset 13 has no Gelu. */
static void gelu_onnx(co_onnx *to, const co_shape *in, const co_shape *out, const void *attr)
{
    const char *x = to->in[0], *root_half = rules_onnx_number(to, ".root_half", 0.70710678);
    const char *one = rules_onnx_number(to, ".one", 1), *half = rules_onnx_number(to, ".half", 0.5);
    const char *scaled = to->node(to, "Mul", "/scaled", (const char *[]){x, root_half, NULL});
    const char *erf = to->node(to, "Erf", "/erf", (const char *[]){scaled, NULL});
    const char *sum = to->node(to, "Add", "/sum", (const char *[]){erf, one, NULL});
    const char *twice = to->node(to, "Mul", "/twice", (const char *[]){x, sum, NULL});

    (void)in, (void)out, (void)attr;
    to->node(to, "Mul", "", (const char *[]){twice, half, NULL});
}

const co_op co_op_gelu = {
    .name = "gelu",
    .summary = "x times the probability that a standard normal number is below x",
    .n_in = 1,
    .n_out = 1,
    .saves = CO_SAVES_IN,
    .grad_in = 1,
    .shape = rules_shape_same,
    .work = gelu_work,
    .write_onnx = gelu_onnx,
};
