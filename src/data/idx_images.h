/* idx_images.h - a split like MNIST's: one IDX file of images and one of labels. */
#ifndef CO_DATA_IDX_IMAGES_H
#define CO_DATA_IDX_IMAGES_H

#include <cohort/ext/dataset.h>

#include "data/idx.h"

typedef struct co_idx_images {
    co_idx image, label; /* (N, H, W), (N) */
} co_idx_images;

/* Open a split below `folder`: {train,t10k}-images-idx3-ubyte[.gz] and -labels-idx1-ubyte[.gz], in
   the folder itself, in raw/, or in <package>/raw/ as torchvision does. Labels must be below
   `classes`. `dataset` is the data set's name, for messages. */
co_status co_idx_images_open(co_idx_images *out, co_dataset_info *info, const char *folder,
                             co_split split, int64_t classes, const char *dataset,
                             const char *package);
/* Open two files; `classes` 0 means as many as the largest label needs. */
co_status co_idx_images_open_files(co_idx_images *out, co_dataset_info *info, const char *image,
                                   const char *label, int64_t classes, const char *dataset);
/* As many as the largest label needs. */
int64_t co_idx_images_count_classes(const co_idx *label);
/* For co_dataset_ops; `self` is a co_idx_images. */
co_status co_idx_images_read(const void *self, co_bytes *out, co_buffer *buffer, uint64_t i);
int32_t co_idx_images_label(const void *self, uint64_t i);
void co_idx_images_close(void *self);

#endif
