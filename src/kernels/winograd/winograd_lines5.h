/*
 * winograd_lines5.h - Winograd's transforms of one row of vectors, for kernels of 5x5 taps and
 * tiles of 4 (winograd.h).
 */
#include "kernels/simd_winograd.h"

SIMD_INLINE void winograd_b(vec *y, int to, const vec *x, int64_t by)
{
    simd_winograd_b(y, to, x, (int)by, WINOGRAD_SIDE);
}

SIMD_INLINE void winograd_a(vec *y, const vec *x, int by)
{
    simd_winograd_a(y, by, x, by, WINOGRAD_SIDE);
}

SIMD_INLINE void winograd_a_back(vec *y, int by, const vec *x, int64_t from)
{
    simd_winograd_a_back(y, by, x, (int)from, WINOGRAD_SIDE);
}

SIMD_INLINE void winograd_g(vec *y, int by, const vec *x, int from)
{
    simd_winograd_g(y, by, x, from, WINOGRAD_SIDE);
}

SIMD_INLINE void winograd_g_back(vec *y, int to, const vec *x, int by)
{
    simd_winograd_g_back(y, to, x, by, WINOGRAD_SIDE);
}
