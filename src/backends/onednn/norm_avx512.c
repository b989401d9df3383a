/* norm_avx512.c - batch norm's loops on 16 channels at once, for AVX-512. */
#include <immintrin.h>

#include "backends/onednn/norm.h"

#define LANES      16
#define NORM_TABLE norm_loops_avx512

typedef float vec __attribute__((vector_size(64), may_alias));

typedef float cell;

static inline vec norm_load(const cell *from)
{
    return *(const vec *)from;
}

static inline void norm_store(cell *to, vec value)
{
    *(vec *)to = value;
}

static inline uint16_t norm_is_kept(vec v)
{
    return _mm512_cmp_ps_mask((__m512)v, _mm512_setzero_ps(), _CMP_NLE_UQ);
}

static inline vec norm_keep(vec v, uint16_t bits)
{
    return (vec)_mm512_maskz_mov_ps(bits, (__m512)v);
}

#include "backends/onednn/norm_impl.h"
