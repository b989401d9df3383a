/* images.c - batches of images in a GPU's memory: the table of ext/images.h. */
#include "kernels/cuda/images.h"

#include "device/cuda/internal.h"

/* Blocks take samples one after another. */
static void images_draw(co_queue *queue, const co_images_batch *batch)
{
    cuda_images args = *batch;

    cuda_launch_blocks(queue, CUDA_images_draw, args.n, &args);
}

const co_device_images cuda_images_table = {images_draw};
