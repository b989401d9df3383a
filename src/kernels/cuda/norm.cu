/* norm.cu - layer and RMS norm, a block for each row: src/backends/ref has the equations. */
#include "kernels/cuda/norm.h"

#include <math.h>

#include "kernels/cuda/block_sums.h"
#include "kernels/cuda/grid.h"

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
                    arg.weight[f] * (x[f] - stat.mean) * stat.scale + (arg.bias ? arg.bias[f] : 0);
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
