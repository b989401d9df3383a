/*
 * gelu_float.h - the loops of gelu.h for floats, LANES at a time. Included once for each level of
 * instructions, by a file that defines LANES and GELU_TABLE.
 */
#include "kernels/simd_exp.h"

#define GELU_AT_ONCE 1
#define gelu_load    simd_load_any
#define gelu_store   simd_store_any
#define gelu_exp     simd_exp

typedef float gelu_number;

SIMD_INLINE float gelu_first(vec x)
{
    return x[0];
}

SIMD_INLINE vec gelu_negative(vec x, vec a, vec b)
{
    return simd_select((ivec)(x < 0.0f), a, b);
}

SIMD_INLINE vec gelu_size(vec x)
{
    return gelu_negative(x, -x, x);
}

SIMD_INLINE vec gelu_inverse(vec x)
{
    return 1.0f / x;
}

#include "kernels/gelu/gelu_impl.h"

/* By s(u) = 1 / (1 + exp(-u)), whose slope is s(u)^2 exp(-u). */
SIMD_INLINE gelu_point gelu_tanh_at(vec x)
{
    const vec square = x * x, u = (square * (GELU_CUBE * GELU_SLOPE) + GELU_SLOPE) * x;
    const vec power = gelu_exp(simd_min(simd_splat(SIMD_EXP_MOST), -u));
    const vec share = gelu_inverse(1.0f + power);
    const vec some = simd_min(simd_splat(GELU_FAR), square);
    const vec slope = some * (3 * GELU_CUBE * GELU_SLOPE) + GELU_SLOPE;

    return (gelu_point){x * share, share + x * (power * share * share) * slope};
}
