/* images.h - what the kernel of images.cu is given: who launches it includes it, too. */
#ifndef CO_KERNELS_CUDA_IMAGES_H
#define CO_KERNELS_CUDA_IMAGES_H

#include <cohort/ext/images.h>

typedef co_images_batch cuda_images;

#endif
