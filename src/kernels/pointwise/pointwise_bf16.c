/*
 * pointwise_bf16.c - the loops of pointwise.h for BF16. The positive part needs no arithmetic: what
 * is not above 0 are, as integers, the numbers from -0 to -infinity.
 */
#include "kernels/pointwise/pointwise.h"

#define LANES 16
#include "kernels/half16.h"
#include "kernels/simd_tanh.h"

#define POINTWISE_NEGATIVE 0x8000
#define POINTWISE_LEAST    0xff80 /* -infinity; above are NaNs */

static void pointwise_relu(void *to, const void *from, int64_t n)
{
    const uint16_t *x = from;
    uint16_t *y = to;

    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] >= POINTWISE_NEGATIVE && x[i] <= POINTWISE_LEAST ? 0 : x[i];
}

/* y is a result of relu. */
static void pointwise_relu_gradient(void *to, const void *y, const void *dy, int64_t n)
{
    const uint16_t *ys = y, *dys = dy;
    uint16_t *dx = to;

    for (int64_t i = 0; i < n; i++) {
        const uint16_t d = dys[i];

        dx[i] = ys[i] == 0 ? 0 : d;
    }
}

typedef vec (*pointwise_fn)(vec a, vec b, float factor);

/* Inlined, so that `value` is no call. */
SIMD_INLINE void pointwise_each(void *to, const void *from, const void *other, float factor,
                                int64_t n, pointwise_fn value)
{
    const uint16_t *a = from, *b = other;
    uint16_t *y = to;
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        half16_store(y + i, value(half16_load(a + i), half16_load(b + i), factor));
    for (; i < n; i++) {
        const uint16_t some[2][LANES] = {{a[i]}, {b[i]}};

        y[i] = half16_round(value(half16_load(some[0]), half16_load(some[1]), factor))[0];
    }
}

SIMD_INLINE vec pointwise_tanh_of(vec x, vec unused, float none)
{
    (void)unused, (void)none;
    return simd_tanh(x);
}

SIMD_INLINE vec pointwise_tanh_slope(vec y, vec dy, float none)
{
    (void)none;
    return dy * (1.0f - y * y);
}

SIMD_INLINE vec pointwise_sum(vec a, vec b, float none)
{
    (void)none;
    return a + b;
}

SIMD_INLINE vec pointwise_product(vec x, vec unused, float factor)
{
    (void)unused;
    return x * factor;
}

static void pointwise_tanh(void *y, const void *x, int64_t n)
{
    pointwise_each(y, x, x, 0, n, pointwise_tanh_of);
}

static void pointwise_tanh_gradient(void *dx, const void *y, const void *dy, int64_t n)
{
    pointwise_each(dx, y, dy, 0, n, pointwise_tanh_slope);
}

static void pointwise_add(void *y, const void *a, const void *b, int64_t n)
{
    pointwise_each(y, a, b, 0, n, pointwise_sum);
}

static void pointwise_scale(void *y, const void *x, double factor, int64_t n)
{
    pointwise_each(y, x, x, (float)factor, n, pointwise_product);
}

const pointwise_loops pointwise_loops_bf16 = {
    pointwise_relu,          pointwise_relu_gradient, pointwise_tanh,
    pointwise_tanh_gradient, pointwise_add,           pointwise_scale,
};
