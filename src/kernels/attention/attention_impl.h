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
#include "kernels/simd_exp.h"
#include "kernels/simd_random.h"

#define ROWS ATTENTION_ROWS
/* Vectors of results beside each other, for each of the rows: as many as registers hold. */
#if LANES == 16 || defined(__aarch64__)
#define ATTENTION_VECTORS 2
#else
#define ATTENTION_VECTORS 1
#endif

/* A block of rows of a matrix; those behind its end are the last one again. */
typedef struct attention_rows {
    const float *row[ROWS];
} attention_rows;

static int64_t attention_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Positions in whole blocks of panels. */
static int64_t attention_width(int64_t length)
{
    const int64_t block = LANES * ATTENTION_VECTORS;

    return (length + block - 1) / block * block;
}

/* Packed keys and values, and two blocks of rows; factors of a row, by groups of words. */
static size_t attention_room(const attention_shape *shape)
{
    const size_t width = (size_t)attention_width(shape->length);

    return width * (size_t)(2 * shape->size + 2 * ROWS) +
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

    for (int64_t r = 0; r < ROWS; r++)
        out.row[r] = from + attention_least(r, n - 1) * step;
    return out;
}

/* to (ROWS, width)[r][s] = a[r] . position s, for the positions below `end`, in whole blocks. */
static void attention_products(float *to, const attention_rows *a, const float *panels, int64_t end,
                               const attention_shape *shape)
{
    const int64_t width = attention_width(shape->length), size = shape->size;

    for (int64_t s = 0; s < end; s += LANES * ATTENTION_VECTORS) {
        const float *panel = panels + s * size;
        vec sum[ROWS][ATTENTION_VECTORS] = {{{0}}};

        for (int64_t d = 0; d < size; d++) {
            vec x[ATTENTION_VECTORS];

            SIMD_UNROLL(2)
            for (int v = 0; v < ATTENTION_VECTORS; v++)
                x[v] = simd_load_any(panel + (v * size + d) * LANES);
            SIMD_UNROLL(8)
            for (int r = 0; r < ROWS; r++) {
                SIMD_UNROLL(2)
                for (int v = 0; v < ATTENTION_VECTORS; v++)
                    sum[r][v] += x[v] * a->row[r][d];
            }
        }
        SIMD_UNROLL(8)
        for (int r = 0; r < ROWS; r++) {
            SIMD_UNROLL(2)
            for (int v = 0; v < ATTENTION_VECTORS; v++)
                simd_store_any(to + r * width + s + v * LANES, sum[r][v]);
        }
    }
}

/* to[r] = sum over s < end of weight[r][s] times row s of `from`, for n rows. */
static void attention_mix(float *to, int64_t to_step, const float *weight, const float *from,
                          int64_t n, int64_t end, const attention_shape *shape)
{
    const int64_t width = attention_width(shape->length), size = shape->size;
    int64_t d = 0;

    for (; d + LANES <= size; d += LANES) {
        vec sum[ROWS] = {{0}};

        for (int64_t s = 0; s < end; s++) {
            const vec x = simd_load_any(from + s * shape->in + d);

            SIMD_UNROLL(8)
            for (int r = 0; r < ROWS; r++)
                sum[r] += x * weight[r * width + s];
        }
        for (int64_t r = 0; r < n; r++)
            simd_store_any(to + r * to_step + d, sum[r]);
    }
    for (; d < size; d++)
        for (int64_t r = 0; r < n; r++) {
            float sum = 0;

            for (int64_t s = 0; s < end; s++)
                sum += weight[r * width + s] * from[s * shape->in + d];
            to[r * to_step + d] = sum;
        }
}

/* Row s of `to` += sum over r of weight[r][s] a[r], for s < end. */
static void attention_spread(float *to, const float *weight, const attention_rows *a, int64_t end,
                             const attention_shape *shape)
{
    const int64_t width = attention_width(shape->length), size = shape->size;
    int64_t d = 0;

    for (; d + LANES <= size; d += LANES) {
        vec x[ROWS];

        SIMD_UNROLL(8)
        for (int r = 0; r < ROWS; r++)
            x[r] = simd_load_any(a->row[r] + d);
        for (int64_t s = 0; s < end; s++) {
            float *row = to + s * shape->in + d;
            vec sum = simd_load_any(row);

            SIMD_UNROLL(8)
            for (int r = 0; r < ROWS; r++)
                sum += x[r] * weight[r * width + s];
            simd_store_any(row, sum);
        }
    }
    for (; d < size; d++)
        for (int64_t s = 0; s < end; s++)
            for (int r = 0; r < ROWS; r++)
                to[s * shape->in + d] += weight[r * width + s] * a->row[r][d];
}

/* The first `seen` products of a row become weights that add up to 1, others up to `end` zeros;
   returns the logarithm of the sum of exponentials. */
static float attention_softmax(float *p, int64_t seen, int64_t end, float scale)
{
    float most = -INFINITY, sum = 0;
    vec high = simd_splat(-INFINITY), all = {0};

    for (int64_t s = seen; s < end; s++)
        p[s] = -INFINITY;
    for (int64_t s = 0; s < end; s += LANES) {
        const vec x = simd_load_any(p + s) * scale;

        high = simd_select((ivec)(x > high), x, high);
    }
    for (int l = 0; l < LANES; l++)
        most = high[l] > most ? high[l] : most;
    for (int64_t s = 0; s < end; s += LANES)
        simd_store_any(p + s, simd_exp(simd_load_any(p + s) * scale - most));
    for (int64_t s = seen; s < end; s++)
        p[s] = 0;
    for (int64_t s = 0; s < end; s += LANES)
        all += simd_load_any(p + s);
    for (int l = 0; l < LANES; l++)
        sum += all[l];
    for (int64_t s = 0; s < end; s += LANES)
        simd_store_any(p + s, simd_load_any(p + s) / sum);
    return (float)((double)most + log((double)sum));
}

/* Positions that row t looks at, and that any of the rows before `last` does. */
static int64_t attention_seen(const attention_shape *shape, int64_t t)
{
    return shape->causal ? t + 1 : shape->length;
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
    float *keys = room, *p = keys + 2 * width * shape->size, *factors = p + 2 * ROWS * width;

    attention_pack(keys, x->k, shape);
    for (int64_t t = 0; t < shape->length; t += ROWS) {
        const int64_t n = attention_least(ROWS, shape->length - t);
        const int64_t seen = attention_seen(shape, t + n - 1), end = attention_width(seen);
        const attention_rows q = attention_find_rows(x->q + t * shape->in, shape->in, n);

        attention_products(p, &q, keys, end, shape);
        for (int64_t r = 0; r < n; r++) {
            norm[t + r] =
                attention_softmax(p + r * width, attention_seen(shape, t + r), end, shape->scale);
            if (shape->drops)
                attention_drop(p + r * width, attention_draw(factors, dropout, t + r, end, shape),
                               end);
        }
        attention_mix(y + t * shape->out, shape->out, p, x->v, n, seen, shape);
    }
}

/* From products with keys (p) and with values (dp) to weights and what goes back to products. */
static void attention_weigh(float *p, float *dp, float norm, float mean, int64_t seen, int64_t end,
                            float scale)
{
    for (int64_t s = 0; s < seen; s += LANES) {
        const vec x = simd_load_any(p + s) * scale - norm;
        const vec weight = simd_exp(simd_select((ivec)(x < 0.0f), x, simd_splat(0)));

        simd_store_any(p + s, weight);
        simd_store_any(dp + s, weight * (simd_load_any(dp + s) - mean) * scale);
    }
    memset(p + seen, 0, (size_t)(end - seen) * sizeof(*p));
    memset(dp + seen, 0, (size_t)(end - seen) * sizeof(*dp));
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

static float attention_dot(const float *a, const float *b, int64_t n)
{
    float sum = 0;
    vec all = {0};
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        all += simd_load_any(a + i) * simd_load_any(b + i);
    for (; i < n; i++)
        sum += a[i] * b[i];
    for (int l = 0; l < LANES; l++)
        sum += all[l];
    return sum;
}

/* As p adds up to 1, the mean of dp over the weights is the product of result and gradient, also
   where weights are dropped. */
static void attention_backward(const attention_head *dx, const attention_head *x, const float *y,
                               const float *dy, const float *norm, const attention_dropout *dropout,
                               float *room, const attention_shape *shape)
{
    const int64_t width = attention_width(shape->length);
    float *keys = room, *values = keys + width * shape->size;
    float *p = values + width * shape->size, *dp = p + ROWS * width, *factors = dp + ROWS * width;

    attention_pack(keys, x->k, shape);
    attention_pack(values, x->v, shape);
    for (int64_t t = 0; t < shape->length; t += ROWS) {
        const int64_t n = attention_least(ROWS, shape->length - t);
        const int64_t seen = attention_seen(shape, t + n - 1), end = attention_width(seen);
        const attention_rows q = attention_find_rows(x->q + t * shape->in, shape->in, n);
        const attention_rows g = attention_find_rows(dy + t * shape->out, shape->out, n);

        attention_products(p, &q, keys, end, shape);
        attention_products(dp, &g, values, end, shape);
        for (int64_t r = 0; r < n; r++) {
            const int64_t at = (t + r) * shape->out, own = attention_seen(shape, t + r);
            const float mean = attention_dot(y + at, dy + at, shape->size);

            if (shape->drops)
                attention_weigh_dropped(
                    p + r * width, dp + r * width,
                    attention_draw(factors, dropout, t + r, attention_width(own), shape),
                    norm[t + r], mean, own, end, shape->scale);
            else
                attention_weigh(p + r * width, dp + r * width, norm[t + r], mean, own, end,
                                shape->scale);
        }
        for (int64_t r = n; r < ROWS; r++) {
            memset(p + r * width, 0, (size_t)end * sizeof(*p));
            memset(dp + r * width, 0, (size_t)end * sizeof(*dp));
        }
        attention_mix(dx->q + t * shape->in, shape->in, dp, x->k, n, seen, shape);
        attention_spread(dx->k, dp, &q, seen, shape);
        attention_spread(dx->v, p, &g, seen, shape);
    }
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
    int64_t d = 0;

    for (int64_t s = 0; s < seen; s++)
        p[s] = attention_dot(x->q, x->k + s * step, size);
    (void)attention_softmax(p, seen, attention_width(seen), shape->scale);
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
