/* batchnorm.h - what the kernels of batchnorm.cu are given: who launches them includes it, too. */
#ifndef CO_KERNELS_CUDA_BATCHNORM_H
#define CO_KERNELS_CUDA_BATCHNORM_H

#include "kernels/cuda/sums.h"

/* What is done to the normalised value in the same pass. */
typedef enum cuda_epilogue {
    CUDA_EPILOGUE_NONE,
    CUDA_EPILOGUE_RELU,
    CUDA_EPILOGUE_ADD,
    CUDA_EPILOGUE_ADD_RELU,
    CUDA_EPILOGUE_RELU_ADD,
    CUDA_EPILOGUE_COUNT
} cuda_epilogue;

/* Of (n, channels, plane). */
typedef struct cuda_batchnorm {
    void *out;
    const void *x, *add;        /* add NULL: nothing */
    uint8_t *mask;              /* CUDA_EPILOGUE_ADD_RELU: a bit for each element; NULL: not kept */
    const float *weight, *bias; /* (channels) */
    const cuda_stat *stat;      /* (channels) */
    uint32_t n, channels, plane;
    uint32_t together; /* elements of a thread: 1, or CUDA_TOGETHER of one channel or of as many */
    cuda_number type;  /* of all tensors */
    cuda_epilogue epilogue;
    bool rounded; /* weight and bias to `type` */
    /* Backward: `out` is the gradient of x. */
    cuda_incoming in;
    const cuda_stat *mean; /* (channels) of dy and dy z */
} cuda_batchnorm;

#endif
