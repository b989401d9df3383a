/* lanes.h - how many threads of a block share a row, where rows are taken by themselves. */
#ifndef CO_DEVICE_CUDA_LANES_H
#define CO_DEVICE_CUDA_LANES_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/cuda/block.h"

/* Elements of a row for each of its threads, where there are so many. */
#define CUDA_ROW_PART 4

/* A power of 2, at most a block, by the width of the row alone. */
static inline uint32_t cuda_lanes(uint32_t width)
{
    uint32_t lanes = 1;

    while (lanes < CUDA_BLOCK && lanes * CUDA_ROW_PART < width)
        lanes *= 2;
    return lanes;
}

static inline size_t cuda_row_blocks(uint32_t rows, uint32_t lanes)
{
    const uint32_t of_block = CUDA_BLOCK / lanes;

    return (rows + of_block - 1) / of_block;
}

#endif
