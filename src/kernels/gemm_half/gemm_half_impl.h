/*
 * gemm_half_impl.h - the loops of gemm_half.h but for products: packing, and what is done with
 * sums. Included by a file that defines GEMM_HALF_TABLE and GEMM_HALF_NAME, and after this
 * gemm_half_multiply.
 */
#include <string.h>

#include "kernels/gemm_half/gemm_half.h"

#define LANES 16

#include "kernels/half16.h"

static int64_t gemm_half_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* 32 numbers in pairs. */
SIMD_INLINE vec gemm_half_pairs(vec first, vec second)
{
#ifdef __AVX512BF16__
    return (vec)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first);
#else
    const half16 both[2] = {half16_round(first), half16_round(second)};
    vec out;

    memcpy(&out, both, sizeof(out));
    return out;
#endif
}

/* The first n numbers of a vector of bytes, then zeros; n may be negative, or too many. */
SIMD_INLINE vec gemm_half_first(const void *from, int64_t n, const int64_t most, const size_t each)
{
    vec some = {0};

    if (n >= most)
        return simd_load_any(from);
    if (n > 0)
        memcpy(&some, from, (size_t)n * each);
    return some;
}

/* 32 numbers of BF16, or the first n of them. */
SIMD_INLINE vec gemm_half_take(const uint16_t *from, int64_t n, const bool whole)
{
    return whole ? simd_load_any((const float *)(const void *)from)
                 : gemm_half_first(from, n, 2 * LANES, sizeof(*from));
}

/* 16 floats, likewise. */
SIMD_INLINE vec gemm_half_floats(const float *from, int64_t n, const bool whole)
{
    return whole ? simd_load_any(from) : gemm_half_first(from, n, LANES, sizeof(*from));
}

/* 16 numbers of BF16, likewise. */
SIMD_INLINE half16 gemm_half_some(const uint16_t *from, int64_t n, const bool whole)
{
    half16 some = {0};

    if (whole || n >= LANES)
        return half16_take(from);
    if (n > 0)
        memcpy(&some, from, (size_t)n * sizeof(*from));
    return some;
}

/* Elements that are prefetched, as more rows are read than a CPU follows by itself. */
#define GEMM_HALF_AHEAD 64

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

static void gemm_half_rows(uint16_t *to, const gemm_half_from *from)
{
    const int64_t n = from->elements;

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
        part += (vec)(half16_bits(a) << 16) + (vec)(half16_bits(b) << 16);
    }
    *sum += part;
    simd_transpose(v);
    SIMD_UNROLL(16) for (int l = 0; l < LANES; l++) gemm_half_store(to + l * GEMM_HALF_STEP, v[l]);
}

static void gemm_half_columns(uint16_t *to, const gemm_half_from *from, float *sum)
{
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

    SIMD_UNROLL(4)
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

    SIMD_UNROLL(4)
    for (int64_t p = 0; p < LANES; p++, row += 2 * from->step) {
        const half16 a = gemm_half_some(row, 2 * p < n ? lines : 0, whole);
        const half16 b = gemm_half_some(row + from->step, 2 * p + 1 < n ? lines : 0, whole);

        __builtin_prefetch(row + GEMM_HALF_AHEAD);
        __builtin_prefetch(row + from->step + GEMM_HALF_AHEAD);
        gemm_half_store(to + 2 * p * LANES, half16_join(a, b));
    }
}

#define GEMM_HALF_PACK(what)                                                                       \
    static void gemm_half_##what(uint16_t *to, const gemm_half_from *from)                         \
    {                                                                                              \
        gemm_half_each(to, from, gemm_half_pack_##what);                                           \
    }

GEMM_HALF_PACK(float_rows)
GEMM_HALF_PACK(float_columns)
GEMM_HALF_PACK(half_rows)
GEMM_HALF_PACK(half_columns)

/* --- sums --- */

static void gemm_half_put_half(const gemm_half_job *job, const float *sums, int64_t column)
{
    const int64_t n = gemm_half_least(job->columns - column, GEMM_HALF_PANEL);
    uint16_t *y = (uint16_t *)job->y + column;

    for (int64_t r = 0; r < job->rows; r++, y += job->step, sums += GEMM_HALF_PANEL) {
        const vec pairs = gemm_half_pairs(simd_load(sums), simd_load(sums + LANES));

        if (n == GEMM_HALF_PANEL)
            simd_store_any((float *)(void *)y, pairs);
        else
            memcpy(y, &pairs, (size_t)n * sizeof(*y));
    }
}

static void gemm_half_put_floats(const gemm_half_job *job, const float *sums, int64_t column)
{
    const int64_t n = gemm_half_least(job->columns - column, GEMM_HALF_PANEL);
    float *y = (float *)job->y + column;

    for (int64_t r = 0; r < job->rows; r++, y += job->step, sums += GEMM_HALF_PANEL) {
        if (n < GEMM_HALF_PANEL) {
            for (int64_t i = 0; i < n; i++)
                y[i] = job->add ? y[i] + sums[i] : sums[i];
            continue;
        }
        SIMD_UNROLL(2) for (int i = 0; i < GEMM_HALF_PANEL; i += LANES)
        {
            vec sum = simd_load(sums + i);

            if (job->add)
                sum += simd_load_any(y + i);
            simd_store_any(y + i, sum);
        }
    }
}

static void gemm_half_put(const gemm_half_job *job, const float *sums, int64_t column)
{
    if (job->half)
        gemm_half_put_half(job, sums, column);
    else
        gemm_half_put_floats(job, sums, column);
}

static void gemm_half_multiply(const gemm_half_job *job);

const gemm_half_loops GEMM_HALF_TABLE = {
    .name = GEMM_HALF_NAME,
    .rows = gemm_half_rows,
    .columns = gemm_half_columns,
    .float_rows = gemm_half_float_rows,
    .float_columns = gemm_half_float_columns,
    .half_rows = gemm_half_half_rows,
    .half_columns = gemm_half_half_columns,
    .multiply = gemm_half_multiply,
};
