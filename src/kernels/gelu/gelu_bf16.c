/*
 * gelu_bf16.c - the loops of gelu.h for BF16. Exponentials and quotients are as exact as it takes
 * for results that are rounded to 8 bits: within 1e-4.
 */
#define LANES      16
#define GELU_TABLE gelu_loops_bf16

#include "kernels/half16_exp.h"

#define GELU_AT_ONCE 4
#define gelu_load    half16_load
#define gelu_store   half16_store
#define gelu_exp     half16_exp

typedef uint16_t gelu_number;

SIMD_INLINE uint16_t gelu_first(vec x)
{
    return half16_round(x)[0];
}

SIMD_INLINE vec gelu_size(vec x)
{
    return (vec)_mm512_abs_ps((__m512)x);
}

SIMD_INLINE vec gelu_negative(vec x, vec a, vec b)
{
    const __mmask16 negative = _mm512_cmp_ps_mask((__m512)x, _mm512_setzero_ps(), _CMP_LT_OQ);

    return (vec)_mm512_mask_blend_ps(negative, (__m512)b, (__m512)a);
}

/* Within 2^-14, then a step of Newton's. */
SIMD_INLINE vec gelu_inverse(vec x)
{
    const vec first = (vec)_mm512_rcp14_ps((__m512)x);

    return first * (2.0f - x * first);
}

#include "kernels/gelu/gelu_impl.h"

/* By s(u) = 1 / (1 + 2^v), v = -u log2(e), whose slope is s(u) (1 - s(u)). The quotient is within
   2^-14. */
SIMD_INLINE gelu_point gelu_tanh_at(vec x)
{
    const float by = -GELU_SLOPE * HALF16_LOG2_E;
    const vec square = x * x, v = (square * (GELU_CUBE * by) + by) * x;
    const vec below = (vec)_mm512_rcp14_ps((__m512)(1.0f + half16_exp2(v)));
    const vec some = (vec)_mm512_min_ps((__m512)square, _mm512_set1_ps(GELU_FAR));
    const vec slope = some * (3 * GELU_CUBE * GELU_SLOPE) + GELU_SLOPE;

    return (gelu_point){x * below, below + x * (below - below * below) * slope};
}
