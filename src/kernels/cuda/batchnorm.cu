/*
 * batchnorm.cu - batch norm by the statistics of channels, which sums.cu makes, in any type of
 * floats, with a sum and a ReLU in the same pass: src/backends/ref has the equations. Channels are
 * anywhere in memory; where they come last, plane is 1, and samples are the places of all images.
 */
#include "kernels/cuda/batchnorm.h"

#include "kernels/cuda/channels.h"
#include "kernels/cuda/grid.h"

#define NOTHING UINT32_MAX

static inline uint32_t batchnorm_step(const cuda_batchnorm *arg)
{
    return arg->plane == 1;
}

static inline uint32_t batchnorm_channel(const cuda_batchnorm *arg, size_t at)
{
    return (uint32_t)at / arg->plane % arg->channels;
}

/* Those from channel `c` on, unless they are what is there already. */
INLINE void batchnorm_read_lines(channels_lines *to, const cuda_batchnorm *arg, uint32_t c,
                                 int together)
{
    const cuda_number round_to = arg->rounded ? arg->type : CUDA_NUMBER_F32;
    const uint32_t step = batchnorm_step(arg);

    channels_read(to, arg->stat, c, step, together);
    channels_read_param(to->weight, arg->weight, c, step, round_to, together);
    channels_read_param(to->bias, arg->bias, c, step, round_to, together);
}

/* y = epilogue (normalised x); a NaN stays one. */
INLINE void batchnorm_finish(float *y, const cuda_batchnorm *arg, size_t at, int together)
{
    const cuda_epilogue epilogue = arg->epilogue;
    float add[CUDA_TOGETHER] = {0};
    uint32_t bits = 0;

    if (arg->add)
        elements_read(add, arg->add, at, arg->type, together);
    for (int e = 0; e < together; e++) {
        if (epilogue == CUDA_EPILOGUE_RELU || epilogue == CUDA_EPILOGUE_RELU_ADD)
            y[e] = y[e] <= 0 ? 0 : y[e];
        if (arg->add)
            y[e] += add[e];
        bits |= (uint32_t) !(y[e] <= 0) << e;
        if (epilogue == CUDA_EPILOGUE_ADD_RELU)
            y[e] = y[e] <= 0 ? 0 : y[e];
    }
    if (arg->mask)
        arg->mask[at / 8] = (uint8_t)bits;
}

/* A thread's channels mostly are the same from element to element, as its steps are large powers
   of 2: what they are normalised by is read when they change. */
INLINE void batchnorm_do(const cuda_batchnorm *arg, int together)
{
    const size_t n = (size_t)arg->n * arg->channels * arg->plane / (uint32_t)together;
    uint32_t has = NOTHING;
    channels_lines of = CHANNELS_NONE;

    EACH (i, n) {
        const size_t at = i * (uint32_t)together;
        const uint32_t c = batchnorm_channel(arg, at);
        float y[CUDA_TOGETHER];

        if (c != has)
            batchnorm_read_lines(&of, arg, c, together);
        has = c;
        elements_read(y, arg->x, at, arg->type, together);
        for (int e = 0; e < together; e++)
            y[e] = channels_value(&of, e, y[e]);
        batchnorm_finish(y, arg, at, together);
        elements_write(arg->out, at, arg->type, y, together);
    }
}

KERNEL(batchnorm_forward, cuda_batchnorm)
{
    if (arg.together == 1)
        batchnorm_do(&arg, 1);
    else
        batchnorm_do(&arg, CUDA_TOGETHER);
}

/* dx = weight scale (dy - mean of dy - z mean of dy z), z = (x - mean) scale */
INLINE void batchnorm_undo(const cuda_batchnorm *arg, int together)
{
    const size_t n = (size_t)arg->n * arg->channels * arg->plane / (uint32_t)together;
    uint32_t has = NOTHING;
    channels_lines of = CHANNELS_NONE, mean = CHANNELS_NONE;

    EACH (i, n) {
        const size_t at = i * (uint32_t)together;
        const uint32_t c = batchnorm_channel(arg, at);
        float x[CUDA_TOGETHER], dy[CUDA_TOGETHER];

        if (c != has) {
            batchnorm_read_lines(&of, arg, c, together);
            channels_read(&mean, arg->mean, c, batchnorm_step(arg), together);
        }
        has = c;
        elements_read(x, arg->x, at, arg->type, together);
        channels_read_gradient(dy, &arg->in, x, &of, at, arg->type, together);
        for (int e = 0; e < together; e++) {
            const float z = (x[e] - of.mean[e]) * of.scale[e];

            dy[e] = of.weight[e] * of.scale[e] * (dy[e] - mean.mean[e] - z * mean.scale[e]);
        }
        elements_write(arg->out, at, arg->type, dy, together);
    }
}

KERNEL(batchnorm_backward, cuda_batchnorm)
{
    if (arg.together == 1)
        batchnorm_undo(&arg, 1);
    else
        batchnorm_undo(&arg, CUDA_TOGETHER);
}
