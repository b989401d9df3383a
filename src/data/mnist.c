/*
 * mnist.c - MNIST: 28x28 handwritten digits (LeCun, Cortes, Burges).
 */
#include "data/formats.h"
#include "data/idx_images.h"

static co_status mnist_open(void *self, co_dataset_info *info, const char *path, co_split split)
{
    if (!path)
        return co_fail(CO_E_USAGE, "data mnist: the key 'path' is missing: the folder that holds "
                                   "train-images-idx3-ubyte[.gz] and the other three files");
    return co_idx_images_open(self, info, path, split, 10, "mnist", "MNIST");
}

const co_dataset_ops co_dataset_mnist = {
    .name = "mnist",
    .summary = "28x28 handwritten digits; path: folder of the four IDX files, plain or .gz",
    .self_size = sizeof(co_idx_images),
    .open = mnist_open,
    .read = co_idx_images_read,
    .label = co_idx_images_label,
    .close = co_idx_images_close,
};
