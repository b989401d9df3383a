/*
 * conv2d.c - convolution over (H, W): a small weight slides over the image.
 */
#include <inttypes.h>

#include "ops/rules.h"

static const co_key conv2d_keys[] = {
    {.name = "out",
     .type = CO_KEY_INT,
     .offset = offsetof(co_conv2d_attr, out),
     .min = 1,
     .max = RULES_MAX_CHANNELS,
     .help = "output channels"},
    {.name = "kernel",
     .type = CO_KEY_INTS,
     .offset = offsetof(co_conv2d_attr, kernel),
     .min = 1,
     .max = RULES_MAX_EXTENT,
     .help = "size of the weight in pixels: one number or [height, width]"},
    {.name = "stride",
     .type = CO_KEY_INTS,
     .offset = offsetof(co_conv2d_attr, stride),
     .fallback = "1",
     .min = 1,
     .max = RULES_MAX_EXTENT,
     .help = "pixels from one place of the weight to the next"},
    {.name = "padding",
     .type = CO_KEY_INTS,
     .offset = offsetof(co_conv2d_attr, padding),
     .fallback = "0",
     .min = 0,
     .max = RULES_MAX_EXTENT,
     .help = "pixels of zeros around the image"},
    {.name = "dilation",
     .type = CO_KEY_INTS,
     .offset = offsetof(co_conv2d_attr, dilation),
     .fallback = "1",
     .min = 1,
     .max = RULES_MAX_EXTENT,
     .help = "pixels between neighbours in the weight"},
    {.name = "groups",
     .type = CO_KEY_INT,
     .offset = offsetof(co_conv2d_attr, groups),
     .fallback = "1",
     .min = 1,
     .max = RULES_MAX_CHANNELS,
     .help = "independent groups that the channels are cut into"},
    {.name = "bias",
     .type = CO_KEY_BOOL,
     .offset = offsetof(co_conv2d_attr, bias),
     .fallback = "true",
     .help = "add a trained constant to each output channel"},
    RULES_INIT_KEYS(co_conv2d_attr),
    CO_KEYS_END,
};

static co_status conv2d_check(void *attr)
{
    static const int64_t zero[2] = {0, 0}, one[2] = {1, 1};
    co_conv2d_attr *a = attr;

    CO_TRY(rules_pair(a->k, &a->kernel, "kernel", NULL));
    CO_TRY(rules_pair(a->s, &a->stride, "stride", one));
    CO_TRY(rules_pair(a->p, &a->padding, "padding", zero));
    return rules_pair(a->d, &a->dilation, "dilation", one);
}

/* (out, C / groups, kh, kw) */
static co_shape conv2d_weight(const co_shape *in, const co_conv2d_attr *a)
{
    return (co_shape){4, {a->out, in->dim[1] / a->groups, a->k[0], a->k[1]}};
}

static co_status conv2d_shape(co_shape *out, const co_shape *in, const void *attr)
{
    const co_conv2d_attr *a = attr;
    co_shape weight;

    CO_TRY(rules_need_image(in));
    if (in->dim[1] % a->groups || a->out % a->groups)
        return co_fail(CO_E_USAGE,
                       "groups must divide both the %" PRId64 " input and the %" PRId64
                       " output channels; %" PRId64 " does not",
                       in->dim[1], a->out, a->groups);
    weight = conv2d_weight(in, a);
    CO_TRY(rules_need_size(&weight, "weight"));
    *out = (co_shape){4, {in->dim[0], a->out}};
    for (int i = 0; i < 2; i++) {
        const rules_window window = {a->k[i], a->s[i], a->p[i], a->d[i]};

        CO_TRY(rules_count_windows(&out->dim[2 + i], in->dim[2 + i], &window, "hw"[i]));
    }
    return rules_need_size(out, "output");
}

static int conv2d_params(co_param_spec *out, const co_shape *in, const void *attr)
{
    const co_conv2d_attr *a = attr;
    const co_shape weight = conv2d_weight(in, a);

    return rules_init_params(out, &weight, a->bias, &a->init);
}

/* The same three sums of products over other indices. */
static void conv2d_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                        const void *attr)
{
    const co_shape weight = conv2d_weight(in, attr);
    const double each = 2.0 * (double)(weight.dim[1] * weight.dim[2] * weight.dim[3]);
    const double all = each * (double)co_shape_count(out_shape);

    *out = (co_op_work){all, all, all};
}

static co_extent conv2d_receptive(co_extent out, const void *attr)
{
    const co_conv2d_attr *a = attr;

    return (co_extent){(out.rows - 1) * a->s[0] + a->d[0] * (a->k[0] - 1) + 1 - a->p[0],
                       (out.columns - 1) * a->s[1] + a->d[1] * (a->k[1] - 1) + 1 - a->p[1]};
}

static void conv2d_onnx(co_onnx *to, const co_shape *in, const co_shape *out, const void *attr)
{
    const co_conv2d_attr *a = attr;

    (void)in, (void)out;
    to->node(to, "Conv", "", to->in);
    rules_onnx_window(to, a->k, a->s, a->p);
    to->set_ints(to, "dilations", a->d, 2);
    to->set_int(to, "group", a->groups);
}

const co_op co_op_conv2d = {
    .name = "conv2d",
    .summary = "convolution over height and width",
    .keys = conv2d_keys,
    .attr_size = sizeof(co_conv2d_attr),
    .precision = CO_PRECISION_LOW,
    .n_in = 1,
    .n_out = 1,
    .saves = CO_SAVES_IN,
    .grad_in = 1,
    .check = conv2d_check,
    .shape = conv2d_shape,
    .params = conv2d_params,
    .work = conv2d_work,
    .receptive = conv2d_receptive,
    .write_onnx = conv2d_onnx,
};
