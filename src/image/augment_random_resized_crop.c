/*
 * augment_random_resized_crop.c - a box of random area and aspect ratio, scaled to the sample's
 * size: torchvision's RandomResizedCrop (Szegedy et al., arXiv:1409.4842).
 */
#include <math.h>

#include "image/augment.h"

typedef struct random_resized_crop {
    co_reals scale, ratio;
} random_resized_crop;

static const co_key random_resized_crop_keys[] = {
    {"scale", CO_KEY_REALS, offsetof(random_resized_crop, scale), "[0.08, 1]", 1e-6, 1, NULL,
     "minimum and maximum fraction of the image's area"},
    {"ratio", CO_KEY_REALS, offsetof(random_resized_crop, ratio), "[0.75, 1.3333333333333333]",
     1e-3, 1e3, NULL, "minimum and maximum width / height"},
    CO_KEYS_END,
};

static co_status random_resized_crop_range(const co_reals *range, const char *key)
{
    if (range->n == 2 && range->v[0] <= range->v[1])
        return CO_OK;
    return co_fail(CO_E_USAGE, "augmentation random-resized-crop: key '%s': expected [min, max]",
                   key);
}

static co_status random_resized_crop_check(const void *state, const co_shape *shape)
{
    const random_resized_crop *self = state;

    (void)shape;
    CO_TRY(random_resized_crop_range(&self->scale, "scale"));
    return random_resized_crop_range(&self->ratio, "ratio");
}

static void random_resized_crop_describe(const void *state, co_images_step *out)
{
    const random_resized_crop *self = state;

    *out = (co_images_step){.kind = CO_IMAGES_RANDOM_BOX};
    for (int i = 0; i < 2; i++) {
        out->scale[i] = self->scale.v[i];
        out->ratio[i] = self->ratio.v[i];
        out->log_ratio[i] = log(self->ratio.v[i]);
    }
}

static void random_resized_crop_box(const void *state, co_image_box *out, int64_t height,
                                    int64_t width, const co_rng *rng)
{
    co_images_step step;
    double box[4];

    random_resized_crop_describe(state, &step);
    co_random_box(box, &step, height, width, rng);
    *out = (co_image_box){box[0], box[1], box[2], box[3]};
}

const co_augment_ops co_augment_random_resized_crop = {
    .name = "random-resized-crop",
    .summary = "a part of random area and shape, brought to the size of a sample",
    .keys = random_resized_crop_keys,
    .self_size = sizeof(random_resized_crop),
    .check = random_resized_crop_check,
    .box = random_resized_crop_box,
    .describe = random_resized_crop_describe,
};
