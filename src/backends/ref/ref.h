/*
 * ref.h - the reference backend: one plain loop nest per op.
 *
 * It is the oracle of every test and the documentation of each op, so it is written to be read:
 * plain layouts, the equations of the file's head in the order in which they stand there, sums in
 * double. It must not know other backends, and is fast only by accident.
 */
#ifndef CO_BACKENDS_REF_REF_H
#define CO_BACKENDS_REF_REF_H

#include "backends/backends.h"
#include "ops/ops.h"

extern const co_kernel co_ref_conv2d, co_ref_linear, co_ref_maxpool, co_ref_avgpool,
    co_ref_adaptive_avgpool, co_ref_relu, co_ref_add, co_ref_flatten, co_ref_batchnorm,
    co_ref_dropout, co_ref_dropout2d, co_ref_scale, co_ref_log_softmax, co_ref_nll_loss,
    co_ref_cross_entropy, co_ref_mse_loss, co_ref_bce_with_logits_loss;

/* Data of a tensor that may be missing, else NULL. */
static inline float *ref_data(const co_tensor *tensor)
{
    return tensor ? tensor->data : NULL;
}

/* Gradient of a parameter: added over the micro-batches of a batch, or set by the first. */
static inline void ref_put(float *to, double value, const co_run *run)
{
    *to = run->accumulate ? *to + (float)value : (float)value;
}

/* log sum_i exp(x[i]) over n >= 1 values, without overflow. */
double ref_log_sum_exp(const float *x, int64_t n);

#endif
