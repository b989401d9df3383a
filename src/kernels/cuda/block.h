/* block.h - the size of blocks, for kernels and for who launches them. */
#ifndef CO_KERNELS_CUDA_BLOCK_H
#define CO_KERNELS_CUDA_BLOCK_H

/* Threads of a block where a kernel has phases; its SHARED arrays are made for them. */
#define CUDA_BLOCK 256

#endif
