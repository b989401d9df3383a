/*
 * roof_flops.c - loops that only multiply and add, in registers.
 *
 * Independent of clocks and of what is compared with the result.
 */
#include "core/roof_flops.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "core/isa.h"

#define FLOPS_CHAINS 12 /* more than the units' latency times their number */
#define FLOPS_TURNS  20000

static double flops_basic(float *sink)
{
    float x[4 * FLOPS_CHAINS];

    for (int i = 0; i < 4 * FLOPS_CHAINS; i++)
        x[i] = *sink + (float)i;
    for (int turn = 0; turn < FLOPS_TURNS; turn++)
        for (int i = 0; i < 4 * FLOPS_CHAINS; i++)
            x[i] = x[i] * 0.999f + 0.001f;
    for (int i = 0; i < 4 * FLOPS_CHAINS; i++)
        *sink += x[i] * 1e-6f;
    return 2.0 * 4 * FLOPS_CHAINS * FLOPS_TURNS;
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static double flops_avx2(float *sink)
{
    const __m256 factor = _mm256_set1_ps(0.999f), term = _mm256_set1_ps(0.001f);
    __m256 x[FLOPS_CHAINS];

    for (int i = 0; i < FLOPS_CHAINS; i++)
        x[i] = _mm256_set1_ps(*sink + (float)i);
    for (int turn = 0; turn < FLOPS_TURNS; turn++) {
#pragma GCC unroll 12
        for (int i = 0; i < FLOPS_CHAINS; i++)
            x[i] = _mm256_fmadd_ps(x[i], factor, term);
    }
    for (int i = 0; i < FLOPS_CHAINS; i++)
        *sink += _mm256_cvtss_f32(x[i]) * 1e-6f;
    return 2.0 * 8 * FLOPS_CHAINS * FLOPS_TURNS;
}

__attribute__((target("avx512f"))) static double flops_avx512(float *sink)
{
    const __m512 factor = _mm512_set1_ps(0.999f), term = _mm512_set1_ps(0.001f);
    __m512 x[FLOPS_CHAINS];

    for (int i = 0; i < FLOPS_CHAINS; i++)
        x[i] = _mm512_set1_ps(*sink + (float)i);
    for (int turn = 0; turn < FLOPS_TURNS; turn++) {
#pragma GCC unroll 12
        for (int i = 0; i < FLOPS_CHAINS; i++)
            x[i] = _mm512_fmadd_ps(x[i], factor, term);
    }
    for (int i = 0; i < FLOPS_CHAINS; i++)
        *sink += _mm512_cvtss_f32(x[i]) * 1e-6f;
    return 2.0 * 16 * FLOPS_CHAINS * FLOPS_TURNS;
}

/* 32 products for each vector of sums. */
__attribute__((target("avx512f,avx512bf16"))) static double flops_bf16(float *sink)
{
    const __m512bh factor = (__m512bh)_mm512_set1_epi16(0x3c00), /* 2^-7 */
        term = (__m512bh)_mm512_set1_epi16(0x3c80);
    __m512 x[FLOPS_CHAINS];

    for (int i = 0; i < FLOPS_CHAINS; i++)
        x[i] = _mm512_set1_ps(*sink + (float)i);
    for (int turn = 0; turn < FLOPS_TURNS; turn++) {
#pragma GCC unroll 12
        for (int i = 0; i < FLOPS_CHAINS; i++)
            x[i] = _mm512_dpbf16_ps(x[i], factor, term);
    }
    for (int i = 0; i < FLOPS_CHAINS; i++)
        *sink += _mm512_cvtss_f32(x[i]) * 1e-6f;
    return 2.0 * 32 * FLOPS_CHAINS * FLOPS_TURNS;
}

/* Tiles of 16 rows of 64 bytes: what _tile_loadconfig reads. */
typedef struct flops_tiles {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} flops_tiles;

#define FLOPS_TILES     8
#define FLOPS_AMX_TURNS 4000
#define FLOPS_NUMBERS   (16 * 32) /* of a tile */

/* Numbers of BF16 from 2^-8 to 2 of either sign, so that the CPU has as much to do as with data: of
   zeros it multiplies up to a third more. */
static void flops_fill(uint16_t *numbers, int64_t n)
{
    uint32_t state = 1;

    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u; /* Numerical Recipes, 3rd edition, 7.1.4 */
        numbers[i] = (uint16_t)((state >> 31) << 15 | (0x3b80u + (state >> 16) % 0x480u));
    }
}

/* Four tiles of sums, so that none waits for itself. */
__attribute__((target("amx-tile,amx-bf16"))) static double flops_amx(float *sink)
{
    _Alignas(64) flops_tiles tiles = {.palette = 1};
    _Alignas(64) uint16_t numbers[4][FLOPS_NUMBERS];
    _Alignas(64) float out[16 * 16];

    for (int i = 0; i < FLOPS_TILES; i++) {
        tiles.row_bytes[i] = 64;
        tiles.rows[i] = 16;
    }
    flops_fill(numbers[0], 4 * (int64_t)FLOPS_NUMBERS);
    _tile_loadconfig(&tiles);
    __asm__ volatile("" ::: "memory"); /* the compiler does not know what loads of tiles read */
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_loadd(4, numbers[0], 64);
    _tile_loadd(5, numbers[1], 64);
    _tile_loadd(6, numbers[2], 64);
    _tile_loadd(7, numbers[3], 64);
    for (int turn = 0; turn < FLOPS_AMX_TURNS; turn++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, out, 64);
    _tile_release();
    *sink += out[0];
    return 2.0 * 16 * 16 * 32 * 4 * FLOPS_AMX_TURNS;
}
#elif defined(__aarch64__)
static double flops_neon(float *sink)
{
    const float32x4_t factor = vdupq_n_f32(0.999f), term = vdupq_n_f32(0.001f);
    float32x4_t x[2 * FLOPS_CHAINS];

    for (int i = 0; i < 2 * FLOPS_CHAINS; i++)
        x[i] = vdupq_n_f32(*sink + (float)i);
    for (int turn = 0; turn < FLOPS_TURNS; turn++) {
#pragma GCC unroll 24
        for (int i = 0; i < 2 * FLOPS_CHAINS; i++)
            x[i] = vfmaq_f32(x[i], factor, term);
    }
    for (int i = 0; i < 2 * FLOPS_CHAINS; i++)
        *sink += vgetq_lane_f32(x[i], 0) * 1e-6f;
    return 2.0 * 4 * 2 * FLOPS_CHAINS * FLOPS_TURNS;
}
#endif

co_roof_flops_fn co_roof_find_flops(void)
{
#if defined(__x86_64__)
    if (co_isa_has(CO_ISA_AVX512))
        return flops_avx512;
    if (co_isa_has(CO_ISA_AVX2))
        return flops_avx2;
#elif defined(__aarch64__)
    if (co_isa_has(CO_ISA_NEON))
        return flops_neon;
#endif
    return flops_basic;
}

co_roof_flops_fn co_roof_find_bf16_flops(void)
{
#if defined(__x86_64__)
    if (co_isa_has(CO_ISA_AMX))
        return flops_amx;
    if (co_isa_multiplies_bf16())
        return flops_bf16;
#endif
    return NULL;
}
