/*
 * norm.cu - batch, layer and RMS norm, and the sums over channels and columns that they and biases
 * take: src/backends/ref has the equations. Sums of many elements are in double, in parts whose
 * number depends on shapes alone, added in order.
 */
#include "kernels/cuda/norm.h"

#include <math.h>

#include "core/half_impl.h"
#include "kernels/cuda/block_sums.h"
#include "kernels/cuda/grid.h"

/* ---- sums ---- */

/* Adds what element `at` of a channel has for its sums. */
INLINE void norm_add(double *a, double *b, const cuda_sums *arg, size_t at, uint32_t channel,
                     uint32_t row)
{
    const cuda_stat *stat;
    float dy;

    if (arg->kind == CUDA_MOMENTS) {
        const double d = (double)arg->x[at] - (double)(arg->shift ? arg->shift[channel]
                                                                  : arg->x[(size_t)channel *
                                                                           arg->plane]);

        *a += d;
        *b += d * d;
        return;
    }
    if (arg->half)
        dy = arg->f16 ? half_widen_f16(arg->half[at]) : half_widen_bf16(arg->half[at]);
    else
        dy = arg->dy[at];
    *a += (double)dy;
    if (arg->kind == CUDA_VALUES)
        return;
    stat = arg->stat + (arg->kind == CUDA_OF_ROWS ? row : channel);
    *b += (double)(dy * ((arg->x[at] - stat->mean) * stat->scale));
}

static inline void norm_put(const cuda_sums *arg, uint32_t channel, uint32_t part, double a,
                            double b)
{
    double *to = arg->part + 2 * ((size_t)channel * arg->parts + part);

    to[0] = a;
    to[1] = b;
}

/* A block takes a part of a channel. */
KERNEL(norm_channel_sums, cuda_sums)
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
            double sum = 0, other = 0;

            for (uint32_t e = begin + THREAD; e < end; e += THREADS) {
                norm_add(&sum, &other, &arg,
                         ((size_t)sample * arg.channels + channel) * arg.plane + place, channel,
                         sample);
                sample += samples;
                place += places;
                sample += place >= arg.plane;
                place -= place >= arg.plane ? arg.plane : 0;
            }
            a[THREAD] = sum;
            b[THREAD] = other;
        }
        block_sum_pairs(a, b, 1);
        PHASE
        if (THREAD == 0)
            norm_put(&arg, channel, part, a[0], b[0]);
    }
}

/* The same where plane is 1: neighbours in memory are of different channels, and so are threads. */
KERNEL(norm_column_sums, cuda_sums)
{
    SHARED double a[CUDA_BLOCK], b[CUDA_BLOCK];
    const uint32_t tiles = (arg.channels + CUDA_COLUMNS - 1) / CUDA_COLUMNS;

    for (uint32_t work = BLOCK; work < tiles * arg.parts; work += BLOCKS) {
        const uint32_t first = work % tiles * CUDA_COLUMNS, part = work / tiles;
        const uint32_t begin = part * arg.each;
        const uint32_t end = begin + arg.each < arg.n ? begin + arg.each : arg.n;

        PHASE {
            const uint32_t channel = first + THREAD % CUDA_COLUMNS;
            double sum = 0, other = 0;

            for (uint32_t row = begin + THREAD / CUDA_COLUMNS; row < end && channel < arg.channels;
                 row += THREADS / CUDA_COLUMNS)
                norm_add(&sum, &other, &arg, (size_t)row * arg.channels + channel, channel, row);
            a[THREAD] = sum;
            b[THREAD] = other;
        }
        block_sum_pairs(a, b, CUDA_COLUMNS);
        PHASE
        if (THREAD < CUDA_COLUMNS && first + THREAD < arg.channels)
            norm_put(&arg, first + THREAD, part, a[THREAD], b[THREAD]);
    }
}

/* Both sums of a channel, over its parts. */
static inline void norm_join(double *a, double *b, const cuda_settle *arg, size_t channel)
{
    const double *part = arg->part + 2 * channel * arg->parts;

    *a = *b = 0;
    for (uint32_t p = 0; p < arg->parts; p++) {
        *a += part[2 * p];
        *b += part[2 * p + 1];
    }
}

/* What goes over ranks. */
KERNEL(norm_totals, cuda_settle)
{
    EACH(c, arg.channels)
    {
        double a, b;

        norm_join(&a, &b, &arg, c);
        arg.total[2 * c] = arg.phantom ? 0 : a;
        arg.total[2 * c + 1] = arg.phantom ? 0 : b;
        if (c == 0)
            arg.total[2 * (size_t)arg.channels] = arg.phantom ? 0 : arg.count;
    }
}

INLINE void norm_take(double *a, double *b, double *count, const cuda_settle *arg, size_t c)
{
    if (arg->total) {
        *a = arg->total[2 * c];
        *b = arg->total[2 * c + 1];
        *count = arg->total[2 * (size_t)arg->channels];
    } else {
        norm_join(a, b, arg, c);
        *count = arg->count;
    }
}

/* Moves the running statistics, and keeps those of the batch; where there are no samples, as they
   are. Over ranks sums are of differences from the running mean, which all ranks have. */
KERNEL(norm_settle_moments, cuda_settle)
{
    EACH(c, arg.channels)
    {
        const double rate = arg.momentum;
        double sum, squares, count, shift, mean, var, unbiased;

        norm_take(&sum, &squares, &count, &arg, c);
        if (count == 0) {
            arg.stat[c].mean = arg.running_mean[c];
            arg.stat[c].scale = (float)(1 / sqrt((double)arg.running_var[c] + arg.eps));
            continue;
        }
        shift = sum / count;
        mean = (double)(arg.total ? arg.running_mean[c] : arg.x[c * arg.plane]) + shift;
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
KERNEL(norm_recall, cuda_settle)
{
    EACH(c, arg.channels)
    {
        arg.stat[c].mean = arg.running_mean[c];
        arg.stat[c].scale = (float)(1 / sqrt((double)arg.running_var[c] + arg.eps));
    }
}

static inline void norm_put_gradient(float *to, double value, bool accumulate)
{
    if (to)
        *to = accumulate ? *to + (float)value : (float)value;
}

KERNEL(norm_settle_gradients, cuda_settle)
{
    EACH(c, arg.channels)
    {
        double sum, product;

        norm_join(&sum, &product, &arg, c);
        sum = arg.phantom ? 0 : sum;
        product = arg.phantom ? 0 : product;
        norm_put_gradient(arg.db ? arg.db + c : NULL, sum, arg.accumulate);
        norm_put_gradient(arg.dw ? arg.dw + c : NULL, product, arg.accumulate);
        if (arg.mean) {
            arg.mean[c].mean = (float)(sum / arg.count);
            arg.mean[c].scale = (float)(product / arg.count);
        }
    }
}

/* Over ranks: the means of the gradients. */
KERNEL(norm_settle_means, cuda_settle)
{
    EACH(c, arg.channels)
    {
        double sum, product, count;

        norm_take(&sum, &product, &count, &arg, c);
        arg.mean[c].mean = count > 0 ? (float)(sum / count) : 0;
        arg.mean[c].scale = count > 0 ? (float)(product / count) : 0;
    }
}

/* ---- batch norm ---- */

/* Four neighbours in one access. */
typedef struct __attribute__((aligned(16))) norm_four {
    float v[4];
} norm_four;

static inline float norm_value(float x, cuda_stat stat, float weight, float bias)
{
    return weight * (x - stat.mean) * stat.scale + bias;
}

static inline float norm_slope(float x, float dy, cuda_stat stat, cuda_stat mean, float weight)
{
    const float z = (x - stat.mean) * stat.scale;

    return weight * stat.scale * (dy - mean.mean - z * mean.scale);
}

KERNEL(norm_batch, cuda_norm)
{
    const size_t n = (size_t)arg.n * arg.channels * arg.plane;
    const uint32_t quads = arg.plane / 4;

    if (arg.plane % 4 == 0) {
        EACH(i, n / 4)
        {
            const uint32_t c = (uint32_t)i / quads % arg.channels;
            const cuda_stat stat = arg.stat[c];
            const float weight = arg.weight[c], bias = arg.bias[c];
            norm_four four = ((const norm_four *)(const void *)arg.x)[i];

            for (int e = 0; e < 4; e++)
                four.v[e] = norm_value(four.v[e], stat, weight, bias);
            ((norm_four *)(void *)arg.out)[i] = four;
        }
    } else {
        EACH(i, n)
        {
            const uint32_t c = (uint32_t)i / arg.plane % arg.channels;

            arg.out[i] = norm_value(arg.x[i], arg.stat[c], arg.weight[c], arg.bias[c]);
        }
    }
}

KERNEL(norm_batch_backward, cuda_norm)
{
    const size_t n = (size_t)arg.n * arg.channels * arg.plane;
    const uint32_t quads = arg.plane / 4;

    if (arg.plane % 4 == 0) {
        EACH(i, n / 4)
        {
            const uint32_t c = (uint32_t)i / quads % arg.channels;
            const cuda_stat stat = arg.stat[c], mean = arg.mean[c];
            const float weight = arg.weight[c];
            const norm_four x = ((const norm_four *)(const void *)arg.x)[i];
            norm_four four = ((const norm_four *)(const void *)arg.dy)[i];

            for (int e = 0; e < 4; e++)
                four.v[e] = norm_slope(x.v[e], four.v[e], stat, mean, weight);
            ((norm_four *)(void *)arg.out)[i] = four;
        }
    } else {
        EACH(i, n)
        {
            const uint32_t c = (uint32_t)i / arg.plane % arg.channels;

            arg.out[i] = norm_slope(arg.x[i], arg.dy[i], arg.stat[c], arg.mean[c], arg.weight[c]);
        }
    }
}

/* ---- layer norm and RMS norm: a block takes a row ---- */

KERNEL(norm_layer, cuda_norm)
{
    SHARED float sum[CUDA_BLOCK], squares[CUDA_BLOCK];

    for (uint32_t row = BLOCK; row < arg.n; row += BLOCKS) {
        const float *x = arg.x + (size_t)row * arg.channels;

        PHASE {
            sum[THREAD] = 0;
            for (uint32_t f = THREAD; f < arg.channels; f += THREADS)
                sum[THREAD] += x[f];
        }
        block_sum(sum, CUDA_BLOCK);
        PHASE {
            const float mean = arg.rms ? 0 : sum[0] / (float)arg.channels;

            squares[THREAD] = 0;
            for (uint32_t f = THREAD; f < arg.channels; f += THREADS)
                squares[THREAD] += (x[f] - mean) * (x[f] - mean);
        }
        block_sum(squares, CUDA_BLOCK);
        PHASE {
            cuda_stat stat;

            stat.mean = arg.rms ? 0 : sum[0] / (float)arg.channels;
            stat.scale = 1 / sqrtf(squares[0] / (float)arg.channels + arg.eps);
            for (uint32_t f = THREAD; f < arg.channels; f += THREADS)
                arg.out[(size_t)row * arg.channels + f] =
                    norm_value(x[f], stat, arg.weight[f], arg.bias ? arg.bias[f] : 0);
            if (THREAD == 0 && arg.stat)
                arg.stat[row] = stat;
        }
    }
}

KERNEL(norm_layer_backward, cuda_norm)
{
    SHARED float sum[CUDA_BLOCK], product[CUDA_BLOCK];

    for (uint32_t row = BLOCK; row < arg.n; row += BLOCKS) {
        const size_t first = (size_t)row * arg.channels;
        const cuda_stat stat = arg.stat[row];

        PHASE {
            sum[THREAD] = product[THREAD] = 0;
            for (uint32_t f = THREAD; f < arg.channels; f += THREADS) {
                const float g = arg.dy[first + f] * arg.weight[f];

                sum[THREAD] += g;
                product[THREAD] += g * ((arg.x[first + f] - stat.mean) * stat.scale);
            }
        }
        block_sum(sum, CUDA_BLOCK);
        block_sum(product, CUDA_BLOCK);
        PHASE {
            const float mean = arg.rms ? 0 : sum[0] / (float)arg.channels;
            const float part = product[0] / (float)arg.channels;

            for (uint32_t f = THREAD; f < arg.channels; f += THREADS) {
                const float z = (arg.x[first + f] - stat.mean) * stat.scale;

                arg.out[first + f] =
                    stat.scale * (arg.dy[first + f] * arg.weight[f] - mean - z * part);
            }
        }
    }
}
