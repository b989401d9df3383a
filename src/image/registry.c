/*
 * registry.c - every augmentation by name.
 */
#include "image/augment.h"

const co_augment_ops *const co_augmentations[] = {
    &co_augment_random_resized_crop, &co_augment_horizontal_flip, &co_augment_random_crop,
    &co_augment_color_jitter,        &co_augment_cutout,          NULL,
};

const co_plugins co_augment_plugins = {"augmentation", "augment", co_augmentations, 0, NULL};

CO_PLUGIN_CHECK(co_augment_ops, self_size);
