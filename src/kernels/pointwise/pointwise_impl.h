/*
 * pointwise_impl.h - the loops of pointwise.h, which compilers turn into vectors. Included once for
 * each instruction set, by a file that defines LANES and POINTWISE_TABLE.
 */
#include "kernels/pointwise/pointwise.h"
#include "kernels/simd_tanh.h"

static void pointwise_relu(void *to, const void *from, int64_t n)
{
    const float *x = from;
    float *y = to;

    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] <= 0 ? 0 : x[i];
}

static void pointwise_relu_gradient(void *to, const void *y, const void *dy, int64_t n)
{
    const float *ys = y, *dys = dy;
    float *dx = to;

    for (int64_t i = 0; i < n; i++) {
        const float d = dys[i];

        dx[i] = ys[i] <= 0 ? 0 : d;
    }
}

static void pointwise_tanh(void *to, const void *from, int64_t n)
{
    const float *x = from;
    float *y = to;
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        simd_store_any(y + i, simd_tanh(simd_load_any(x + i)));
    for (; i < n; i++)
        y[i] = simd_tanh(simd_splat(x[i]))[0];
}

static void pointwise_tanh_gradient(void *to, const void *y, const void *dy, int64_t n)
{
    const float *ys = y, *dys = dy;
    float *dx = to;

    for (int64_t i = 0; i < n; i++)
        dx[i] = dys[i] * (1 - ys[i] * ys[i]);
}

static void pointwise_add(void *to, const void *a, const void *b, int64_t n)
{
    const float *as = a, *bs = b;
    float *y = to;

    for (int64_t i = 0; i < n; i++)
        y[i] = as[i] + bs[i];
}

/* In double precision, as the reference kernel: both give the same bits. */
static void pointwise_scale(void *to, const void *from, double factor, int64_t n)
{
    const float *x = from;
    float *y = to;

    for (int64_t i = 0; i < n; i++)
        y[i] = (float)(factor * (double)x[i]);
}

const pointwise_loops POINTWISE_TABLE = {
    pointwise_relu,          pointwise_relu_gradient, pointwise_tanh,
    pointwise_tanh_gradient, pointwise_add,           pointwise_scale,
};
