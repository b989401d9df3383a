/* number.h - the types of floats of a tensor, for kernels and for who launches them. */
#ifndef CO_KERNELS_CUDA_NUMBER_H
#define CO_KERNELS_CUDA_NUMBER_H

/* Neighbours in memory that a thread takes at once where there are as many: 16 bytes in 16 bits. */
#define CUDA_TOGETHER 8

typedef enum cuda_number { CUDA_NUMBER_F32, CUDA_NUMBER_BF16, CUDA_NUMBER_F16 } cuda_number;

#endif
