/*
 * layernorm_impl.h - the loops of layernorm.h for LANES lanes. Included once for each level of
 * instructions, by a file that defines LANES and LAYERNORM_TABLE. A row is whole vectors and then
 * single numbers.
 */
#include <math.h>

#include "kernels/layernorm/layernorm.h"
#include "kernels/simd.h"

SIMD_INLINE int64_t layernorm_whole(int64_t n)
{
    return n / LANES * LANES;
}

static float layernorm_mean(const float *x, int64_t n)
{
    const int64_t whole = layernorm_whole(n);
    vec all = {0};
    float sum;

    for (int64_t i = 0; i < whole; i += LANES)
        all += simd_load_any(x + i);
    sum = simd_add_up(all);
    for (int64_t i = whole; i < n; i++)
        sum += x[i];
    return sum / (float)n;
}

static float layernorm_variance(const float *x, float mean, int64_t n)
{
    const int64_t whole = layernorm_whole(n);
    vec all = {0};
    float sum;

    for (int64_t i = 0; i < whole; i += LANES) {
        const vec d = simd_load_any(x + i) - mean;

        simd_fetch(x + i);
        all += d * d;
    }
    sum = simd_add_up(all);
    for (int64_t i = whole; i < n; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    return sum / (float)n;
}

static void layernorm_forward(float *y, float *stats, const float *x, const layernorm_rows *size)
{
    const int64_t n = size->n, whole = layernorm_whole(n);
    const float *w = size->weight, *b = size->bias;

    for (int64_t r = 0; r < size->rows; r++, x += n, y += n, stats += 2) {
        const float mean = size->rms ? 0 : layernorm_mean(x, n);
        const float scale = 1 / sqrtf(layernorm_variance(x, mean, n) + size->eps);

        stats[0] = mean;
        stats[1] = scale;
        for (int64_t i = 0; i < whole; i += LANES) {
            vec v = (simd_load_any(x + i) - mean) * scale * simd_load_any(w + i);

            simd_fetch_to_write(y + i);
            if (b)
                v += simd_load_any(b + i);
            simd_store_any(y + i, v);
        }
        for (int64_t i = whole; i < n; i++)
            y[i] = (x[i] - mean) * scale * w[i] + (b ? b[i] : 0);
    }
}

/* Adds a row to the gradients of weight and bias. */
static void layernorm_add_row(float *sums, const float *x, const float *dy, const float *stats,
                              int64_t n)
{
    const float mean = stats[0], scale = stats[1];
    const int64_t whole = layernorm_whole(n);
    float *dw = sums, *db = sums + n;

    for (int64_t i = 0; i < whole; i += LANES) {
        const vec g = simd_load_any(dy + i), h = (simd_load_any(x + i) - mean) * scale;

        simd_fetch(x + i);
        simd_fetch(dy + i);
        simd_store_any(dw + i, simd_load_any(dw + i) + g * h);
        simd_store_any(db + i, simd_load_any(db + i) + g);
    }
    for (int64_t i = whole; i < n; i++) {
        dw[i] += dy[i] * ((x[i] - mean) * scale);
        db[i] += dy[i];
    }
}

/* With h the normalised row and g = dy * weight: dx = scale (g - mean of g - h mean of g h); of rms
   without the mean of g. */
static void layernorm_row_gradient(float *dx, const float *x, const float *dy, const float *stats,
                                   const layernorm_rows *size)
{
    const float mean = stats[0], scale = stats[1], *w = size->weight;
    const int64_t n = size->n, whole = layernorm_whole(n);
    vec sums = {0}, products = {0};
    float sum, product;

    for (int64_t i = 0; i < whole; i += LANES) {
        const vec g = simd_load_any(dy + i) * simd_load_any(w + i);

        sums += g;
        products += g * ((simd_load_any(x + i) - mean) * scale);
    }
    sum = simd_add_up(sums);
    product = simd_add_up(products);
    for (int64_t i = whole; i < n; i++) {
        sum += dy[i] * w[i];
        product += dy[i] * w[i] * ((x[i] - mean) * scale);
    }
    sum = size->rms ? 0 : sum / (float)n;
    product /= (float)n;
    for (int64_t i = 0; i < whole; i += LANES) {
        const vec g = simd_load_any(dy + i) * simd_load_any(w + i);
        const vec h = (simd_load_any(x + i) - mean) * scale;

        simd_fetch_to_write(dx + i);
        simd_store_any(dx + i, (g - sum - h * product) * scale);
    }
    for (int64_t i = whole; i < n; i++)
        dx[i] = (dy[i] * w[i] - sum - (x[i] - mean) * scale * product) * scale;
}

static void layernorm_backward(float *dx, float *sums, const float *x, const float *dy,
                               const float *stats, const layernorm_rows *size)
{
    for (int64_t r = 0; r < size->rows; r++) {
        const int64_t at = r * size->n;

        layernorm_add_row(sums, x + at, dy + at, stats + 2 * r, size->n);
        if (dx)
            layernorm_row_gradient(dx + at, x + at, dy + at, stats + 2 * r, size);
    }
}

const layernorm_loops LAYERNORM_TABLE = {layernorm_forward, layernorm_backward};
