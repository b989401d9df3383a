/*
 * augment_random_resized_crop.c - a box of random area and aspect ratio, scaled to the sample's
 * size: torchvision's RandomResizedCrop (Szegedy et al., arXiv:1409.4842).
 */
#include <math.h>

#include "image/augment.h"

#define RANDOM_RESIZED_CROP_TRIES 10

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

/* The largest centred box of an allowed aspect ratio. */
static void random_resized_crop_middle(co_image_box *out, const random_resized_crop *self,
                                       double height, double width)
{
    const double least = self->ratio.v[0], largest = self->ratio.v[1], ratio = width / height;
    double h = height, w = width;

    if (ratio < least)
        h = nearbyint(width / least);
    else if (ratio > largest)
        w = nearbyint(height * largest);
    h = fmax(1, fmin(h, height));
    w = fmax(1, fmin(w, width));
    *out = (co_image_box){floor((width - w) / 2), floor((height - h) / 2), w, h};
}

static void random_resized_crop_box(const void *state, co_image_box *out, int64_t height,
                                    int64_t width, const co_rng *rng)
{
    const random_resized_crop *self = state;
    const double *scale = self->scale.v, area = (double)height * (double)width;
    const double low = log(self->ratio.v[0]), high = log(self->ratio.v[1]);

    for (uint32_t k = 0; k < RANDOM_RESIZED_CROP_TRIES; k++) {
        double part, ratio, h, w;
        uint32_t word[4];

        co_rng_block(word, rng, k);
        part = area * (scale[0] + (scale[1] - scale[0]) * (double)co_rng_to_unit(word[0]));
        ratio = exp(low + (high - low) * (double)co_rng_to_unit(word[1]));
        w = nearbyint(sqrt(part * ratio));
        h = nearbyint(sqrt(part / ratio));
        if (w >= 1 && h >= 1 && w <= (double)width && h <= (double)height) {
            out->y = (double)co_augment_below(word[2], height - (int64_t)h + 1);
            out->x = (double)co_augment_below(word[3], width - (int64_t)w + 1);
            out->width = w;
            out->height = h;
            return;
        }
    }
    random_resized_crop_middle(out, self, (double)height, (double)width);
}

const co_augment_ops co_augment_random_resized_crop = {
    .name = "random-resized-crop",
    .summary = "a part of random area and shape, brought to the size of a sample",
    .keys = random_resized_crop_keys,
    .self_size = sizeof(random_resized_crop),
    .check = random_resized_crop_check,
    .box = random_resized_crop_box,
};
