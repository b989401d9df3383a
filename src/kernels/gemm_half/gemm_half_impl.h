/*
 * gemm_half_impl.h - the loops of gemm_half.h but for products, with panels of pairs. Included by a
 * file that defines GEMM_HALF_TABLE, GEMM_HALF_NAME, GEMM_HALF_BLOCK and GEMM_HALF_PANELS, and
 * after this gemm_half_multiply.
 */
#include "kernels/gemm_half/gemm_half_common.h"

/* 32 numbers of BF16, or the first n of them. */
SIMD_INLINE vec gemm_half_take(const uint16_t *from, int64_t n, const bool whole)
{
    return whole ? simd_load_any((const float *)(const void *)from)
                 : gemm_half_first(from, n, 2 * LANES, sizeof(*from));
}

/* Packs a step of 16 lines, from line i and element k on. */
typedef void (*gemm_half_pack)(uint16_t *to, const gemm_half_from *from, int64_t i, int64_t k,
                               const bool whole);

/* All steps of a panel of b. */
SIMD_INLINE void gemm_half_each(uint16_t *to, const gemm_half_from *from, gemm_half_pack pack)
{
    for (int64_t k = 0; k < from->elements; k += GEMM_HALF_STEP)
        for (int64_t i = 0; i < GEMM_HALF_PANEL; i += LANES, to += GEMM_HALF_CELLS / 2)
            if (i + LANES <= from->lines && k + GEMM_HALF_STEP <= from->elements)
                pack(to, from, i, k, true);
            else
                pack(to, from, i, k, false);
}

SIMD_INLINE void gemm_half_store(uint16_t *to, vec pairs)
{
    simd_store_any((float *)(void *)to, pairs);
}

/* --- panels of a --- */

static void gemm_half_rows(void *panel, const gemm_half_from *from)
{
    const int64_t n = from->elements;
    uint16_t *to = panel;

    for (int64_t r = 0; r < GEMM_HALF_PANEL; r++, to += GEMM_HALF_STEP) {
        const uint16_t *row = (const uint16_t *)from->at + r * from->step;
        uint16_t *place = to;
        int64_t k = 0;

        if (r < from->lines)
            for (; k + GEMM_HALF_STEP <= n; k += GEMM_HALF_STEP, place += GEMM_HALF_CELLS)
                gemm_half_store(place, gemm_half_take(row + k, n - k, true));
        for (; k < n; k += GEMM_HALF_STEP, place += GEMM_HALF_CELLS)
            gemm_half_store(place,
                            r < from->lines ? gemm_half_take(row + k, n - k, false) : (vec){0});
    }
}

/* 16 lines, from line i, of the step that begins with element k. */
SIMD_INLINE void gemm_half_columns_step(uint16_t *to, const gemm_half_from *from, int64_t i,
                                        int64_t k, vec *sum, const bool whole)
{
    const uint16_t *row = (const uint16_t *)from->at + k * from->step + i;
    const int64_t rest = from->elements - k, lines = from->lines - i;
    vec v[LANES], part = {0};

    SIMD_UNROLL(16) for (int64_t p = 0; p < LANES; p++, row += 2 * from->step)
    {
        const half16 a = gemm_half_some(row, 2 * p < rest ? lines : 0, whole);
        const half16 b = gemm_half_some(row + from->step, 2 * p + 1 < rest ? lines : 0, whole);

        __builtin_prefetch(row + GEMM_HALF_STEP * from->step);
        __builtin_prefetch(row + (GEMM_HALF_STEP + 1) * from->step);
        v[p] = half16_join(a, b);
        part += half16_widen(a) + half16_widen(b);
    }
    *sum += part;
    simd_transpose(v);
    SIMD_UNROLL(16) for (int l = 0; l < LANES; l++) gemm_half_store(to + l * GEMM_HALF_STEP, v[l]);
}

static void gemm_half_columns(void *panel, const gemm_half_from *from, float *sum)
{
    uint16_t *to = panel;
    vec all[2] = {{0}};

    for (int64_t k = 0; k < from->elements; k += GEMM_HALF_STEP, to += GEMM_HALF_CELLS)
        for (int64_t i = 0; i < GEMM_HALF_PANEL; i += LANES) {
            uint16_t *place = to + i * GEMM_HALF_STEP;

            if (i + LANES <= from->lines && k + GEMM_HALF_STEP <= from->elements)
                gemm_half_columns_step(place, from, i, k, &all[i / LANES], true);
            else
                gemm_half_columns_step(place, from, i, k, &all[i / LANES], false);
        }
    for (int64_t i = 0; sum && i < GEMM_HALF_PANEL; i += LANES)
        simd_store_any(sum + i, simd_load_any(sum + i) + all[i / LANES]);
}

/* --- panels of b --- */

SIMD_INLINE void gemm_half_pack_float_rows(uint16_t *to, const gemm_half_from *from, int64_t i,
                                           int64_t k, const bool whole)
{
    const float *row = (const float *)from->at + i * from->step + k;
    const int64_t n = from->elements - k;
    vec v[LANES];

    SIMD_UNROLL(16) for (int64_t l = 0; l < LANES; l++, row += from->step)
    {
        const int64_t some = i + l < from->lines ? n : 0;

        __builtin_prefetch(row + GEMM_HALF_AHEAD);
        __builtin_prefetch(row + GEMM_HALF_AHEAD + LANES);
        v[l] = gemm_half_pairs(gemm_half_floats(row, some, whole),
                               gemm_half_floats(row + LANES, some - LANES, whole));
    }
    simd_transpose(v);
    SIMD_UNROLL(16) for (int p = 0; p < LANES; p++) gemm_half_store(to + 2 * p * LANES, v[p]);
}

SIMD_INLINE void gemm_half_pack_half_rows(uint16_t *to, const gemm_half_from *from, int64_t i,
                                          int64_t k, const bool whole)
{
    const uint16_t *row = (const uint16_t *)from->at + i * from->step + k;
    const int64_t n = from->elements - k;
    vec v[LANES];

    SIMD_UNROLL(16)
    for (int64_t l = 0; l < LANES; l++, row += from->step)
        v[l] = gemm_half_take(row, i + l < from->lines ? n : 0, whole);
    simd_transpose(v);
    SIMD_UNROLL(16) for (int p = 0; p < LANES; p++) gemm_half_store(to + 2 * p * LANES, v[p]);
}

SIMD_INLINE void gemm_half_pack_float_columns(uint16_t *to, const gemm_half_from *from, int64_t i,
                                              int64_t k, const bool whole)
{
    const float *row = (const float *)from->at + k * from->step + i;
    const int64_t n = from->elements - k, lines = from->lines - i;

    SIMD_UNROLL_BY(4)
    for (int64_t p = 0; p < LANES; p++, row += 2 * from->step) {
        const vec a = gemm_half_floats(row, 2 * p < n ? lines : 0, whole);
        const vec b = gemm_half_floats(row + from->step, 2 * p + 1 < n ? lines : 0, whole);

        __builtin_prefetch(row + GEMM_HALF_AHEAD);
        __builtin_prefetch(row + from->step + GEMM_HALF_AHEAD);
        gemm_half_store(to + 2 * p * LANES, half16_join(half16_round(a), half16_round(b)));
    }
}

SIMD_INLINE void gemm_half_pack_half_columns(uint16_t *to, const gemm_half_from *from, int64_t i,
                                             int64_t k, const bool whole)
{
    const uint16_t *row = (const uint16_t *)from->at + k * from->step + i;
    const int64_t n = from->elements - k, lines = from->lines - i;

    SIMD_UNROLL_BY(4)
    for (int64_t p = 0; p < LANES; p++, row += 2 * from->step) {
        const half16 a = gemm_half_some(row, 2 * p < n ? lines : 0, whole);
        const half16 b = gemm_half_some(row + from->step, 2 * p + 1 < n ? lines : 0, whole);

        __builtin_prefetch(row + GEMM_HALF_AHEAD);
        __builtin_prefetch(row + from->step + GEMM_HALF_AHEAD);
        gemm_half_store(to + 2 * p * LANES, half16_join(a, b));
    }
}

#define GEMM_HALF_PACK(what)                                                                       \
    static void gemm_half_##what(void *to, const gemm_half_from *from)                             \
    {                                                                                              \
        gemm_half_each(to, from, gemm_half_pack_##what);                                           \
    }

GEMM_HALF_PACK(float_rows)
GEMM_HALF_PACK(float_columns)
GEMM_HALF_PACK(half_rows)
GEMM_HALF_PACK(half_columns)

static void gemm_half_multiply(const gemm_half_job *job);

const gemm_half_loops GEMM_HALF_TABLE = {
    .name = GEMM_HALF_NAME,
    .cell = sizeof(uint16_t),
    .block = GEMM_HALF_BLOCK,
    .panels = GEMM_HALF_PANELS,
    .rows = gemm_half_rows,
    .columns = gemm_half_columns,
    .float_rows = gemm_half_float_rows,
    .float_columns = gemm_half_float_columns,
    .half_rows = gemm_half_half_rows,
    .half_columns = gemm_half_half_columns,
    .multiply = gemm_half_multiply,
};
