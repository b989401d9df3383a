/* warp_serial.h - the words of kernels/cuda/warp.h on a host, one thread after another. */
#ifndef TESTS_STANDIN_WARP_SERIAL_H
#define TESTS_STANDIN_WARP_SERIAL_H

#include <math.h>

#include "kernels/cuda/warp.h"

#define ALONE                PHASE
#define OWNED(type, name, n) type(*name)[n]
#define UNROLL(i, n)         for (uint32_t i = 0; i < (n); i++)
#define LOAD_AS_ROWS(b, i, tile, step, row, column)                                                \
    PHASE                                                                                          \
    serial_load_rows(&MINE(b)[i], tile, step, row, column)
#define LOAD_AS_COLUMNS(b, i, tile, step, row, column)                                             \
    PHASE                                                                                          \
    serial_load_columns(&MINE(b)[i], tile, step, row, column)
/* From a thread's element to the next one's. */
#define SERIAL_STEP(v) (sizeof((v)[0]) / sizeof((v)[0][0]))
#define MULTIPLY_ADD(c, i, a, j, b, k, type)                                                       \
    do {                                                                                           \
        serial_multiply_add(&(c)[0][i], SERIAL_STEP(c), &(a)[0][j], SERIAL_STEP(a), &(b)[0][k],    \
                            SERIAL_STEP(b), type);                                                 \
    } while (0)
#define QUAD_MAX(v, i)        serial_quads(&(v)[0][i], SERIAL_STEP(v), true)
#define QUAD_SUM(v, i)        serial_quads(&(v)[0][i], SERIAL_STEP(v), false)
#define PAIR(low, high, type) (element_round(low, type) | (uint32_t)element_round(high, type) << 16)

static inline uint32_t serial_number(const elements_16 *tile, uint32_t at)
{
    return tile[at / CUDA_TOGETHER].pair[at % CUDA_TOGETHER / 2] >> at % 2 * 16 & 0xffff;
}

/* Of column n of the factor the rows 2 t and 2 t + 1, and 8 later, by the thread 4 n + t; of 8
   columns, then of the next 8. */
static inline void serial_load_rows(warp_block *to, const elements_16 *tile, uint32_t step,
                                    uint32_t row, uint32_t column)
{
    for (uint32_t r = 0; r < 4; r++) {
        const uint32_t k = row + r % 2 * 8 + LANE % 4 * 2, n = column + r / 2 * 8 + LANE / 4;

        to->v[r] = serial_number(tile, k * step + n) | serial_number(tile, (k + 1) * step + n)
                                                           << 16;
    }
}

static inline void serial_load_columns(warp_block *to, const elements_16 *tile, uint32_t step,
                                       uint32_t row, uint32_t column)
{
    for (uint32_t r = 0; r < 4; r++) {
        const uint32_t n = row + r / 2 * 8 + LANE / 4, k = column + r % 2 * 8 + LANE % 4 * 2;

        to->v[r] = serial_number(tile, n * step + k) | serial_number(tile, n * step + k + 1) << 16;
    }
}

/* Element (row, column) of what a warp has as a left factor, or a right one. */
static inline float serial_left(const warp_block *a, size_t step, uint32_t row, uint32_t column,
                                cuda_number type)
{
    const uint32_t pair =
        a[(row % 8 * 4 + column % 8 / 2) * step].v[row / 8 + column / 8 * 2] >> column % 2 * 16;

    return element_widen((uint16_t)pair, type);
}

static inline float serial_right(const warp_block *b, size_t step, uint32_t row, uint32_t column,
                                 cuda_number type)
{
    const uint32_t pair =
        b[(column % 8 * 4 + row % 8 / 2) * step].v[column / 8 * 2 + row / 8] >> row % 2 * 16;

    return element_widen((uint16_t)pair, type);
}

static inline void serial_multiply_add(warp_sums *c, size_t c_step, const warp_block *a,
                                       size_t a_step, const warp_block *b, size_t b_step,
                                       cuda_number type)
{
    float left[16][16], right[16][16];

    for (uint32_t first = 0; first < THREADS; first += WARP_THREADS) {
        for (uint32_t e = 0; e < 256; e++) {
            left[e / 16][e % 16] = serial_left(a + first * a_step, a_step, e / 16, e % 16, type);
            right[e / 16][e % 16] = serial_right(b + first * b_step, b_step, e / 16, e % 16, type);
        }
        for (uint32_t e = 0; e < 256; e++) {
            const uint32_t row = e / 16, column = e % 16;
            const uint32_t lane = row % 8 * 4 + column % 8 / 2;
            float *sum = &c[(first + lane) * c_step + column / 8].v[row / 8 * 2 + column % 2];

            for (uint32_t k = 0; k < 16; k++)
                *sum += left[row][k] * right[k][column];
        }
    }
}

static inline void serial_quads(float *v, size_t step, bool max)
{
    for (uint32_t first = 0; first < THREADS; first += 4) {
        float *at = v + first * step, all = at[0];

        for (uint32_t i = 1; i < 4; i++)
            all = max ? fmaxf(all, at[i * step]) : all + at[i * step];
        for (uint32_t i = 0; i < 4; i++)
            at[i * step] = all;
    }
}

#endif
