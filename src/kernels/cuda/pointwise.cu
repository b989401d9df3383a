/*
 * pointwise.cu - operators that take each element by itself, in any type of floats and any layout:
 * src/backends/ref has the equations.
 */
#include "kernels/cuda/pointwise.h"

#include <math.h>

#include "core/rng.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/grid.h"

#define ROOT_HALF    0.70710678F /* sqrt(1 / 2) */
#define DENSITY_AT_0 0.39894228F /* 1 / sqrt(2 pi) */
#define TANH_SLOPE   0.79788456F /* sqrt(2 / pi) */
#define TANH_CUBE    0.044715F

/* A kernel that makes `value` of x and y, CUDA_TOGETHER elements at a time but for the last
   ones. */
#define POINTWISE(name, value)                                                                     \
    static inline float pointwise_##name##_of(const cuda_pointwise *arg, float x, float y)         \
    {                                                                                              \
        (void)arg, (void)y;                                                                        \
        return value;                                                                              \
    }                                                                                              \
                                                                                                   \
    KERNEL(pointwise_##name, cuda_pointwise)                                                       \
    {                                                                                              \
        EACH (i, arg.n / CUDA_TOGETHER + arg.n % CUDA_TOGETHER) {                                  \
            float x[CUDA_TOGETHER], y[CUDA_TOGETHER] = {0};                                        \
                                                                                                   \
            if (i < arg.n / CUDA_TOGETHER) {                                                       \
                elements_read_all(x, arg.x, i *CUDA_TOGETHER, arg.type);                           \
                if (arg.y)                                                                         \
                    elements_read_all(y, arg.y, i *CUDA_TOGETHER, arg.type);                       \
                for (int e = 0; e < CUDA_TOGETHER; e++)                                            \
                    x[e] = pointwise_##name##_of(&arg, x[e], y[e]);                                \
                elements_write_all(arg.out, i *CUDA_TOGETHER, arg.type, x);                        \
            } else {                                                                               \
                const size_t at = arg.n - 1 - (i - arg.n / CUDA_TOGETHER);                         \
                                                                                                   \
                y[0] = arg.y ? element_read(arg.y, at, arg.type) : 0;                              \
                x[0] = element_read(arg.x, at, arg.type);                                          \
                element_write(arg.out, at, arg.type, pointwise_##name##_of(&arg, x[0], y[0]));     \
            }                                                                                      \
        }                                                                                          \
    }

static inline float pointwise_gelu_tanh(float x)
{
    return tanhf(TANH_SLOPE * (x + TANH_CUBE * x * x * x));
}

CALLED float pointwise_gelu_value(float x, bool by_tanh)
{
    return 0.5F * x * (by_tanh ? 1 + pointwise_gelu_tanh(x) : erfcf(-x * ROOT_HALF));
}

CALLED float pointwise_gelu_slope(float x, bool by_tanh)
{
    float t, slope;

    if (!by_tanh)
        return 0.5F * erfcf(-x * ROOT_HALF) + x * (DENSITY_AT_0 * expf(-0.5F * x * x));
    t = pointwise_gelu_tanh(x);
    slope = TANH_SLOPE * (1 + 3 * TANH_CUBE * x * x);
    return 0.5F * (1 + t) + 0.5F * x * (1 - t * t) * slope;
}

static inline float pointwise_sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

static inline float pointwise_silu_slope(float x)
{
    const float s = pointwise_sigmoid(x);

    return s + x * s * (1 - s);
}

POINTWISE(add, x + y)
POINTWISE(mul, x *y)
POINTWISE(scale, (float)(arg->factor *(double)x))
POINTWISE(relu, x <= 0 ? 0 : x) /* a NaN stays one */
POINTWISE(relu_backward, y <= 0 ? 0 : x)
POINTWISE(tanh, tanhf(x))
POINTWISE(tanh_backward, x *(1 - y * y))
POINTWISE(gelu, pointwise_gelu_value(x, arg->tanh))
POINTWISE(gelu_backward, x *pointwise_gelu_slope(y, arg->tanh))
POINTWISE(silu, x *pointwise_sigmoid(x))
POINTWISE(silu_backward, x *pointwise_silu_slope(y))

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

static inline void pointwise_drop(const cuda_dropout *arg, size_t at, uint32_t word)
{
    const float x = element_read(arg->x, at, arg->type);

    element_write(arg->out, at, arg->type,
                  (double)co_rng_to_unit(word) < arg->p ? 0 : x * arg->scale);
}

/* A thread takes the four elements of one block of random numbers. */
KERNEL(pointwise_dropout, cuda_dropout)
{
    const uint32_t quads = (arg.count + 3) / 4;

    EACH (i, (size_t)arg.rows * quads) {
        const uint32_t row = (uint32_t)i / quads, quad = (uint32_t)i % quads;
        const co_rng rng = pointwise_rng(&arg, row);
        const size_t first = (size_t)row * arg.count + 4 * (size_t)quad;
        uint32_t word[4];

        co_rng_philox(word, &rng, quad);
        for (uint32_t e = 0; e < 4 && 4 * quad + e < arg.count; e++)
            pointwise_drop(&arg, first + e, word[e]);
    }
}

/* Where an element is in its row in the plain layout. */
static inline uint32_t pointwise_place(const cuda_dropout *arg, uint32_t at)
{
    if (!arg->channels)
        return at;
    return at % arg->channels * (arg->count / arg->channels) + at / arg->channels;
}

/* `span` elements have one number, and neighbours in memory those of other places. */
KERNEL(pointwise_dropout_spans, cuda_dropout)
{
    EACH (i, (size_t)arg.rows * arg.count) {
        const uint32_t row = (uint32_t)i / arg.count;
        const uint32_t number = pointwise_place(&arg, (uint32_t)i % arg.count) / arg.span;
        const co_rng rng = pointwise_rng(&arg, row);
        uint32_t word[4];

        co_rng_philox(word, &rng, number / 4);
        pointwise_drop(&arg, i, word[number % 4]);
    }
}

KERNEL(pointwise_convert, cuda_convert)
{
    EACH (i, arg.n / CUDA_TOGETHER + arg.n % CUDA_TOGETHER) {
        float v[CUDA_TOGETHER];

        if (i < arg.n / CUDA_TOGETHER) {
            elements_read_all(v, arg.x, i * CUDA_TOGETHER, arg.from);
            elements_write_all(arg.out, i * CUDA_TOGETHER, arg.to, v);
        } else {
            const size_t at = arg.n - 1 - (i - arg.n / CUDA_TOGETHER);

            element_write(arg.out, at, arg.to, element_read(arg.x, at, arg.from));
        }
    }
}
