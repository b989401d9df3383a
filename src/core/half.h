/*
 * half.h - half precision: BF16 and F16 to and from float.
 *
 * Widening is exact. Rounding is to nearest, ties to even; what is too large becomes infinity, NaNs
 * stay NaNs: quiet, with their sign and the upper bits of their payload. Subnormals are kept, as
 * results and as sources, whatever the thread's flush-to-zero mode. Every instruction set gives the
 * same bits. (BF16 is made by integer arithmetic for that: the CPU's own instruction flushes.)
 */
#ifndef CO_CORE_HALF_H
#define CO_CORE_HALF_H

#include <cohort/types.h>

#include "core/rng.h"

static inline bool co_dtype_is_half(co_dtype dtype)
{
    return dtype == CO_BF16 || dtype == CO_F16;
}

/* out[i] = (float)in[i]; `dtype` is that of `in`. They do not overlap. */
void co_half_widen(float *out, const uint16_t *in, size_t n, co_dtype dtype);
/* out[i] = in[i] rounded to `dtype`. They do not overlap. */
void co_half_round(uint16_t *out, const float *in, size_t n, co_dtype dtype);

/* out[i] = the value of `dtype` nearest to in[i]. `out` may be `in`. */
void co_half_nearest(float *out, const float *in, size_t n, co_dtype dtype);

/* x[i] = the value of `dtype` below or above x[i], at random, so that the mean over all random
   numbers is x[i], in F16 within 2^-40 (stochastic rounding: Gupta et al., arXiv:1502.02551). Zeros
   and all values of the type stay. The result is a function of the value, of `rng` and of first + i
   alone: element 128 g + 64 h + 16 w + l uses half h (0: the lower) of word w of block 16 g + l. */
void co_half_stochastic(float *x, size_t n, co_dtype dtype, const co_rng *rng, uint64_t first);

/* ---- the loops, one set for each instruction set ---- */

typedef void (*co_half_widen_fn)(float *out, const uint16_t *in, size_t n);
typedef void (*co_half_round_fn)(uint16_t *out, const float *in, size_t n);

typedef void (*co_half_stochastic_fn)(float *x, size_t n, const co_rng *rng, uint64_t first);

typedef struct co_half_loops {
    const char *name;
    co_half_widen_fn widen[2]; /* BF16, F16 */
    co_half_round_fn round[2];
    co_half_stochastic_fn stochastic[2];
} co_half_loops;

/* The sets that this CPU runs, best first; how many in *n. The last is plain C. */
const co_half_loops *const *co_half_loops_of_cpu(size_t *n);

extern const co_half_loops co_half_plain, co_half_avx2, co_half_avx512;

#endif
