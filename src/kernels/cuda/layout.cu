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

KERNEL(layout_add_row, cuda_add_row)
{
    EACH(i, arg.rows * arg.columns)
    {
        const float bias = arg.bias[i % arg.columns];

        element_write(arg.out, i, arg.to,
                      element_read(arg.x, i, arg.from) +
                          (arg.rounded ? element_rounded(bias, arg.to) : bias));
    }
}
