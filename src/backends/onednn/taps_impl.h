/*
 * taps_impl.h - the loops of taps.h for LANES lanes. Included once for each instruction set, by a
 * file that defines LANES, TAPS_TABLE and TAPS_NAME, and what fits into the registers:
 *
 *   TAPS_ROWS    samples of a product, times two vectors of results
 *   TAPS_DEPTH   channels of a gradient, times two vectors; a divisor of LANES
 *
 * Results are sums of products in an order that depends on nothing but the shapes. Must not know
 * calls, tensors or plans.
 */
#include <string.h>

#include "backends/onednn/taps.h"

typedef float vec __attribute__((vector_size(LANES * sizeof(float)), may_alias));
typedef float loose_vec
    __attribute__((vector_size(LANES * sizeof(float)), may_alias, aligned(sizeof(float))));

#include "backends/transpose.h"

#define TAPS_AHEAD 64 /* floats of a row that are fetched before they are needed */

#define TAPS_INLINE static inline __attribute__((always_inline))

TAPS_INLINE vec taps_load(const float *from)
{
    return *(const vec *)from;
}

TAPS_INLINE void taps_store(float *to, vec value)
{
    *(vec *)to = value;
}

/* `rows` samples of `vecs` blocks; both are constants in each use. */
TAPS_INLINE void taps_tile(float *y, const taps_image *ys, const float *x, const taps_image *xs,
                           const float *w, int64_t panel, const float *bias, const taps_sum *sum,
                           int rows, int vecs)
{
    vec acc[TAPS_ROWS][2];

    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vecs; v++)
            acc[r][v] = bias ? taps_load(bias + v * LANES) : (vec){0};
    for (int64_t p = 0; p < sum->pairs; p++) {
        const float *xp = x + sum->pair[p].a, *wp = w + sum->pair[p].b;

        for (int64_t b = 0; b < xs->blocks; b++, xp += xs->block)
            for (int c = 0; c < LANES; c++, wp += LANES) {
                vec weight[2];

                for (int v = 0; v < vecs; v++)
                    weight[v] = taps_load(wp + v * panel);
                for (int r = 0; r < rows; r++)
                    for (int v = 0; v < vecs; v++)
                        acc[r][v] += xp[r * xs->sample + c] * weight[v];
            }
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vecs; v++)
            taps_store(y + r * ys->sample + v * ys->block, acc[r][v]);
}

/* `vecs` is a constant in each use. */
TAPS_INLINE void taps_rows(float *y, const taps_image *ys, const float *x, const taps_image *xs,
                           const float *w, int64_t panel, const float *bias, const taps_sum *sum,
                           int vecs)
{
    const int64_t all = sum->samples;
    int64_t n = 0;

    for (; n + TAPS_ROWS <= all; n += TAPS_ROWS, y += TAPS_ROWS * ys->sample)
        taps_tile(y, ys, x + n * xs->sample, xs, w, panel, bias, sum, TAPS_ROWS, vecs);
    for (; n + 4 <= all; n += 4, y += 4 * ys->sample)
        taps_tile(y, ys, x + n * xs->sample, xs, w, panel, bias, sum, 4, vecs);
    for (; n + 2 <= all; n += 2, y += 2 * ys->sample)
        taps_tile(y, ys, x + n * xs->sample, xs, w, panel, bias, sum, 2, vecs);
    for (; n < all; n++, y += ys->sample)
        taps_tile(y, ys, x + n * xs->sample, xs, w, panel, bias, sum, 1, vecs);
}

static void taps_multiply(float *y, const taps_image *ys, const float *x, const taps_image *xs,
                          const float *w, int64_t panel, const float *bias, int64_t blocks,
                          const taps_sum *sum)
{
    if (blocks == 2)
        taps_rows(y, ys, x, xs, w, panel, bias, sum, 2);
    else
        taps_rows(y, ys, x, xs, w, panel, bias, sum, 1);
}

/* TAPS_DEPTH channels, from x on. */
TAPS_INLINE void taps_depth(float *dw, int64_t panel, const float *x, const taps_image *xs,
                            const float *dy, const taps_image *dys, const taps_sum *sum, int vecs)
{
    vec acc[TAPS_DEPTH][2] = {{{0}}};

    for (int64_t n = 0; n < sum->samples; n++, x += xs->sample, dy += dys->sample)
        for (int64_t p = 0; p < sum->pairs; p++) {
            const float *xp = x + sum->pair[p].a, *dyp = dy + sum->pair[p].b;
            vec d[2];

            for (int v = 0; v < vecs; v++)
                d[v] = taps_load(dyp + v * dys->block);
            for (int c = 0; c < TAPS_DEPTH; c++)
                for (int v = 0; v < vecs; v++)
                    acc[c][v] += xp[c] * d[v];
        }
    for (int c = 0; c < TAPS_DEPTH; c++)
        for (int v = 0; v < vecs; v++)
            taps_store(dw + v * panel + c * LANES, acc[c][v]);
}

static void taps_gradient(float *dw, int64_t panel, const float *x, const taps_image *xs,
                          const float *dy, const taps_image *dys, int64_t blocks,
                          const taps_sum *sum)
{
    for (int64_t b = 0; b < xs->blocks; b++, x += xs->block)
        for (int c = 0; c < LANES; c += TAPS_DEPTH, dw += TAPS_DEPTH * LANES) {
            if (blocks == 2)
                taps_depth(dw, panel, x + c, xs, dy, dys, sum, 2);
            else
                taps_depth(dw, panel, x + c, xs, dy, dys, sum, 1);
        }
}

static void taps_add_up(float *sum, const float *dy, const taps_image *dys, int64_t pixels,
                        int64_t samples, bool add)
{
    vec acc[4] = {{0}}, all;

    for (int64_t n = 0; n < samples; n++, dy += dys->sample) {
        int64_t p = 0;

        for (; p + 4 <= pixels; p += 4)
            for (int k = 0; k < 4; k++)
                acc[k] += taps_load(dy + (p + k) * LANES);
        for (; p < pixels; p++)
            acc[n % 4] += taps_load(dy + p * LANES);
    }
    all = (acc[0] + acc[1]) + (acc[2] + acc[3]);
    for (int l = 0; l < LANES; l++)
        sum[l] = add ? sum[l] + all[l] : all[l];
}

/* Whether so many taps count that moving all of them, in squares, is faster than those alone. */
TAPS_INLINE bool taps_are_many(const taps_weight *shape)
{
    return 3 * shape->taps >= shape->kernel;
}

/* The next element of a row (in, kernel): its place in (taps, in), or -1. */
typedef struct taps_column {
    int64_t c, tap;
} taps_column;

TAPS_INLINE int64_t taps_next_place(taps_column *at, const taps_weight *shape)
{
    const int64_t t = shape->number[at->tap];
    const int64_t place = t < 0 ? -1 : t * shape->in + at->c;

    if (++at->tap == shape->kernel) {
        at->tap = 0;
        at->c++;
    }
    return place;
}

static void taps_pack(float *to, const float *weight, const taps_weight *shape, int64_t k)
{
    const int64_t row = shape->in * shape->kernel;
    const float *from = weight + k * LANES * row;
    taps_column at = {0, 0};

    for (int64_t e = 0; taps_are_many(shape) && e < row; e += LANES) {
        vec v[LANES];

        for (int l = 0; l < LANES; l++) {
            __builtin_prefetch(from + l * row + e + TAPS_AHEAD);
            v[l] = *(const loose_vec *)(from + l * row + e);
        }
        transpose_lanes(v);
        for (int l = 0; l < LANES; l++) {
            const int64_t place = taps_next_place(&at, shape);

            if (place >= 0)
                taps_store(to + place * LANES, v[l]);
        }
    }
    /* Row by row, as processors fetch ahead. */
    for (int l = 0; !taps_are_many(shape) && l < LANES; l++, from += row)
        for (int64_t t = 0; t < shape->taps; t++)
            for (int64_t c = 0; c < shape->in; c++)
                to[(t * shape->in + c) * LANES + l] = from[c * shape->kernel + shape->tap[t]];
}

static void taps_turn(float *to, const float *packed, const taps_weight *shape, int64_t k)
{
    for (int64_t o = 0; o < shape->out; o += LANES, packed += shape->taps * shape->in * LANES)
        for (int64_t t = 0; t < shape->taps; t++) {
            vec v[LANES];

            for (int l = 0; l < LANES; l++)
                v[l] = taps_load(packed + (t * shape->in + k * LANES + l) * LANES);
            transpose_lanes(v);
            for (int l = 0; l < LANES; l++)
                taps_store(to + (t * shape->out + o + l) * LANES, v[l]);
        }
}

/* Squares of the gradient; those of taps that do not count are 0. */
static void taps_unpack_squares(float *to, const float *dw, const taps_weight *shape, bool add)
{
    const int64_t row = shape->in * shape->kernel;
    taps_column at = {0, 0};

    for (int64_t e = 0; e < row; e += LANES) {
        vec v[LANES];

        for (int l = 0; l < LANES; l++) {
            const int64_t place = taps_next_place(&at, shape);

            v[l] = place < 0 ? (vec){0} : taps_load(dw + place * LANES);
        }
        transpose_lanes(v);
        for (int l = 0; l < LANES; l++) {
            loose_vec *g = (loose_vec *)(to + l * row + e);

            if (add)
                v[l] += *g;
            *g = v[l];
        }
    }
}

static void taps_unpack(float *grad, const float *dw, const taps_weight *shape, int64_t k, bool add)
{
    const int64_t row = shape->in * shape->kernel;
    float *to = grad + k * LANES * row;

    if (taps_are_many(shape)) {
        taps_unpack_squares(to, dw, shape, add);
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

const taps_loops TAPS_TABLE = {
    .name = TAPS_NAME,
    .lanes = LANES,
    .multiply = taps_multiply,
    .gradient = taps_gradient,
    .add_up = taps_add_up,
    .pack = taps_pack,
    .turn = taps_turn,
    .unpack = taps_unpack,
};
