/*
 * layout.cu - tensors (n, channels, plane) to those whose channels come last, and back, from and to
 * each type of floats; what is added to channels that come last.
 */
#include "kernels/cuda/layout.h"

#include "kernels/cuda/elements.h"
#include "kernels/cuda/grid.h"

#define TILE CUDA_TRANSPOSE_TILE

/* A column more than it needs keeps the threads that read down a column in different banks. */
KERNEL(layout_transpose, cuda_transpose)
{
    SHARED float tile[TILE * (TILE + 1)];
    const uint32_t down = (arg.rows + TILE - 1) / TILE, across = (arg.columns + TILE - 1) / TILE;

    for (uint32_t work = BLOCK; work < arg.n * down * across; work += BLOCKS) {
        const uint32_t row = work / across % down * TILE, column = work % across * TILE;
        const size_t first = (size_t)(work / across / down) * arg.rows * arg.columns;

        PHASE
            for (uint32_t e = THREAD; e < TILE * TILE; e += THREADS) {
                const uint32_t r = row + e / TILE, c = column + e % TILE;

                if (r < arg.rows && c < arg.columns)
                    tile[e / TILE * (TILE + 1) + e % TILE] =
                        element_read(arg.in, first + (size_t)r * arg.columns + c, arg.from);
            }
        PHASE
            for (uint32_t e = THREAD; e < TILE * TILE; e += THREADS) {
                const uint32_t c = column + e / TILE, r = row + e % TILE;
                const size_t at = first + (size_t)c * arg.rows + r;

                if (r < arg.rows && c < arg.columns)
                    element_write(arg.out, at, arg.to,
                                  tile[e % TILE * (TILE + 1) + e / TILE] +
                                      (arg.accumulate ? ((const float *)arg.out)[at] : 0));
            }
    }
}

INLINE void layout_add_bias(const cuda_add_row *arg, int together)
{
    EACH (i, arg->rows * arg->columns / (uint32_t)together) {
        const size_t at = i * (uint32_t)together;
        const uint32_t column = (uint32_t)at % arg->columns;
        float v[CUDA_TOGETHER], bias[CUDA_TOGETHER];

        elements_read(v, arg->x, at, arg->from, together);
        elements_read(bias, arg->bias, column, CUDA_NUMBER_F32, together);
        for (int e = 0; e < together; e++)
            v[e] += arg->rounded ? element_rounded(bias[e], arg->to) : bias[e];
        elements_write(arg->out, at, arg->to, v, together);
    }
}

KERNEL(layout_add_row, cuda_add_row)
{
    if (arg.together == 1)
        layout_add_bias(&arg, 1);
    else
        layout_add_bias(&arg, CUDA_TOGETHER);
}
