/*
 * ref.h - the reference backend: one plain loop nest per op.
 *
 * It is the oracle of every test and the documentation of each op, so it is written to be read:
 * plain layouts, the equations of the file's head in the order in which they stand there, sums in
 * double. It is independent of other backends, and not optimized.
 */
#ifndef CO_BACKENDS_REF_REF_H
#define CO_BACKENDS_REF_REF_H

#include "backends/backends.h"
#include "ops/ops.h"

#define OP(name) extern const co_kernel co_ref_##name;
#include "ops/list.h"
#undef OP

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

/* Attention of a call that decodes (attention_decode.c). */
void ref_attention_decode(const co_call *call, const co_decoding *decoding);

/* log sum_i exp(x[i]) over n >= 1 values, without overflow. */
double ref_log_sum_exp(const float *x, int64_t n);

#endif
