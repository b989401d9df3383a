/* channels.h - the channels of a thread's elements, and gradients as they arrive at a batch norm.
 */
#ifndef CO_KERNELS_CUDA_CHANNELS_H
#define CO_KERNELS_CUDA_CHANNELS_H

#include "kernels/cuda/elements.h"
#include "kernels/cuda/sums.h"

/* What each of a thread's elements is normalised by. */
typedef struct channels_lines {
    float mean[CUDA_TOGETHER], scale[CUDA_TOGETHER];
    float weight[CUDA_TOGETHER], bias[CUDA_TOGETHER];
} channels_lines;

#define CHANNELS_NONE                                                                              \
    {                                                                                              \
        {0}, {0}, {0},                                                                             \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

/* Of channels from `channel` on, or of that one alone: `step` 1 or 0. */
INLINE void channels_read(channels_lines *to, const cuda_stat *stat, uint32_t channel,
                          uint32_t step, int together)
{
    for (int e = 0; e < together; e++) {
        const cuda_stat s = stat[channel + (uint32_t)e * step];

        to->mean[e] = s.mean;
        to->scale[e] = s.scale;
    }
}

INLINE void channels_read_param(float *to, const float *param, uint32_t channel, uint32_t step,
                                cuda_number round_to, int together)
{
    if (step && together == CUDA_TOGETHER)
        elements_read_all(to, param, channel, CUDA_NUMBER_F32);
    for (int e = 0; e < together; e++) {
        if (!step || together == 1)
            to[e] = param[channel];
        to[e] = element_rounded(to[e], round_to);
    }
}

static inline float channels_value(const channels_lines *of, int e, float x)
{
    return of->weight[e] * (x - of->mean[e]) * of->scale[e] + of->bias[e];
}

/* Gradients of the normalised values; x and its lines are read where a ReLU follows. */
INLINE void channels_read_gradient(float *dy, const cuda_incoming *in, const float *x,
                                   const channels_lines *of, size_t at, cuda_number type,
                                   int together)
{
    elements_read(dy, in->dy, at, type, together);
    if (in->more) {
        float more[CUDA_TOGETHER];

        elements_read(more, in->more, at, type, together);
        for (int e = 0; e < together; e++)
            dy[e] += more[e];
    }
    if (in->mask) {
        const uint32_t bits = (uint32_t)in->mask[at / 8] >> at % 8;

        for (int e = 0; e < together; e++)
            dy[e] = bits >> e & 1 ? dy[e] : 0;
    }
    if (in->sum)
        elements_write(in->sum, at, type, dy, together);
    for (int e = 0; e < together && in->relu; e++)
        dy[e] = channels_value(of, e, x[e]) <= 0 ? 0 : dy[e];
}

#endif
