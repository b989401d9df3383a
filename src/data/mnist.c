/*
 * mnist.c - MNIST: 28x28 handwritten digits (LeCun, Cortes, Burges).
 */
#include "data/formats.h"
#include "data/home.h"
#include "data/idx_images.h"

static co_status mnist_open(void *self, co_dataset_info *info, const char *path, co_split split)
{
    char home[CO_DATA_HOME_PATH];

    CO_TRY(co_data_home_find(&path, home, "mnist"));
    return co_idx_images_open(self, info, path, split, 10, "mnist", "MNIST");
}

const co_dataset_ops co_dataset_mnist = {
    .name = "mnist",
    .summary = "28x28 handwritten digits; path: folder of the four IDX files, plain or .gz, by "
               "default that "
               "of `cohort data get mnist`",
    .self_size = sizeof(co_idx_images),
    .open = mnist_open,
    .read = co_idx_images_read,
    .label = co_idx_images_label,
    .close = co_idx_images_close,
};
