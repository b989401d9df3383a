/*
 * small_conv_impl.h - the loops of small_conv.h for LANES lanes. Included once for each instruction
 * set, by a file that defines LANES, SMALL_CONV_TABLE and SMALL_CONV_NAME, and what fits into the
 * registers:
 *
 *   SMALL_CONV_ROWS    samples of a product, times two vectors of results
 *   SMALL_CONV_DEPTH   channels of a gradient, times two vectors; a divisor of LANES
 *
 * For tensors of BF16 that file defines CELL_HALF, too, and what differs: see
 * small_conv_bf16.c. Results are sums of products in an order that depends on nothing but the
 * shapes. Independent of calls, tensors and plans.
 */
#include <string.h>

#include "kernels/cell.h"
#include "kernels/small_conv/small_conv.h"

#ifndef CELL_HALF
#define SMALL_CONV_WORDS LANES /* of a pixel of a block */
#define SMALL_CONV_JOIN  NULL
#define SMALL_CONV_HALVE NULL
#endif

#define SMALL_CONV_AHEAD 64 /* floats of a row to prefetch ahead */

/* The products of the word at x with w; `vecs` is a constant in each use. */
SIMD_INLINE void small_conv_add(vec *sum, const float *x, const vec *w, int vecs)
{
    const cell_factor each = cell_each(x);

    for (int v = 0; v < vecs; v++)
        sum[v] = cell_meet(sum[v], each, w[v]);
}

/* `rows` samples of `vecs` blocks; both are constants in each use. */
SIMD_INLINE void small_conv_tile(cell *y, const small_conv_image *ys, const float *x,
                                 const small_conv_image *xs, const float *w, int64_t panel,
                                 const float *bias, const small_conv_sum *sum, int rows, int vecs)
{
    vec acc[SMALL_CONV_ROWS][2];

    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vecs; v++)
            acc[r][v] = bias ? simd_load(bias + v * LANES) : (vec){0};
    for (int64_t p = 0; p < sum->pairs; p++) {
        const float *xp = x + sum->pair[p].a, *wp = w + sum->pair[p].b;

        for (int64_t b = 0; b < xs->blocks; b++, xp += xs->block)
            for (int c = 0; c < SMALL_CONV_WORDS; c++, wp += LANES) {
                vec weight[2];

                for (int v = 0; v < vecs; v++)
                    weight[v] = simd_load(wp + v * panel);
                for (int r = 0; r < rows; r++)
                    small_conv_add(acc[r], &xp[r * xs->sample + c], weight, vecs);
            }
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vecs; v++)
            cell_store(y + r * ys->sample + v * ys->block, acc[r][v]);
}

/* `vecs` is a constant in each use. */
SIMD_INLINE void small_conv_rows(cell *y, const small_conv_image *ys, const float *x,
                                 const small_conv_image *xs, const float *w, int64_t panel,
                                 const float *bias, const small_conv_sum *sum, int vecs)
{
    const int64_t all = sum->samples;
    int64_t n = 0;

    for (; n + SMALL_CONV_ROWS <= all; n += SMALL_CONV_ROWS, y += SMALL_CONV_ROWS * ys->sample)
        small_conv_tile(y, ys, x + n * xs->sample, xs, w, panel, bias, sum, SMALL_CONV_ROWS, vecs);
    for (; n + 4 <= all; n += 4, y += 4 * ys->sample)
        small_conv_tile(y, ys, x + n * xs->sample, xs, w, panel, bias, sum, 4, vecs);
    for (; n + 2 <= all; n += 2, y += 2 * ys->sample)
        small_conv_tile(y, ys, x + n * xs->sample, xs, w, panel, bias, sum, 2, vecs);
    for (; n < all; n++, y += ys->sample)
        small_conv_tile(y, ys, x + n * xs->sample, xs, w, panel, bias, sum, 1, vecs);
}

static void small_conv_multiply(void *y, const small_conv_image *ys, const float *x,
                                const small_conv_image *xs, const float *w, int64_t panel,
                                const float *bias, int64_t blocks, const small_conv_sum *sum)
{
    if (blocks == 2)
        small_conv_rows(y, ys, x, xs, w, panel, bias, sum, 2);
    else
        small_conv_rows(y, ys, x, xs, w, panel, bias, sum, 1);
}

/* SMALL_CONV_DEPTH channels, from x on. */
SIMD_INLINE void small_conv_depth(float *dw, int64_t panel, const float *x,
                                  const small_conv_image *xs, const float *dy,
                                  const small_conv_image *dys, const small_conv_sum *sum, int vecs)
{
    vec acc[SMALL_CONV_DEPTH][2] = {{{0}}};

    for (int64_t n = 0; n < sum->samples; n++, x += xs->sample, dy += dys->sample)
        for (int64_t p = 0; p < sum->pairs; p++) {
            const float *xp = x + sum->pair[p].a, *dyp = dy + sum->pair[p].b;
            vec d[2];

            for (int v = 0; v < vecs; v++)
                d[v] = simd_load(dyp + v * dys->block);
            for (int c = 0; c < SMALL_CONV_DEPTH; c++)
                small_conv_add(acc[c], &xp[c], d, vecs);
        }
    for (int c = 0; c < SMALL_CONV_DEPTH; c++)
        for (int v = 0; v < vecs; v++)
            simd_store(dw + v * panel + c * LANES, acc[c][v]);
}

static void small_conv_gradient(float *dw, int64_t panel, const float *x,
                                const small_conv_image *xs, const float *dy,
                                const small_conv_image *dys, int64_t blocks,
                                const small_conv_sum *sum)
{
    for (int64_t b = 0; b < xs->blocks; b++, x += xs->block)
        for (int c = 0; c < LANES; c += SMALL_CONV_DEPTH, dw += SMALL_CONV_DEPTH * LANES) {
            if (blocks == 2)
                small_conv_depth(dw, panel, x + c, xs, dy, dys, sum, 2);
            else
                small_conv_depth(dw, panel, x + c, xs, dy, dys, sum, 1);
        }
}

static void small_conv_add_up(float *sum, const void *from, const small_conv_image *dys,
                              int64_t pixels, int64_t samples, bool add)
{
    const cell *dy = from;
    vec acc[4] = {{0}}, all;

    for (int64_t n = 0; n < samples; n++, dy += dys->sample) {
        int64_t p = 0;

        for (; p + 4 <= pixels; p += 4)
            for (int k = 0; k < 4; k++)
                acc[k] += cell_load(dy + (p + k) * LANES);
        for (; p < pixels; p++)
            acc[n % 4] += cell_load(dy + p * LANES);
    }
    all = (acc[0] + acc[1]) + (acc[2] + acc[3]);
    for (int l = 0; l < LANES; l++)
        sum[l] = add ? sum[l] + all[l] : all[l];
}

/* Whether so many taps are used that transposing all of them, in squares, is faster than only
   those. */
SIMD_INLINE bool small_conv_are_many(const small_conv_weight *shape)
{
    return 3 * shape->taps >= shape->kernel;
}

/* The next element of a row (in, kernel): its index in (taps, in), or -1. */
typedef struct small_conv_column {
    int64_t c, tap;
} small_conv_column;

SIMD_INLINE int64_t small_conv_next_place(small_conv_column *at, const small_conv_weight *shape)
{
    const int64_t t = shape->number[at->tap];
    const int64_t place = t < 0 ? -1 : t * shape->in + at->c;

    if (++at->tap == shape->kernel) {
        at->tap = 0;
        at->c++;
    }
    return place;
}

static void small_conv_pack(float *to, const float *weight, const small_conv_weight *shape,
                            int64_t k)
{
    const int64_t row = shape->in * shape->kernel;
    const float *from = weight + k * LANES * row;
    small_conv_column at = {0, 0};

    for (int64_t e = 0; small_conv_are_many(shape) && e < row; e += LANES) {
        vec v[LANES];

        for (int l = 0; l < LANES; l++) {
            __builtin_prefetch(from + l * row + e + SMALL_CONV_AHEAD);
            v[l] = simd_load_any(from + l * row + e);
        }
        simd_transpose(v);
        for (int l = 0; l < LANES; l++) {
            const int64_t place = small_conv_next_place(&at, shape);

            if (place >= 0)
                simd_store(to + place * LANES, v[l]);
        }
    }
    /* Row by row, for the hardware prefetcher. */
    for (int l = 0; !small_conv_are_many(shape) && l < LANES; l++, from += row)
        for (int64_t t = 0; t < shape->taps; t++)
            for (int64_t c = 0; c < shape->in; c++)
                to[(t * shape->in + c) * LANES + l] = from[c * shape->kernel + shape->tap[t]];
}

static void small_conv_turn(float *to, const float *packed, const small_conv_weight *shape,
                            int64_t k)
{
    for (int64_t o = 0; o < shape->out; o += LANES, packed += shape->taps * shape->in * LANES)
        for (int64_t t = 0; t < shape->taps; t++) {
            vec v[LANES];

            for (int l = 0; l < LANES; l++)
                v[l] = simd_load(packed + (t * shape->in + k * LANES + l) * LANES);
            simd_transpose(v);
            for (int l = 0; l < LANES; l++)
                simd_store(to + (t * shape->out + o + l) * LANES, v[l]);
        }
}

/* Squares of the gradient; taps that are not used get 0. */
static void small_conv_unpack_squares(float *to, const float *dw, const small_conv_weight *shape,
                                      bool add)
{
    const int64_t row = shape->in * shape->kernel;
    small_conv_column at = {0, 0};

    for (int64_t e = 0; e < row; e += LANES) {
        vec v[LANES];

        for (int l = 0; l < LANES; l++) {
            const int64_t place = small_conv_next_place(&at, shape);

            v[l] = place < 0 ? (vec){0} : simd_load(dw + place * LANES);
        }
        simd_transpose(v);
        for (int l = 0; l < LANES; l++) {
            loose_vec *g = (loose_vec *)(to + l * row + e);

            if (add)
                v[l] += *g;
            *g = v[l];
        }
    }
}

static void small_conv_unpack(float *grad, const float *dw, const small_conv_weight *shape,
                              int64_t k, bool add)
{
    const int64_t row = shape->in * shape->kernel;
    float *to = grad + k * LANES * row;

    if (small_conv_are_many(shape)) {
        small_conv_unpack_squares(to, dw, shape, add);
        return;
    }
    for (int l = 0; l < LANES; l++, to += row) {
        if (!add)
            memset(to, 0, (size_t)row * sizeof(float));
        for (int64_t t = 0; t < shape->taps; t++)
            for (int64_t c = 0; c < shape->in; c++) {
                const float d = dw[(t * shape->in + c) * LANES + l];
                float *g = &to[c * shape->kernel + shape->tap[t]];

                *g = add ? *g + d : d;
            }
    }
}

const small_conv_loops SMALL_CONV_TABLE = {
    .name = SMALL_CONV_NAME,
    .lanes = LANES,
    .words = SMALL_CONV_WORDS,
    .cell = sizeof(cell),
    .multiply = small_conv_multiply,
    .gradient = small_conv_gradient,
    .add_up = small_conv_add_up,
    .join = SMALL_CONV_JOIN,
    .halve = SMALL_CONV_HALVE,
    .pack = small_conv_pack,
    .turn = small_conv_turn,
    .unpack = small_conv_unpack,
};
