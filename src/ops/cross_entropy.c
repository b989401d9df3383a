/*
 * cross_entropy.c - negative log-likelihood of the right class, straight from logits, with
 * optional label smoothing (Szegedy et al., arXiv:1512.00567).
 */
#include "ops/rules.h"

static const co_key cross_entropy_keys[] = {
    {.name = "label_smoothing",
     .type = CO_KEY_REAL,
     .offset = offsetof(co_cross_entropy_attr, label_smoothing),
     .fallback = "0",
     .min = 0,
     .max = 1,
     .help = "share of the target that is spread evenly over all classes"},
    CO_KEYS_END,
};

/* Of sequences every sample has the same number of positions, so that the mean over samples is that
   over positions. */
static co_status cross_entropy_shape(co_shape *out, const co_shape *in, const void *attr)
{
    if (in[0].ndim != 3)
        return rules_shape_loss(out, in, attr);
    if (in[1].ndim != 2 || in[1].dim[1] != in[0].dim[1])
        return co_fail(CO_E_USAGE, "needs one label for each position as its second input");
    *out = (co_shape){1, {in[0].dim[0]}};
    return CO_OK;
}

/* As log_softmax; back: exponential, difference. */
static void cross_entropy_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                               const void *attr)
{
    const double n = (double)co_shape_count(in);

    (void)out_shape, (void)attr;
    *out = (co_op_work){4 * n, 2 * n, 0};
}

const co_op co_op_cross_entropy = {
    .name = "cross_entropy",
    .summary = "softmax and negative log-likelihood in one",
    .keys = cross_entropy_keys,
    .attr_size = sizeof(co_cross_entropy_attr),
    .precision = CO_PRECISION_WIDE,
    .along = CO_ALONG_NONE,
    .n_in = 2,
    .n_out = 1,
    .saves = CO_SAVES_IN,
    .grad_in = 1,
    .indices = 2,
    .is_loss = true,
    .target = CO_TARGET_LABEL,
    .shape = cross_entropy_shape,
    .work = cross_entropy_work,
};
