/*
 * gate_impl.h - the loops of gate.h for LANES lanes. Included once for each level of instructions,
 * by a file that defines LANES and GATE_TABLE.
 */
#include "kernels/gate/gate.h"
#include "kernels/simd_exp.h"

/* s(x) = 1 / (1 + exp(-x)), by exp(-|x|), which is at most 1. */
SIMD_INLINE vec gate_sigmoid(vec x)
{
    const ivec below = (ivec)(x < 0.0f);
    const vec power = simd_exp(simd_select(below, x, -x)), share = 1.0f / (1.0f + power);

    return simd_select(below, power * share, share);
}

SIMD_INLINE vec gate_slope(vec x)
{
    const vec s = gate_sigmoid(x);

    return s + x * s * (1.0f - s);
}

static void gate_silu(void *to, const void *from, int64_t n)
{
    const float *x = from;
    float *y = to;
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        const vec v = simd_load_any(x + i);

        simd_store_any(y + i, v * gate_sigmoid(v));
    }
    for (; i < n; i++)
        y[i] = x[i] * gate_sigmoid(simd_splat(x[i]))[0];
}

static void gate_silu_gradient(void *to, const void *from, const void *grad, int64_t n)
{
    const float *x = from, *dy = grad;
    float *dx = to;
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        simd_store_any(dx + i, simd_load_any(dy + i) * gate_slope(simd_load_any(x + i)));
    for (; i < n; i++)
        dx[i] = dy[i] * gate_slope(simd_splat(x[i]))[0];
}

static void gate_mul(float *y, const float *a, const float *b, int64_t n)
{
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        simd_store_any(y + i, simd_load_any(a + i) * simd_load_any(b + i));
    for (; i < n; i++)
        y[i] = a[i] * b[i];
}

const gate_loops GATE_TABLE = {gate_silu, gate_silu_gradient, gate_mul};
