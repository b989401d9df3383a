/*
 * attention_impl.h - the loops of attention.h for LANES lanes. Included once for each level of
 * instructions, by a file that defines LANES and ATTENTION_TABLE.
 *
 * Keys and values are packed into panels, (panels, size, LANES), of which lane l of panel p belongs
 * to position p * LANES + l: a product of rows with all positions then reads whole vectors. Behind
 * the last position there are zeros.
 */
#include <math.h>
#include <string.h>

#include "kernels/attention/attention.h"
#include "kernels/simd_random.h"

/* Rows of a tile, whose sums of two vectors each are in registers, and rows of a block. */
#if LANES == 16 || defined(__aarch64__)
#define ATTENTION_TILE 8
#else
#define ATTENTION_TILE 6
#endif
#define ATTENTION_BLOCK (4 * ATTENTION_TILE)

/* Where the numbers of a tile's rows are; those after its end are the last one again. */
typedef struct attention_rows {
    const float *row[ATTENTION_TILE];
} attention_rows;

static int64_t attention_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t attention_round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* Positions in whole pairs of panels. */
static int64_t attention_width(int64_t length)
{
    return attention_round_up(length, 2 * LANES);
}

/* Packed keys and values, and two blocks of rows, the last of which is read beyond its end; factors
   of a row, by groups of words. */
static size_t attention_room(const attention_shape *shape)
{
    const size_t width = (size_t)attention_width(shape->length);

    return width * (size_t)(2 * shape->size + 2 * ATTENTION_BLOCK) + ATTENTION_TILE +
           (shape->drops ? width + 2 * SIMD_RANDOM_WORDS : 0);
}

/* LANES positions from s, of numbers d, d + 1, ... */
static void attention_pack_square(float *to, const float *from, int64_t s, int64_t d,
                                  const attention_shape *shape)
{
    const int64_t some = attention_least(LANES, shape->size - d);
    vec v[LANES];

    SIMD_UNROLL(16) for (int l = 0; l < LANES; l++)
    {
        const float *row = from + (s + l) * shape->in + d;

        v[l] = s + l >= shape->length ? (vec){0}
               : some == LANES        ? simd_load_any(row)
                                      : simd_load_some(row, some);
    }
    simd_transpose(v);
    for (int64_t i = 0; i < some; i++)
        simd_store_any(to + i * LANES, v[i]);
}

static void attention_pack(float *to, const float *from, const attention_shape *shape)
{
    const int64_t width = attention_width(shape->length);

    for (int64_t s = 0; s < width; s += LANES)
        for (int64_t d = 0; d < shape->size; d += LANES)
            attention_pack_square(to + s * shape->size + d * LANES, from, s, d, shape);
}

static attention_rows attention_find_rows(const float *from, int64_t step, int64_t n)
{
    attention_rows out;

    for (int64_t r = 0; r < ATTENTION_TILE; r++)
        out.row[r] = from + attention_least(r, n - 1) * step;
    return out;
}

/* Two vectors, or a part of one, for each of n rows: sums over `terms` of
   number->row[r][i * step] times the vectors at from + i * from_step. */
typedef struct attention_sums {
    float *to;
    int64_t to_step, n;
    const attention_rows *number;
    int64_t step;
    const float *from;
    int64_t from_step, second; /* from the first vector to the second */
    int64_t terms;
    const float *scale; /* of each row's sums; NULL: none */
    bool add;           /* to what is there */
} attention_sums;

/* `width` numbers of a row: of two vectors, of one, or fewer. */
SIMD_INLINE void attention_add_up(const attention_sums *s, int64_t width, const int vectors,
                                  const bool whole)
{
    const attention_rows number = *s->number;
    const float *from = s->from;
    vec sum[ATTENTION_TILE][2];

    SIMD_UNROLL(8)
    for (int r = 0; r < ATTENTION_TILE; r++)
        sum[r][0] = sum[r][1] = (vec){0};
    SIMD_UNROLL_BY(2)
    for (int64_t i = 0, at = 0; i < s->terms; i++, at += s->step, from += s->from_step) {
        vec x[2];

        SIMD_UNROLL(2)
        for (int v = 0; v < vectors; v++)
            x[v] = whole ? simd_load_any(from + v * s->second) : simd_load_some(from, width);
        SIMD_UNROLL(8)
        for (int r = 0; r < ATTENTION_TILE; r++)
            simd_add_each(sum[r], number.row[r] + at, x, vectors, r % 2 == 1);
    }
    SIMD_UNROLL(8)
    for (int r = 0; r < ATTENTION_TILE; r++) {
        if (r < s->n) {
            float *to = s->to + r * s->to_step;

            SIMD_UNROLL(2)
            for (int v = 0; v < vectors; v++, to += LANES) {
                vec all = sum[r][v];

                if (s->scale)
                    all *= s->scale[r];
                if (s->add)
                    all += whole ? simd_load_any(to) : simd_load_some(to, width);
                if (whole)
                    simd_store_any(to, all);
                else
                    simd_store_some(to, all, width);
            }
        }
    }
}

/* All numbers of rows of `size`, from rows that are s.from_step after each other. */
static void attention_add_rows(attention_sums s, int64_t size)
{
    int64_t d = 0;

    s.second = LANES;
    for (; d + 2 * LANES <= size; d += 2 * LANES, s.to += 2 * LANES, s.from += 2 * LANES)
        attention_add_up(&s, 2 * LANES, 2, true);
    for (; d + LANES <= size; d += LANES, s.to += LANES, s.from += LANES)
        attention_add_up(&s, LANES, 1, true);
    if (d < size)
        attention_add_up(&s, size - d, 1, false);
}

/* Positions that row t looks at. */
static int64_t attention_seen(const attention_shape *shape, int64_t t)
{
    return shape->causal ? t + 1 : shape->length;
}

/* Positions that any of the rows of a block looks at, those of a tile of it alone. */
typedef struct attention_part {
    int64_t t, n, seen;
} attention_part;

static attention_part attention_find_part(const attention_shape *shape, int64_t t, int64_t rows,
                                          int64_t end)
{
    const int64_t n = attention_least(rows, end - t);

    return (attention_part){t, n, attention_seen(shape, t + n - 1)};
}

#include "kernels/attention/attention_softmax.h"

/* to (block, width)[r][s] = the product of row t + r of `from`, whose rows are `step` numbers after
   each other, with position s: for those that a tile looks at, in whole pairs of panels. */
static void attention_products(float *to, const float *from, int64_t step, const float *panels,
                               const attention_part *block, const attention_shape *shape)
{
    const int64_t width = attention_width(shape->length), last = block->t + block->n;

    for (int64_t s = 0; s < block->seen; s += 2 * LANES)
        for (int64_t t = block->t; t < last; t += ATTENTION_TILE) {
            const attention_part tile = attention_find_part(shape, t, ATTENTION_TILE, last);
            const attention_rows number = attention_find_rows(from + t * step, step, tile.n);

            const attention_sums sums = {.to = to + (t - block->t) * width + s,
                                         .to_step = width,
                                         .n = tile.n,
                                         .number = &number,
                                         .step = 1,
                                         .from = panels + s * shape->size,
                                         .from_step = LANES,
                                         .second = shape->size * LANES,
                                         .terms = shape->size};

            if (s + LANES < tile.seen)
                attention_add_up(&sums, 2 * LANES, 2, true);
            else if (s < tile.seen)
                attention_add_up(&sums, LANES, 1, true);
        }
}

/* Rows of `to`, `step` after each other: sums over the positions that a row looks at of
   weight[r][s] scale[r] times row s of `from`. */
static void attention_mix(float *to, int64_t step, const float *weight, const float *scale,
                          const float *from, const attention_part *block,
                          const attention_shape *shape)
{
    const int64_t width = attention_width(shape->length), last = block->t + block->n;

    for (int64_t t = block->t; t < last; t += ATTENTION_TILE) {
        const attention_part tile = attention_find_part(shape, t, ATTENTION_TILE, last);
        const int64_t r = t - block->t;
        const attention_rows number = attention_find_rows(weight + r * width, width, tile.n);

        attention_add_rows((attention_sums){.to = to + t * step,
                                            .to_step = step,
                                            .n = tile.n,
                                            .number = &number,
                                            .step = 1,
                                            .from = from,
                                            .from_step = shape->in,
                                            .terms = tile.seen,
                                            .scale = scale ? scale + r : NULL},
                           shape->size);
    }
}

/* Row s of `to` += the sum over r of weight[r][s] times row t + r of `from`, whose rows are `step`
   numbers after each other. */
static void attention_spread(float *to, const float *weight, const float *from, int64_t step,
                             const attention_part *block, const attention_shape *shape)
{
    const int64_t width = attention_width(shape->length);

    for (int64_t s = 0; s < block->seen; s += ATTENTION_TILE) {
        /* Rows before position s do not look at it. */
        const int64_t r = shape->causal && s > block->t ? s - block->t : 0;
        const attention_rows number =
            attention_find_rows(weight + r * width + s, 1, ATTENTION_TILE);

        attention_add_rows((attention_sums){.to = to + s * shape->in,
                                            .to_step = shape->in,
                                            .n = attention_least(ATTENTION_TILE, block->seen - s),
                                            .number = &number,
                                            .step = width,
                                            .from = from + (block->t + r) * step,
                                            .from_step = step,
                                            .terms = block->n - r,
                                            .add = true},
                           shape->size);
    }
}

/* By what the first `n` weights of row t are multiplied. A block of words may begin in the row
   before. */
static const float *attention_draw(float *to, const attention_dropout *dropout, int64_t t,
                                   int64_t n, const attention_shape *shape)
{
    const uint64_t first = dropout->first + (uint64_t)(t * shape->length);
    const int64_t before = (int64_t)(first % 4);
    uint32_t block = (uint32_t)(first / 4);

    for (int64_t s = 0; s < before + n; s += SIMD_RANDOM_WORDS, block += LANES) {
        uvec word[4];

        simd_random_words(word, &dropout->rng, block);
        for (int i = 0; i < 4; i++)
            simd_store_any(to + s + i * LANES,
                           simd_select((ivec)((word[i] >> 8) < dropout->below), simd_splat(0),
                                       simd_splat(dropout->scale)));
    }
    return to + before;
}

static void attention_drop(float *p, const float *factor, int64_t end)
{
    for (int64_t s = 0; s < end; s += LANES)
        simd_store_any(p + s, simd_load_any(p + s) * simd_load_any(factor + s));
}

static void attention_forward(float *y, float *norm, const attention_head *x,
                              const attention_dropout *dropout, float *room,
                              const attention_shape *shape)
{
    const int64_t width = attention_width(shape->length);
    float *keys = room, *p = keys + 2 * width * shape->size;
    float *factors = p + 2 * ATTENTION_BLOCK * width + ATTENTION_TILE;

    attention_pack(keys, x->k, shape);
    for (int64_t t = 0; t < shape->length; t += ATTENTION_BLOCK) {
        const attention_part block = attention_find_part(shape, t, ATTENTION_BLOCK, shape->length);
        const int64_t end = attention_width(block.seen);
        float inverse[ATTENTION_BLOCK];

        attention_products(p, x->q, shape->in, keys, &block, shape);
        attention_softmax(p, width, inverse, norm + t, end, &block, shape);
        for (int64_t r = 0; shape->drops && r < block.n; r++) {
            const int64_t own = attention_seen(shape, t + r);

            attention_drop(
                p + r * width,
                attention_draw(factors, dropout, t + r, attention_round_up(own, LANES), shape),
                own);
        }
        attention_mix(y, shape->out, p, inverse, x->v, &block, shape);
    }
}

/* The same where a weight is multiplied by a factor after the softmax, and so is its gradient. */
static void attention_weigh_dropped(float *p, float *dp, const float *factor, float norm,
                                    float mean, int64_t seen, int64_t end, float scale)
{
    for (int64_t s = 0; s < seen; s += LANES)
        simd_store_any(dp + s, simd_load_any(dp + s) * simd_load_any(factor + s));
    attention_weigh(p, dp, norm, mean, seen, end, scale);
    attention_drop(p, factor, seen);
}

/* As p adds up to 1, the mean of dp over the weights is the product of result and gradient, also
   where weights are dropped. */
static void attention_backward(const attention_head *dx, const attention_head *x, const float *y,
                               const float *dy, const float *norm, const attention_dropout *dropout,
                               float *room, const attention_shape *shape)
{
    const int64_t width = attention_width(shape->length);
    float *keys = room, *values = keys + width * shape->size;
    float *p = values + width * shape->size, *dp = p + ATTENTION_BLOCK * width;
    float *factors = dp + ATTENTION_BLOCK * width + ATTENTION_TILE;

    attention_pack(keys, x->k, shape);
    attention_pack(values, x->v, shape);
    for (int64_t t = 0; t < shape->length; t += ATTENTION_BLOCK) {
        const attention_part block = attention_find_part(shape, t, ATTENTION_BLOCK, shape->length);
        const int64_t end = attention_width(block.seen);
        float mean[ATTENTION_BLOCK];

        attention_dots(mean, y + t * shape->out, dy + t * shape->out, shape->out, block.n,
                       shape->size);
        attention_products(p, x->q, shape->in, keys, &block, shape);
        attention_products(dp, dy, shape->out, values, &block, shape);
        for (int64_t r = 0; r < block.n; r++) {
            const int64_t own = attention_seen(shape, t + r);

            if (shape->drops)
                attention_weigh_dropped(
                    p + r * width, dp + r * width,
                    attention_draw(factors, dropout, t + r, attention_round_up(own, LANES), shape),
                    norm[t + r], mean[r], own, end, shape->scale);
            else
                attention_weigh(p + r * width, dp + r * width, norm[t + r], mean[r], own, end,
                                shape->scale);
        }
        attention_mix(dx->q, shape->in, dp, NULL, x->k, &block, shape);
        attention_spread(dx->k, dp, x->q, shape->in, &block, shape);
        attention_spread(dx->v, p, dy, shape->out, &block, shape);
    }
}

static float attention_dot(const float *a, const float *b, int64_t n)
{
    float sum = 0;
    vec all = {0};
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        all += simd_load_any(a + i) * simd_load_any(b + i);
    for (; i < n; i++)
        sum += a[i] * b[i];
    return sum + simd_add_up(all);
}

/* Vectors of a result that are summed at once. */
#define ATTENTION_RUN 4

/* to = sum over s < seen of weight[s] times `n` whole vectors of row s. */
static void attention_mix_run(float *to, const float *weight, const float *from, int64_t n,
                              int64_t seen, int64_t step)
{
    vec sum[ATTENTION_RUN] = {{0}};

    for (int64_t s = 0; s < seen; s++)
        for (int64_t i = 0; i < n; i++)
            sum[i] += simd_load_any(from + s * step + i * LANES) * weight[s];
    for (int64_t i = 0; i < n; i++)
        simd_store_any(to + i * LANES, sum[i]);
}

static size_t attention_decode_room(const attention_shape *shape)
{
    return (size_t)attention_width(shape->length);
}

static void attention_decode(float *y, const attention_head *x, int64_t seen, float *p,
                             const attention_shape *shape)
{
    const int64_t size = shape->size, step = shape->in;
    const attention_part last = {seen - 1, 1, seen};
    float inverse[LANES], norm;
    int64_t d = 0;

    for (int64_t s = 0; s < seen; s++)
        p[s] = attention_dot(x->q, x->k + s * step, size);
    attention_softmax(p, 0, inverse, &norm, seen, &last, shape);
    for (int64_t s = 0; s < seen; s++)
        p[s] *= inverse[0];
    for (; d + ATTENTION_RUN * LANES <= size; d += ATTENTION_RUN * LANES)
        attention_mix_run(y + d, p, x->v + d, ATTENTION_RUN, seen, step);
    for (; d + LANES <= size; d += LANES)
        attention_mix_run(y + d, p, x->v + d, 1, seen, step);
    for (; d < size; d++) {
        y[d] = 0;
        for (int64_t s = 0; s < seen; s++)
            y[d] += p[s] * x->v[s * step + d];
    }
}

const attention_loops ATTENTION_TABLE = {
    .room = attention_room,
    .forward = attention_forward,
    .decode = attention_decode,
    .decode_room = attention_decode_room,
    .backward = attention_backward,
};
