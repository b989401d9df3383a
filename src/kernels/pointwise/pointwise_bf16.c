/*
 * pointwise_bf16.c - the loops of pointwise.h for BF16. The positive part needs no arithmetic: what
 * is not above 0 are, as integers, the numbers from -0 to -infinity.
 */
#include "kernels/pointwise/pointwise.h"

#define LANES 16
#include "kernels/half16.h"

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

static void pointwise_add(void *to, const void *a, const void *b, int64_t n)
{
    const uint16_t *as = a, *bs = b;
    uint16_t *y = to;
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        half16_store(y + i, half16_load(as + i) + half16_load(bs + i));
    for (; i < n; i++) {
        const uint16_t some[2][LANES] = {{as[i]}, {bs[i]}};
        uint16_t sum[LANES];

        half16_store(sum, half16_load(some[0]) + half16_load(some[1]));
        y[i] = sum[0];
    }
}

const pointwise_loops pointwise_loops_bf16 = {pointwise_relu, pointwise_relu_gradient,
                                              pointwise_add};
