/*
 * sums.cu - sums over channels and columns, which norms and biases take, and what becomes of them:
 * src/backends/ref has the equations. They are in double, in parts whose number depends on shapes
 * alone, added in order.
 */
#include "kernels/cuda/sums.h"

#include <math.h>

#include "kernels/cuda/block_sums.h"
#include "kernels/cuda/channels.h"
#include "kernels/cuda/grid.h"

static inline cuda_number sums_round_to(const cuda_sums *arg)
{
    return arg->rounded ? arg->type : CUDA_NUMBER_F32;
}

/* What the sums of channels from `channel` on need of them; `mean` is the shift of moments. */
INLINE void sums_read_channels(channels_lines *to, const cuda_sums *arg, uint32_t channel,
                               int together)
{
    if (arg->kind == CUDA_MOMENTS)
        for (int e = 0; e < together; e++) {
            const uint32_t c = channel + (uint32_t)e;

            to->mean[e] = arg->shift ? arg->shift[c]
                                     : element_read(arg->x, (size_t)c * arg->plane, arg->type);
        }
    if (arg->kind == CUDA_GRADIENTS)
        channels_read(to, arg->stat, channel, 1, together);
    if (arg->kind == CUDA_GRADIENTS && arg->in.relu) {
        channels_read_param(to->weight, arg->weight, channel, 1, sums_round_to(arg), together);
        channels_read_param(to->bias, arg->bias, channel, 1, sums_round_to(arg), together);
    }
}

/* Adds what elements from `at` on have for the sums of their channels: (together, 2). */
INLINE void sums_add(double *sum, const cuda_sums *arg, const channels_lines *of, size_t at,
                     uint32_t row, int together)
{
    float x[CUDA_TOGETHER] = {0}, dy[CUDA_TOGETHER];

    if (arg->kind != CUDA_VALUES)
        elements_read(x, arg->x, at, arg->type, together);
    if (arg->kind == CUDA_MOMENTS) {
        for (int e = 0; e < together; e++) {
            const double d = (double)x[e] - (double)of->mean[e];

            sum[2 * e] += d;
            sum[2 * e + 1] += d * d;
        }
        return;
    }
    channels_read_gradient(dy, &arg->in, x, of, at, arg->type, together);
    for (int e = 0; e < together; e++) {
        const bool of_row = arg->kind == CUDA_OF_ROWS;
        const float mean = of_row ? arg->stat[row].mean : of->mean[e];
        const float scale = of_row ? arg->stat[row].scale : of->scale[e];

        sum[2 * e] += (double)dy[e];
        if (arg->kind != CUDA_VALUES)
            sum[2 * e + 1] += (double)(dy[e] * ((x[e] - mean) * scale));
    }
}

static inline void sums_put(const cuda_sums *arg, uint32_t channel, uint32_t part, double a,
                            double b)
{
    double *to = arg->part + 2 * ((size_t)channel * arg->parts + part);

    to[0] = a;
    to[1] = b;
}

/* A block takes a part of a channel. */
KERNEL(sums_of_channels, cuda_sums)
{
    SHARED double a[CUDA_BLOCK], b[CUDA_BLOCK];
    const uint32_t count = arg.n * arg.plane;
    const uint32_t samples = THREADS / arg.plane, places = THREADS % arg.plane; /* of a step */

    for (uint32_t work = BLOCK; work < arg.channels * arg.parts; work += BLOCKS) {
        const uint32_t channel = work / arg.parts, part = work % arg.parts;
        const uint32_t begin = part * arg.each;
        const uint32_t end = begin + arg.each < count ? begin + arg.each : count;

        PHASE {
            uint32_t sample = (begin + THREAD) / arg.plane, place = (begin + THREAD) % arg.plane;
            double sum[2] = {0, 0};
            channels_lines of = CHANNELS_NONE;

            sums_read_channels(&of, &arg, channel, 1);
            for (uint32_t e = begin + THREAD; e < end; e += THREADS) {
                sums_add(sum, &arg, &of,
                         ((size_t)sample * arg.channels + channel) * arg.plane + place, sample, 1);
                sample += samples;
                place += places;
                sample += place >= arg.plane;
                place -= place >= arg.plane ? arg.plane : 0;
            }
            a[THREAD] = sum[0];
            b[THREAD] = sum[1];
        }
        block_sum_pairs(a, b, 1);
        PHASE
            if (THREAD == 0)
                sums_put(&arg, channel, part, a[0], b[0]);
    }
}

/* The same where plane is 1: neighbours in memory are of different channels, and so are threads. */
INLINE void sums_columns(const cuda_sums *arg, double *a, double *b, int together)
{
    const uint32_t width = together == 1 ? CUDA_COLUMNS : CUDA_WIDE_COLUMNS;
    const uint32_t across = width / (uint32_t)together; /* threads of a row */
    const uint32_t tiles = (arg->channels + width - 1) / width;
    OWN(double, sum, 2 * CUDA_TOGETHER);

    for (uint32_t work = BLOCK; work < tiles * arg->parts; work += BLOCKS) {
        const uint32_t first = work % tiles * width, part = work / tiles;
        const uint32_t begin = part * arg->each;
        const uint32_t end = begin + arg->each < arg->n ? begin + arg->each : arg->n;

        PHASE {
            const uint32_t channel = first + THREAD % across * (uint32_t)together;
            channels_lines of = CHANNELS_NONE;

            for (int e = 0; e < 2 * together; e++)
                MINE(sum)[e] = 0;
            if (channel >= arg->channels)
                continue;
            sums_read_channels(&of, arg, channel, together);
            for (uint32_t row = begin + THREAD / across; row < end; row += THREADS / across)
                sums_add(MINE(sum), arg, &of, (size_t)row * arg->channels + channel, row, together);
        }
        for (int e = 0; e < together; e++) {
            PHASE {
                a[THREAD] = MINE(sum)[2 * e];
                b[THREAD] = MINE(sum)[2 * e + 1];
            }
            block_sum_pairs(a, b, across);
            PHASE {
                const uint32_t channel = first + THREAD * (uint32_t)together + (uint32_t)e;

                if (THREAD < across && channel < arg->channels)
                    sums_put(arg, channel, part, a[THREAD], b[THREAD]);
            }
        }
    }
}

KERNEL(sums_of_columns, cuda_sums)
{
    SHARED double a[CUDA_BLOCK], b[CUDA_BLOCK];

    if (arg.together == 1)
        sums_columns(&arg, a, b, 1);
    else
        sums_columns(&arg, a, b, CUDA_TOGETHER);
}

/* Both sums of a channel, over its parts. */
static inline void sums_join(double *a, double *b, const cuda_settle *arg, size_t channel)
{
    const double *part = arg->part + 2 * channel * arg->parts;

    *a = *b = 0;
    for (uint32_t p = 0; p < arg->parts; p++) {
        *a += part[2 * p];
        *b += part[2 * p + 1];
    }
}

/* What goes over ranks. */
KERNEL(sums_totals, cuda_settle)
{
    EACH (c, arg.channels) {
        double a, b;

        sums_join(&a, &b, &arg, c);
        arg.total[2 * c] = arg.phantom ? 0 : a;
        arg.total[2 * c + 1] = arg.phantom ? 0 : b;
        if (c == 0)
            arg.total[2 * (size_t)arg.channels] = arg.phantom ? 0 : arg.count;
    }
}

INLINE void sums_take(double *a, double *b, double *count, const cuda_settle *arg, size_t c)
{
    if (arg->total) {
        *a = arg->total[2 * c];
        *b = arg->total[2 * c + 1];
        *count = arg->total[2 * (size_t)arg->channels];
    } else {
        sums_join(a, b, arg, c);
        *count = arg->count;
    }
}

/* Moves the running statistics, and keeps those of the batch; where there are no samples, as they
   are. Over ranks sums are of differences from the running mean, which all ranks have. */
KERNEL(sums_settle_moments, cuda_settle)
{
    EACH (c, arg.channels) {
        const double rate = arg.momentum;
        double sum, squares, count, shift, mean, var, unbiased;

        sums_take(&sum, &squares, &count, &arg, c);
        if (count == 0) {
            arg.stat[c].mean = arg.running_mean[c];
            arg.stat[c].scale = (float)(1 / sqrt((double)arg.running_var[c] + arg.eps));
            continue;
        }
        shift = sum / count;
        mean = (double)(arg.total ? arg.running_mean[c]
                                  : element_read(arg.x, c * arg.plane, arg.type)) +
               shift;
        var = squares / count - shift * shift;
        var = var < 0 ? 0 : var;
        unbiased = count > 1 ? var * count / (count - 1) : var;
        arg.running_mean[c] = (float)((1 - rate) * (double)arg.running_mean[c] + rate * mean);
        arg.running_var[c] = (float)((1 - rate) * (double)arg.running_var[c] + rate * unbiased);
        arg.stat[c].mean = (float)mean;
        arg.stat[c].scale = (float)(1 / sqrt(var + arg.eps));
    }
}

/* Evaluation: by the running statistics. */
KERNEL(sums_recall, cuda_settle)
{
    EACH (c, arg.channels) {
        arg.stat[c].mean = arg.running_mean[c];
        arg.stat[c].scale = (float)(1 / sqrt((double)arg.running_var[c] + arg.eps));
    }
}

static inline void sums_put_gradient(float *to, double value, bool accumulate)
{
    if (to)
        *to = accumulate ? *to + (float)value : (float)value;
}

KERNEL(sums_settle_gradients, cuda_settle)
{
    EACH (c, arg.channels) {
        double sum, product;

        sums_join(&sum, &product, &arg, c);
        sum = arg.phantom ? 0 : sum;
        product = arg.phantom ? 0 : product;
        sums_put_gradient(arg.db ? arg.db + c : NULL, sum, arg.accumulate);
        sums_put_gradient(arg.dw ? arg.dw + c : NULL, product, arg.accumulate);
        if (arg.mean) {
            arg.mean[c].mean = (float)(sum / arg.count);
            arg.mean[c].scale = (float)(product / arg.count);
        }
    }
}

/* Over ranks: the means of the gradients. */
KERNEL(sums_settle_means, cuda_settle)
{
    EACH (c, arg.channels) {
        double sum, product, count;

        sums_take(&sum, &product, &count, &arg, c);
        arg.mean[c].mean = count > 0 ? (float)(sum / count) : 0;
        arg.mean[c].scale = count > 0 ? (float)(product / count) : 0;
    }
}
