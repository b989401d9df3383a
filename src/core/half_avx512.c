/*
 * half_avx512.c - half precision with vectors of 512 bits: AVX-512.
 *
 * The compiler makes vector code of BF16's integer arithmetic; F16 has instructions of its own,
 * which keep subnormals in any mode.
 */
#include <immintrin.h>

#define HALF_STEP 16

#include "core/half_random.h"

#define HALF_NEAREST (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)

static void half_avx512_widen_bf16(float *out, const uint16_t *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = half_widen_bf16(in[i]);
}

static void half_avx512_widen_f16(float *out, const uint16_t *in, size_t n)
{
    size_t i = 0;

    for (; i + HALF_STEP <= n; i += HALF_STEP)
        _mm512_storeu_ps(
            out + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(in + i))));
    for (; i < n; i++)
        out[i] = half_widen_f16(in[i]);
}

static void half_avx512_round_bf16(uint16_t *out, const float *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = half_round_bf16(in[i]);
}

static void half_avx512_round_f16(uint16_t *out, const float *in, size_t n)
{
    size_t i = 0;

    for (; i + HALF_STEP <= n; i += HALF_STEP)
        _mm256_storeu_si256((__m256i *)(void *)(out + i),
                            _mm512_cvtps_ph(_mm512_loadu_ps(in + i), HALF_NEAREST));
    for (; i < n; i++)
        out[i] = half_round_f16(in[i]);
}

const co_half_loops co_half_avx512 = {
    .name = "AVX-512",
    .widen = {half_avx512_widen_bf16, half_avx512_widen_f16},
    .round = {half_avx512_round_bf16, half_avx512_round_f16},
    .stochastic = {half_stochastic_bf16, half_stochastic_f16},
};
