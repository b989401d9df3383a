/*
 * half.c - half precision in plain C; and the choice among the sets of loops.
 */
#define HALF_STEP 4

#include "core/half_random.h"
#include "core/isa.h"

#define HALF_BLOCK ((size_t)512)

static void half_widen_all_bf16(float *out, const uint16_t *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = half_widen_bf16(in[i]);
}

static void half_widen_all_f16(float *out, const uint16_t *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = half_widen_f16(in[i]);
}

static void half_round_all_bf16(uint16_t *out, const float *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = half_round_bf16(in[i]);
}

static void half_round_all_f16(uint16_t *out, const float *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = half_round_f16(in[i]);
}

const co_half_loops co_half_plain = {
    .name = "plain C",
    .widen = {half_widen_all_bf16, half_widen_all_f16},
    .round = {half_round_all_bf16, half_round_all_f16},
    .stochastic = {half_stochastic_bf16, half_stochastic_f16},
};

const co_half_loops *const *co_half_loops_of_cpu(size_t *n)
{
#ifdef CO_HALF_X86
    static const co_half_loops *const all[] = {&co_half_avx512, &co_half_avx2, &co_half_plain};
    const size_t first = (size_t)!co_isa_has(CO_ISA_AVX512) + !co_isa_has(CO_ISA_AVX2);
#else
    static const co_half_loops *const all[] = {&co_half_plain};
    const size_t first = 0;
#endif
    *n = sizeof(all) / sizeof(all[0]) - first;
    return all + first;
}

void co_half_widen(float *out, const uint16_t *in, size_t n, co_dtype dtype)
{
    size_t sets;

    co_half_loops_of_cpu(&sets)[0]->widen[dtype == CO_F16](out, in, n);
}

void co_half_round(uint16_t *out, const float *in, size_t n, co_dtype dtype)
{
    size_t sets;

    co_half_loops_of_cpu(&sets)[0]->round[dtype == CO_F16](out, in, n);
}

void co_half_nearest(float *out, const float *in, size_t n, co_dtype dtype)
{
    uint16_t block[HALF_BLOCK];

    for (size_t i = 0; i < n; i += HALF_BLOCK) {
        const size_t part = n - i < HALF_BLOCK ? n - i : HALF_BLOCK;

        co_half_round(block, in + i, part, dtype);
        co_half_widen(out + i, block, part, dtype);
    }
}

void co_half_stochastic(float *x, size_t n, co_dtype dtype, const co_rng *rng, uint64_t first)
{
    size_t sets;

    co_half_loops_of_cpu(&sets)[0]->stochastic[dtype == CO_F16](x, n, rng, first);
}
