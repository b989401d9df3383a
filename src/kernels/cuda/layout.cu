/*
 * layout.cu - tensors (n, channels, plane) to those whose channels come last, and back, from and to
 * each type of floats; what is added to channels that come last.
 */
#include "kernels/cuda/layout.h"

#include "core/half_impl.h"
#include "kernels/cuda/grid.h"

#define TILE CUDA_TRANSPOSE_TILE

static inline float layout_read(const void *from, size_t at, cuda_number type)
{
    if (type == CUDA_NUMBER_F32)
        return ((const float *)from)[at];
    return type == CUDA_NUMBER_F16 ? half_widen_f16(((const uint16_t *)from)[at])
                                   : half_widen_bf16(((const uint16_t *)from)[at]);
}

static inline float layout_rounded(float value, cuda_number type)
{
    if (type == CUDA_NUMBER_F32)
        return value;
    return type == CUDA_NUMBER_F16 ? half_widen_f16(half_round_f16(value))
                                   : half_widen_bf16(half_round_bf16(value));
}

static inline void layout_write(void *to, size_t at, cuda_number type, float value)
{
    if (type == CUDA_NUMBER_F32)
        ((float *)to)[at] = value;
    else
        ((uint16_t *)to)[at] =
            type == CUDA_NUMBER_F16 ? half_round_f16(value) : half_round_bf16(value);
}

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
                    layout_read(arg.in, first + (size_t)r * arg.columns + c, arg.from);
        }
        PHASE
        for (uint32_t e = THREAD; e < TILE * TILE; e += THREADS) {
            const uint32_t c = column + e / TILE, r = row + e % TILE;
            const size_t at = first + (size_t)c * arg.rows + r;

            if (r < arg.rows && c < arg.columns)
                layout_write(arg.out, at, arg.to,
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

        layout_write(arg.out, i, arg.to,
                     layout_read(arg.x, i, arg.from) +
                         (arg.rounded ? layout_rounded(bias, arg.to) : bias));
    }
}
