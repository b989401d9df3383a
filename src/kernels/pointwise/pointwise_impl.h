/*
 * pointwise_impl.h - the loops of pointwise.h, which compilers turn into vectors. Included once for
 * each instruction set, by a file that defines POINTWISE_TABLE.
 */
#include "kernels/pointwise/pointwise.h"

static void pointwise_relu(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] <= 0 ? 0 : x[i];
}

static void pointwise_relu_gradient(float *dx, const float *y, const float *dy, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float d = dy[i];

        dx[i] = y[i] <= 0 ? 0 : d;
    }
}

static void pointwise_add(float *y, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

const pointwise_loops POINTWISE_TABLE = {pointwise_relu, pointwise_relu_gradient, pointwise_add};
