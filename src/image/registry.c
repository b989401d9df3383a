/*
 * registry.c - every augmentation by name.
 */
#include <string.h>

#include "image/augment.h"

const co_augment_ops *const co_augmentations[] = {
    &co_augment_random_resized_crop, &co_augment_horizontal_flip, &co_augment_random_crop,
    &co_augment_color_jitter,        &co_augment_cutout,          NULL,
};

const co_augment_ops *co_augmentation_find(const char *name)
{
    for (const co_augment_ops *const *ops = co_augmentations; *ops; ops++)
        if (strcmp((*ops)->name, name) == 0)
            return *ops;
    return NULL;
}
