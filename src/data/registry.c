/*
 * registry.c - every data set format and partition by name.
 */
#include "data/data.h"
#include "data/formats.h"

const co_dataset_ops *const co_dataset_formats[] = {
    /* images */
    &co_dataset_mnist,
    &co_dataset_fashion_mnist,
    &co_dataset_idx,
    &co_dataset_cifar10,
    &co_dataset_cifar100,
    &co_dataset_imagefolder,
    &co_dataset_pack,
    &co_dataset_tar,
    &co_dataset_synthetic,
    /* arrays and sequences */
    &co_dataset_synthetic_tokens,
    &co_dataset_arrays,
    &co_dataset_text,
    &co_dataset_tokens,
    NULL,
};

const co_partition_ops *const co_partitions[] = {
    &co_partition_global,     &co_partition_random,
    &co_partition_contiguous, &co_partition_interleaved,
    &co_partition_labels,     &co_partition_dirichlet,
    &co_partition_file,       NULL,
};

const co_plugins co_dataset_plugins = {"data set", "data", co_dataset_formats, CO_PLUGIN_DATASET,
                                       co_dataset_common_keys};
const co_plugins co_partition_plugins = {"partition", "partition", co_partitions, 0,
                                         co_partition_common_keys};

CO_PLUGIN_CHECK(co_dataset_ops, self_size);
CO_PLUGIN_CHECK(co_partition_ops, self_size);
