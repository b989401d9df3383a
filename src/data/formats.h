/* formats.h - every data set format; registry.c lists them. */
#ifndef CO_DATA_FORMATS_H
#define CO_DATA_FORMATS_H

#include <cohort/ext/dataset.h>

extern const co_dataset_ops co_dataset_mnist;
extern const co_dataset_ops co_dataset_fashion_mnist;
extern const co_dataset_ops co_dataset_idx;
extern const co_dataset_ops co_dataset_cifar10;
extern const co_dataset_ops co_dataset_cifar100;
extern const co_dataset_ops co_dataset_imagefolder;
extern const co_dataset_ops co_dataset_pack;
extern const co_dataset_ops co_dataset_tar;
extern const co_dataset_ops co_dataset_synthetic, co_dataset_synthetic_tokens;
extern const co_dataset_ops co_dataset_arrays;
extern const co_dataset_ops co_dataset_text;
extern const co_dataset_ops co_dataset_tokens;

#endif
