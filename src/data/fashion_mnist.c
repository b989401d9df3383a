/*
 * fashion_mnist.c - Fashion-MNIST: 28x28 pictures of clothing (Xiao et al., arXiv:1708.07747).
 */
#include "core/fs.h"
#include "data/formats.h"
#include "data/home.h"
#include "data/idx_images.h"

/* Where Debian's package dataset-fashion-mnist puts it. */
#define FASHION_MNIST_PATH "/usr/share/datasets/fashion-mnist"

static co_status fashion_mnist_open(void *self, co_dataset_info *info, const char *path,
                                    co_split split)
{
    char home[CO_DATA_HOME_PATH];

    if (!path && co_fs_exists(FASHION_MNIST_PATH))
        path = FASHION_MNIST_PATH;
    CO_TRY(co_data_home_find(&path, home, "fashion-mnist"));
    return co_idx_images_open(self, info, path, split, 10, "fashion-mnist", "FashionMNIST");
}

static const char *fashion_mnist_class_name(const void *self, int32_t label)
{
    static const char *const names[] = {"T-shirt/top", "Trouser",   "Pullover", "Dress",
                                        "Coat",        "Sandal",    "Shirt",    "Sneaker",
                                        "Bag",         "Ankle boot"};

    (void)self;
    return names[label];
}

const co_dataset_ops co_dataset_fashion_mnist = {
    .name = "fashion-mnist",
    .summary = "28x28 pictures of clothing; path: " FASHION_MNIST_PATH " by default",
    .self_size = sizeof(co_idx_images),
    .open = fashion_mnist_open,
    .read = co_idx_images_read,
    .label = co_idx_images_label,
    .class_name = fashion_mnist_class_name,
    .close = co_idx_images_close,
};
