/*
 * batchnorm.c - each channel to mean 0 and variance 1 over the batch, then a trained scale and
 * shift (Ioffe & Szegedy, arXiv:1502.03167).
 */
#include "ops/rules.h"

static const co_key batchnorm_keys[] = {
    RULES_EPS_KEY(co_batchnorm_attr),
    {.name = "momentum",
     .type = CO_KEY_REAL,
     .offset = offsetof(co_batchnorm_attr, momentum),
     .fallback = "0.1",
     .min = 0,
     .max = 1,
     .help = "weight of a new batch in the running statistics"},
    {.name = "zero_init",
     .type = CO_KEY_BOOL,
     .offset = offsetof(co_batchnorm_attr, zero_init),
     .fallback = "false",
     .help = "start with weight 0: a residual block that ends so starts as the identity"},
    CO_KEYS_END,
};

static co_status batchnorm_shape(co_shape *out, const co_shape *in, const void *attr)
{
    (void)attr;
    if (in->ndim != 2)
        CO_TRY(rules_need_image(in));
    *out = *in;
    return CO_OK;
}

static int batchnorm_params(co_param_spec *out, const co_shape *in, const void *attr)
{
    const co_batchnorm_attr *a = attr;
    const co_shape channels = {1, {in->dim[1]}};

    out[0] =
        (co_param_spec){"weight", channels, a->zero_init ? CO_INIT_ZERO : CO_INIT_ONE, 0, false};
    out[1] = (co_param_spec){"bias", channels, CO_INIT_ZERO, 0, false};
    out[2] = (co_param_spec){"running_mean", channels, CO_INIT_ZERO, 0, true};
    out[3] = (co_param_spec){"running_var", channels, CO_INIT_ONE, 0, true};
    return 4;
}

/* Forward: two sums (3) and a product with a shift (2) for each element. Backward: two sums (3) and
   a combination of three terms (4). */
static void batchnorm_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                           const void *attr)
{
    const double n = (double)co_shape_count(in);

    (void)out_shape, (void)attr;
    *out = (co_op_work){5 * n, 4 * n, 3 * n};
}

/* Without training_mode ONNX uses the running statistics. */
static void batchnorm_onnx(co_onnx *to, const co_shape *in, const co_shape *out, const void *attr)
{
    const co_batchnorm_attr *a = attr;

    (void)in, (void)out;
    to->node(to, "BatchNormalization", "", to->in);
    to->set_float(to, "epsilon", a->eps);
}

const co_op co_op_batchnorm = {
    .name = "batchnorm",
    .summary = "normalise each channel over the batch",
    .keys = batchnorm_keys,
    .attr_size = sizeof(co_batchnorm_attr),
    .is_norm = true,
    .n_in = 1,
    .n_out = 1,
    .saves = CO_SAVES_IN,
    .grad_in = 1,
    .shape = batchnorm_shape,
    .params = batchnorm_params,
    .work = batchnorm_work,
    .write_onnx = batchnorm_onnx,
};
