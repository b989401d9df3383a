/*
 * gelu.c - the Gaussian error linear unit (Hendrycks & Gimpel, arXiv:1606.08415).
 */
#include "ops/rules.h"

static const char *const gelu_forms[] = {"none", "tanh", NULL};

static const co_key gelu_keys[] = {
    {.name = "approximate",
     .type = CO_KEY_CHOICE,
     .offset = offsetof(co_gelu_attr, approximate),
     .fallback = "none",
     .choices = gelu_forms,
     .help = "none: the normal distribution; tanh: nearly the same by tanh, as GPT-2 has it"},
    CO_KEYS_END,
};

/* Product, error function (as ten), sum, two products; back: the same, exponential, sum. */
static void gelu_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                      const void *attr)
{
    const double n = (double)co_shape_count(in);

    (void)out_shape, (void)attr;
    *out = (co_op_work){14 * n, 28 * n, 0};
}

static const char *gelu_onnx_erf(co_onnx *to, const char *x)
{
    const char *root_half = rules_onnx_number(to, ".root_half", 0.70710678);

    x = to->node(to, "Mul", "/scaled", (const char *[]){x, root_half, NULL});
    return to->node(to, "Erf", "/erf", (const char *[]){x, NULL});
}

/* x^3 as x^2 x. */
static const char *gelu_onnx_tanh(co_onnx *to, const char *x)
{
    const char *cube = rules_onnx_number(to, ".cube", 0.044715);
    const char *slope = rules_onnx_number(to, ".slope", 0.79788456);
    const char *y = to->node(to, "Mul", "/square", (const char *[]){x, x, NULL});

    y = to->node(to, "Mul", "/cube", (const char *[]){y, x, NULL});
    y = to->node(to, "Mul", "/part", (const char *[]){y, cube, NULL});
    y = to->node(to, "Add", "/both", (const char *[]){x, y, NULL});
    y = to->node(to, "Mul", "/scaled", (const char *[]){y, slope, NULL});
    return to->node(to, "Tanh", "/tanh", (const char *[]){y, NULL});
}

/* x (1 + erf(x sqrt(1/2))) / 2, or with tanh: opset 13 has no Gelu. */
static void gelu_onnx(co_onnx *to, const co_shape *in, const co_shape *out, const void *attr)
{
    const co_gelu_attr *a = attr;
    const char *x = to->in[0];
    const char *one = rules_onnx_number(to, ".one", 1), *half = rules_onnx_number(to, ".half", 0.5);
    const char *y = a->approximate == CO_GELU_EXACT ? gelu_onnx_erf(to, x) : gelu_onnx_tanh(to, x);
    const char *sum = to->node(to, "Add", "/sum", (const char *[]){y, one, NULL});
    const char *twice = to->node(to, "Mul", "/twice", (const char *[]){x, sum, NULL});

    (void)in, (void)out;
    to->node(to, "Mul", "", (const char *[]){twice, half, NULL});
}

const co_op co_op_gelu = {
    .name = "gelu",
    .summary = "x times the probability that a standard normal number is below x",
    .keys = gelu_keys,
    .attr_size = sizeof(co_gelu_attr),
    .along = CO_ALONG_NONE,
    .n_in = 1,
    .n_out = 1,
    .saves = CO_SAVES_IN,
    .grad_in = 1,
    .pointwise = true,
    .shape = rules_shape_same,
    .receptive = rules_same_extent,
    .work = gelu_work,
    .write_onnx = gelu_onnx,
};
