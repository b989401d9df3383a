/* batchnorm_mask512.h - for batchnorm_impl.h: masks of 16 lanes of AVX-512. */
#include "kernels/simd.h"

static inline uint16_t norm_is_kept(vec v)
{
    return _mm512_cmp_ps_mask((__m512)v, _mm512_setzero_ps(), _CMP_NLE_UQ);
}

static inline vec norm_keep(vec v, uint16_t bits)
{
    return (vec)_mm512_maskz_mov_ps(bits, (__m512)v);
}
