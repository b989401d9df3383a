/* norm.cu - layer and RMS norm, a block for each row: src/backends/ref has the equations. */
#include "kernels/cuda/norm.h"

#include <math.h>

#include "kernels/cuda/block_sums.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/grid.h"

static inline float norm_param(const cuda_norm *arg, const float *param, uint32_t f)
{
    return arg->rounded ? element_rounded(param[f], arg->type) : param[f];
}

static inline float norm_x(const cuda_norm *arg, size_t at)
{
    return element_read(arg->x, at, arg->type);
}

static inline float norm_dy(const cuda_norm *arg, size_t at)
{
    return element_read(arg->dy, at, arg->type);
}

KERNEL(norm_layer, cuda_norm)
{
    SHARED float sum[CUDA_BLOCK], squares[CUDA_BLOCK];

    for (uint32_t row = BLOCK; row < arg.n; row += BLOCKS) {
        const size_t first = (size_t)row * arg.channels;

        PHASE {
            sum[THREAD] = 0;
            for (uint32_t f = THREAD; f < arg.channels; f += THREADS)
                sum[THREAD] += norm_x(&arg, first + f);
        }
        block_sum(sum, CUDA_BLOCK);
        PHASE {
            const float mean = arg.rms ? 0 : sum[0] / (float)arg.channels;

            squares[THREAD] = 0;
            for (uint32_t f = THREAD; f < arg.channels; f += THREADS) {
                const float d = norm_x(&arg, first + f) - mean;

                squares[THREAD] += d * d;
            }
        }
        block_sum(squares, CUDA_BLOCK);
        PHASE {
            cuda_stat stat;

            stat.mean = arg.rms ? 0 : sum[0] / (float)arg.channels;
            stat.scale = 1 / sqrtf(squares[0] / (float)arg.channels + arg.eps);
            for (uint32_t f = THREAD; f < arg.channels; f += THREADS)
                element_write(arg.out, first + f, arg.type,
                              norm_param(&arg, arg.weight, f) *
                                      (norm_x(&arg, first + f) - stat.mean) * stat.scale +
                                  (arg.bias ? norm_param(&arg, arg.bias, f) : 0));
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
                const float g = norm_dy(&arg, first + f) * norm_param(&arg, arg.weight, f);

                sum[THREAD] += g;
                product[THREAD] += g * ((norm_x(&arg, first + f) - stat.mean) * stat.scale);
            }
        }
        block_sum(sum, CUDA_BLOCK);
        block_sum(product, CUDA_BLOCK);
        PHASE {
            const float mean = arg.rms ? 0 : sum[0] / (float)arg.channels;
            const float part = product[0] / (float)arg.channels;

            for (uint32_t f = THREAD; f < arg.channels; f += THREADS) {
                const float z = (norm_x(&arg, first + f) - stat.mean) * stat.scale;
                const float g = norm_dy(&arg, first + f) * norm_param(&arg, arg.weight, f);

                element_write(arg.out, first + f, arg.type, stat.scale * (g - mean - z * part));
            }
        }
    }
}
