/*
 * rules.c - the checks that several ops share.
 */
#include "ops/rules.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Elements of one sample or parameter: with a batch of 2^20 and 4 bytes each, still an int64. */
#define RULES_MAX_COUNT (INT64_C(1) << 40)

char *rules_format(char out[RULES_SHAPE_TEXT], const co_shape *shape)
{
    int used = snprintf(out, RULES_SHAPE_TEXT, "(N");

    for (int i = 1; i < shape->ndim; i++)
        used += snprintf(out + used, RULES_SHAPE_TEXT - (size_t)used, ", %" PRId64, shape->dim[i]);
    snprintf(out + used, RULES_SHAPE_TEXT - (size_t)used, ")");
    return out;
}

co_status rules_pair(int64_t out[2], const co_ints *list, const char *key, const int64_t *fallback)
{
    if (list->n > 2)
        return co_fail(CO_E_USAGE, "%s takes one number or [height, width], not %zu numbers", key,
                       list->n);
    if (list->n == 0 && !fallback)
        return co_fail(CO_E_USAGE, "%s is an empty list; give one number or [height, width]", key);
    for (size_t i = 0; i < 2; i++)
        out[i] = list->n ? list->v[list->n == 2 ? i : 0] : fallback[i];
    return CO_OK;
}

co_status rules_need_image(const co_shape *in)
{
    char text[RULES_SHAPE_TEXT];

    if (in->ndim != 4)
        return co_fail(CO_E_USAGE, "needs images (N, C, H, W) but gets %s; put it before flatten",
                       rules_format(text, in));
    return CO_OK;
}

co_status rules_need_matrix(const co_shape *in)
{
    char text[RULES_SHAPE_TEXT];

    if (in->ndim != 2)
        return co_fail(CO_E_USAGE, "needs rows (N, F) but gets %s; put flatten in front of it",
                       rules_format(text, in));
    return CO_OK;
}

co_status rules_need_rows(const co_shape *in)
{
    char text[RULES_SHAPE_TEXT];

    if (in->ndim != 2 && in->ndim != 3)
        return co_fail(CO_E_USAGE,
                       "needs rows (N, F) or sequences of rows (N, T, F) but gets %s; put flatten "
                       "in front of it",
                       rules_format(text, in));
    return CO_OK;
}

co_status rules_shape_rows(co_shape *out, const co_shape *in, const void *attr)
{
    CO_TRY(rules_need_rows(in));
    return rules_shape_same(out, in, attr);
}

co_status rules_need_size(const co_shape *shape, const char *what)
{
    int64_t count = 1;

    for (int i = 0; i < shape->ndim; i++)
        if (__builtin_mul_overflow(count, shape->dim[i], &count) || count > RULES_MAX_COUNT)
            return co_fail(CO_E_USAGE, "its %s would have more than 2^40 elements; make it smaller",
                           what);
    return CO_OK;
}

co_status rules_count_windows(int64_t *out, int64_t in, const rules_window *window, char axis)
{
    int64_t extent = window->dilation * (window->kernel - 1) + 1;
    int64_t padded = in + 2 * window->padding;

    if (extent > padded)
        return co_fail(CO_E_USAGE,
                       "a kernel that spans %" PRId64 " does not fit the %s of %" PRId64
                       " with %" PRId64 " of padding on both sides",
                       extent, axis == 'h' ? "height" : "width", in, window->padding);
    *out = (padded - extent) / window->stride + 1;
    return CO_OK;
}

co_status rules_check_pool(void *attr)
{
    static const int64_t none[2] = {0, 0};
    co_pool_attr *a = attr;

    CO_TRY(rules_pair(a->k, &a->kernel, "kernel", NULL));
    CO_TRY(rules_pair(a->s, &a->stride, "stride", a->k));
    CO_TRY(rules_pair(a->p, &a->padding, "padding", none));
    /* Else a window could be in the padding alone, with nothing to take the maximum of. */
    for (int i = 0; i < 2; i++)
        if (a->p[i] > a->k[i] / 2)
            return co_fail(CO_E_USAGE,
                           "padding %" PRId64 " is more than half of the kernel's %" PRId64,
                           a->p[i], a->k[i]);
    return CO_OK;
}

co_status rules_shape_pool(co_shape *out, const co_shape *in, const void *attr)
{
    const co_pool_attr *a = attr;

    CO_TRY(rules_need_image(in));
    *out = *in;
    for (int i = 0; i < 2; i++) {
        const rules_window window = {a->k[i], a->s[i], a->p[i], 1};

        CO_TRY(rules_count_windows(&out->dim[2 + i], in->dim[2 + i], &window, "hw"[i]));
    }
    return rules_need_size(out, "output");
}

co_extent rules_same_extent(co_extent out, const void *attr)
{
    (void)attr;
    return out;
}

co_extent rules_pool_extent(co_extent out, const void *attr)
{
    const co_pool_attr *a = attr;

    return (co_extent){(out.rows - 1) * a->s[0] + a->k[0] - a->p[0],
                       (out.columns - 1) * a->s[1] + a->k[1] - a->p[1]};
}

/* (He et al., arXiv:1502.01852) for the two that are called kaiming; the default is theirs with a
   negative slope of sqrt(5), which PyTorch starts layers with. */
enum {
    WEIGHT_DEFAULT,
    WEIGHT_KAIMING_NORMAL,
    WEIGHT_KAIMING_UNIFORM,
    WEIGHT_NORMAL,
    WEIGHT_XAVIER
};
enum { BIAS_DEFAULT, BIAS_ZERO, BIAS_KAIMING_UNIFORM };
const char *const rules_weight_inits[] = {"default", "kaiming_normal", "kaiming_uniform",
                                          "normal",  "xavier_uniform", NULL};
const char *const rules_bias_inits[] = {"default", "zero", "kaiming_uniform", NULL};

int rules_init_params(co_param_spec *out, const co_shape *weight, bool bias,
                      const co_init_attr *init)
{
    const double outputs = (double)weight->dim[0], count = (double)co_shape_count(weight);
    const double fan_in = count / outputs, fan_out = count / (double)weight->dim[1];
    const double weight_scale[] = {
        [WEIGHT_DEFAULT] = 1 / sqrt(fan_in),
        [WEIGHT_KAIMING_NORMAL] = sqrt(2 / fan_out),
        [WEIGHT_KAIMING_UNIFORM] = sqrt(6 / fan_in),
        [WEIGHT_NORMAL] = init->std,
        [WEIGHT_XAVIER] = sqrt(6 / (fan_in + fan_out)),
    };
    const double bias_scale[] = {
        [BIAS_DEFAULT] = 1 / sqrt(fan_in),
        [BIAS_ZERO] = 0,
        [BIAS_KAIMING_UNIFORM] = sqrt(6 / outputs),
    };
    const bool normal = init->weight == WEIGHT_KAIMING_NORMAL || init->weight == WEIGHT_NORMAL;

    out[0] = (co_param_spec){"weight", *weight, normal ? CO_INIT_NORMAL : CO_INIT_UNIFORM,
                             weight_scale[init->weight], false};
    out[1] = (co_param_spec){"bias",
                             {1, {weight->dim[0]}},
                             init->bias == BIAS_ZERO ? CO_INIT_ZERO : CO_INIT_UNIFORM,
                             bias_scale[init->bias],
                             false};
    return bias ? 2 : 1;
}

co_status rules_shape_loss(co_shape *out, const co_shape *in, const void *attr)
{
    (void)attr;
    CO_TRY(rules_need_matrix(&in[0]));
    if (in[1].ndim != 1)
        return co_fail(CO_E_USAGE, "needs one label for each sample as its second input");
    *out = in[1];
    return CO_OK;
}

co_status rules_shape_values_loss(co_shape *out, const co_shape *in, const void *attr)
{
    char text[RULES_SHAPE_TEXT], target[RULES_SHAPE_TEXT];

    (void)attr;
    CO_TRY(rules_need_size(&in[0], "predictions"));
    if (!co_shape_equal(&in[0], &in[1]))
        return co_fail(CO_E_USAGE, "the network gives %s, the targets are %s; they must agree",
                       rules_format(text, &in[0]), rules_format(target, &in[1]));
    *out = (co_shape){1, {in[0].dim[0]}};
    return CO_OK;
}

co_status rules_shape_same(co_shape *out, const co_shape *in, const void *attr)
{
    (void)attr;
    *out = *in;
    return CO_OK;
}

void rules_onnx_window(co_onnx *to, const int64_t *kernel, const int64_t *stride,
                       const int64_t *padding)
{
    const int64_t sides[4] = {padding[0], padding[1], padding[0], padding[1]};

    to->set_ints(to, "kernel_shape", kernel, 2);
    to->set_ints(to, "strides", stride, 2);
    to->set_ints(to, "pads", sides, 4); /* top, left, bottom, right */
}

const char *rules_onnx_number(co_onnx *to, const char *part, double v)
{
    const co_shape scalar = {0, {0}};
    float *value;
    const char *name = to->constant(to, part, &scalar, &value);

    if (value)
        *value = (float)v;
    return name;
}

const char *rules_onnx_root_mean(co_onnx *to, const char *x, double eps)
{
    static const int64_t last[1] = {-1};
    const char *added = rules_onnx_number(to, ".eps", eps), *y;

    y = to->node(to, "Mul", "/square", (const char *[]){x, x, NULL});
    y = to->node(to, "ReduceMean", "/mean_square", (const char *[]){y, NULL});
    to->set_ints(to, "axes", last, 1);
    y = to->node(to, "Add", "/plus_eps", (const char *[]){y, added, NULL});
    y = to->node(to, "Sqrt", "/root", (const char *[]){y, NULL});
    return to->node(to, "Div", "/normalised", (const char *[]){x, y, NULL});
}
