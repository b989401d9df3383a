/*
 * attention_softmax.h - what is between the products of attention, of LANES rows at a time: a
 * number of each row is a lane, found from a vector of each by turning them. Part of
 * attention_impl.h.
 */
#ifndef CO_KERNELS_ATTENTION_SOFTMAX_H
#define CO_KERNELS_ATTENTION_SOFTMAX_H

#include <math.h>

#include "kernels/simd_exp.h"
#include "kernels/simd_log.h"

/* LANES products of positions from s, of which a row looks at `seen`; for others `rest`. */
SIMD_INLINE vec attention_mask(vec x, int64_t s, int64_t seen, float rest)
{
    static const int32_t lane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    ivec at;

    memcpy(&at, lane, sizeof(at));
    return simd_select(at < (int32_t)(seen - s), x, simd_splat(rest));
}

/* Lane l of the result: of all lanes of v[l] the maximum, the sum. */
SIMD_INLINE vec attention_join_most(vec *v)
{
    simd_transpose(v);
    for (int n = LANES / 2; n > 0; n /= 2)
        for (int l = 0; l < n; l++)
            v[l] = simd_max(v[l], v[l + n]);
    return v[0];
}

SIMD_INLINE vec attention_join_sum(vec *v)
{
    simd_transpose(v);
    for (int n = LANES / 2; n > 0; n /= 2)
        for (int l = 0; l < n; l++)
            v[l] += v[l + n];
    return v[0];
}

/* The lanes' maximum is that of the first `seen` products. */
SIMD_INLINE vec attention_most(const float *p, int64_t seen)
{
    const int64_t last = (seen - 1) / LANES * LANES;
    vec high = attention_mask(simd_load_any(p + last), last, seen, -INFINITY);

    for (int64_t s = 0; s < last; s += LANES)
        high = simd_max(simd_load_any(p + s), high);
    return high;
}

/* The first `seen` products become exponentials of their differences to the maximum, others up to
   `end` zeros. The lanes' sum is theirs. */
SIMD_INLINE vec attention_raise(float *p, int64_t seen, int64_t end, float scale, float most)
{
    const int64_t last = (seen - 1) / LANES * LANES;
    vec all = {0}, x;

    for (int64_t s = 0; s < last; s += LANES) {
        x = simd_exp(simd_load_any(p + s) * scale - most);
        simd_store_any(p + s, x);
        all += x;
    }
    x = attention_mask(simd_exp(simd_load_any(p + last) * scale - most), last, seen, 0);
    simd_store_any(p + last, x);
    for (int64_t s = last + LANES; s < end; s += LANES)
        simd_store_any(p + s, simd_splat(0));
    return all + x;
}

/* Rows of p (block, width) from products to exponentials, and zeros up to `end`, whole vectors.
   inverse: one over the sum of each row, whole vectors; norm: the logarithm of what the
   exponentials of a row's products add up to. */
static void attention_softmax(float *p, int64_t width, float *inverse, float *norm, int64_t end,
                              const attention_part *block, const attention_shape *shape)
{
    for (int64_t r = 0; r < block->n; r += LANES) {
        const int64_t n = attention_least(LANES, block->n - r);
        vec v[LANES] = {{0}}, most, sum;

        for (int64_t l = 0; l < n; l++)
            v[l] = attention_most(p + (r + l) * width, attention_seen(shape, block->t + r + l));
        most = attention_join_most(v) * shape->scale;
        for (int64_t l = 0; l < LANES; l++)
            v[l] = l >= n ? simd_splat(1.0f / LANES)
                          : attention_raise(p + (r + l) * width,
                                            attention_seen(shape, block->t + r + l), end,
                                            shape->scale, most[l]);
        sum = attention_join_sum(v);
        simd_store_any(inverse + r, 1.0f / sum);
        sum = most + simd_log(sum);
        memcpy(norm + r, &sum, (size_t)n * sizeof(float));
    }
}

/* The products of rows of a and b, `step` numbers after each other: `size` numbers of each of n. */
static void attention_dots(float *to, const float *a, const float *b, int64_t step, int64_t n,
                           int64_t size)
{
    for (int64_t r = 0; r < n; r += LANES, to += LANES) {
        vec v[LANES] = {{0}};

        for (int64_t l = 0; l < attention_least(LANES, n - r); l++, a += step, b += step) {
            int64_t d = 0;

            for (; d + LANES <= size; d += LANES)
                v[l] += simd_load_any(a + d) * simd_load_any(b + d);
            if (d < size)
                v[l] += simd_load_some(a + d, size - d) * simd_load_some(b + d, size - d);
        }
        simd_store_any(to, attention_join_sum(v));
    }
}

/* From products with keys (p) and with values (dp) to weights and what goes back to products. */
SIMD_INLINE void attention_weigh(float *p, float *dp, float norm, float mean, int64_t seen,
                                 int64_t end, float scale)
{
    const int64_t last = (seen - 1) / LANES * LANES;

    for (int64_t s = 0; s <= last; s += LANES) {
        const vec x = simd_load_any(p + s) * scale - norm;
        vec weight = simd_exp(simd_min(simd_splat(0), x));
        vec back = weight * (simd_load_any(dp + s) - mean) * scale;

        if (s == last) {
            weight = attention_mask(weight, s, seen, 0);
            back = attention_mask(back, s, seen, 0);
        }
        simd_store_any(p + s, weight);
        simd_store_any(dp + s, back);
    }
    for (int64_t s = last + LANES; s < end; s += LANES) {
        simd_store_any(p + s, simd_splat(0));
        simd_store_any(dp + s, simd_splat(0));
    }
}

#endif
