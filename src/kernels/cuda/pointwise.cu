/*
 * pointwise.cu - operators that take each element by itself: src/backends/ref has the equations.
 */
#include "kernels/cuda/pointwise.h"

#include <math.h>

#include "core/half_impl.h"
#include "core/rng.h"
#include "kernels/cuda/grid.h"

#define ROOT_HALF    0.70710678F /* sqrt(1 / 2) */
#define DENSITY_AT_0 0.39894228F /* 1 / sqrt(2 pi) */
#define TANH_SLOPE   0.79788456F /* sqrt(2 / pi) */
#define TANH_CUBE    0.044715F

KERNEL(pointwise_add, cuda_pointwise)
{
    EACH(i, arg.n)
    arg.out[i] = arg.x[i] + arg.y[i];
}

KERNEL(pointwise_scale, cuda_pointwise)
{
    EACH(i, arg.n)
    arg.out[i] = (float)(arg.factor * (double)arg.x[i]);
}

/* A NaN stays one. */
KERNEL(pointwise_relu, cuda_pointwise)
{
    EACH(i, arg.n)
    {
        const float x = arg.x[i];

        arg.out[i] = x <= 0 ? 0 : x;
    }
}

KERNEL(pointwise_relu_backward, cuda_pointwise)
{
    EACH(i, arg.n)
    arg.out[i] = arg.y[i] <= 0 ? 0 : arg.x[i];
}

KERNEL(pointwise_tanh, cuda_pointwise)
{
    EACH(i, arg.n)
    arg.out[i] = tanhf(arg.x[i]);
}

KERNEL(pointwise_tanh_backward, cuda_pointwise)
{
    EACH(i, arg.n)
    arg.out[i] = arg.x[i] * (1 - arg.y[i] * arg.y[i]);
}

static inline float pointwise_gelu_tanh(float x)
{
    return tanhf(TANH_SLOPE * (x + TANH_CUBE * x * x * x));
}

KERNEL(pointwise_gelu, cuda_pointwise)
{
    const bool by_tanh = arg.tanh;

    EACH(i, arg.n)
    {
        const float x = arg.x[i];

        arg.out[i] = 0.5F * x * (by_tanh ? 1 + pointwise_gelu_tanh(x) : erfcf(-x * ROOT_HALF));
    }
}

static inline float pointwise_gelu_slope(float x, bool by_tanh)
{
    float t, slope;

    if (!by_tanh)
        return 0.5F * erfcf(-x * ROOT_HALF) + x * (DENSITY_AT_0 * expf(-0.5F * x * x));
    t = pointwise_gelu_tanh(x);
    slope = TANH_SLOPE * (1 + 3 * TANH_CUBE * x * x);
    return 0.5F * (1 + t) + 0.5F * x * (1 - t * t) * slope;
}

KERNEL(pointwise_gelu_backward, cuda_pointwise)
{
    EACH(i, arg.n)
    arg.out[i] = arg.x[i] * pointwise_gelu_slope(arg.y[i], arg.tanh);
}

KERNEL(pointwise_mul, cuda_pointwise)
{
    EACH(i, arg.n)
    arg.out[i] = arg.x[i] * arg.y[i];
}

static inline float pointwise_sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

KERNEL(pointwise_silu, cuda_pointwise)
{
    EACH(i, arg.n)
    arg.out[i] = arg.x[i] * pointwise_sigmoid(arg.x[i]);
}

KERNEL(pointwise_silu_backward, cuda_pointwise)
{
    EACH(i, arg.n)
    {
        const float s = pointwise_sigmoid(arg.y[i]);

        arg.out[i] = arg.x[i] * (s + arg.y[i] * s * (1 - s));
    }
}

/* ---- dropout ---- */

static inline co_rng pointwise_rng(const cuda_dropout *arg, uint32_t row)
{
    co_rng rng;

    rng.seed = arg->seed;
    rng.stream = arg->stream;
    rng.step = arg->values->given.step;
    rng.item = arg->sample[row];
    return rng;
}

static inline float pointwise_drop(const cuda_dropout *arg, float x, uint32_t word)
{
    return (double)co_rng_to_unit(word) < arg->p ? 0 : x * arg->scale;
}

/* A thread takes the four elements of one block of random numbers. */
KERNEL(pointwise_dropout, cuda_dropout)
{
    const uint32_t quads = (arg.count + 3) / 4;

    EACH(i, (size_t)arg.rows * quads)
    {
        const uint32_t row = (uint32_t)i / quads, quad = (uint32_t)i % quads;
        const co_rng rng = pointwise_rng(&arg, row);
        const size_t first = (size_t)row * arg.count + 4 * (size_t)quad;
        uint32_t word[4];

        co_rng_philox(word, &rng, quad);
        for (uint32_t e = 0; e < 4 && 4 * quad + e < arg.count; e++)
            arg.out[first + e] = pointwise_drop(&arg, arg.x[first + e], word[e]);
    }
}

/* `span` elements have one number. */
KERNEL(pointwise_dropout_spans, cuda_dropout)
{
    EACH(i, (size_t)arg.rows * arg.count)
    {
        const uint32_t row = (uint32_t)i / arg.count;
        const uint32_t number = (uint32_t)i % arg.count / arg.span;
        const co_rng rng = pointwise_rng(&arg, row);
        uint32_t word[4];

        co_rng_philox(word, &rng, number / 4);
        arg.out[i] = pointwise_drop(&arg, arg.x[i], word[number % 4]);
    }
}

/* ---- 16 bits ---- */

static inline float pointwise_widen(uint16_t x, bool f16)
{
    return f16 ? half_widen_f16(x) : half_widen_bf16(x);
}

static inline uint16_t pointwise_narrow(float x, bool f16)
{
    return f16 ? half_round_f16(x) : half_round_bf16(x);
}

KERNEL(pointwise_convert, cuda_convert)
{
    EACH(i, arg.n)
    {
        if (arg.half)
            arg.out[i] = pointwise_widen(arg.half[i], arg.f16);
        else
            arg.narrow[i] = pointwise_narrow(arg.x[i], arg.f16);
    }
}

KERNEL(pointwise_gelu_half_backward, cuda_gelu)
{
    EACH(i, arg.n)
    {
        const float slope = pointwise_gelu_slope(pointwise_widen(arg.x[i], arg.f16), true);

        arg.out[i] = pointwise_narrow(pointwise_widen(arg.dy[i], arg.f16) * slope, arg.f16);
    }
}
