/*
 * augment_color_jitter.c - change brightness, contrast, saturation and hue by random amounts, in
 * random order: torchvision's ColorJitter.
 */
#include <string.h>

#include "image/augment.h"
#include "image/color.h"
#include "kernels/images/colors.h"

typedef struct color_jitter {
    co_reals brightness, contrast, saturation, hue;
} color_jitter;

static const co_key color_jitter_keys[] = {
    {"brightness", CO_KEY_REALS, offsetof(color_jitter, brightness), "0", 0, 1e3, NULL,
     "b: factors from max(0, 1 - b) to 1 + b; or [min, max]"},
    {"contrast", CO_KEY_REALS, offsetof(color_jitter, contrast), "0", 0, 1e3, NULL, "likewise"},
    {"saturation", CO_KEY_REALS, offsetof(color_jitter, saturation), "0", 0, 1e3, NULL, "likewise"},
    {"hue", CO_KEY_REALS, offsetof(color_jitter, hue), "0", -0.5, 0.5, NULL,
     "h: turns of the colour circle from -h to h; or [min, max]"},
    CO_KEYS_END,
};

/* The range that a key specifies; false if it is invalid. */
static bool color_jitter_range(float range[2], const co_reals *value, bool hue)
{
    const double x = value->n ? value->v[0] : 0;

    if (value->n == 2) {
        range[0] = (float)x;
        range[1] = (float)value->v[1];
    } else {
        range[0] = (float)(hue ? -x : x < 1 ? 1 - x : 0);
        range[1] = (float)(hue ? x : 1 + x);
    }
    return value->n <= 2 && range[0] <= range[1];
}

static co_status color_jitter_check(const void *state, const co_shape *shape)
{
    const color_jitter *self = state;
    const co_reals *values[] = {&self->brightness, &self->contrast, &self->saturation, &self->hue};
    float range[2];

    for (size_t i = 0; i < 4; i++)
        if (!color_jitter_range(range, values[i], i == 3))
            return co_fail(CO_E_USAGE,
                           "augmentation color-jitter: key '%s': expected a number or [min, max]",
                           color_jitter_keys[i].name);
    if (shape->dim[0] == 1 || shape->dim[0] == 3)
        return CO_OK;
    return co_fail(CO_E_USAGE,
                   "augmentation color-jitter: is for images of 1 or 3 channels, these have %lld",
                   (long long)shape->dim[0]);
}

static void color_jitter_describe(const void *state, co_images_step *out)
{
    const color_jitter *self = state;
    const co_reals *values[] = {&self->brightness, &self->contrast, &self->saturation, &self->hue};

    *out = (co_images_step){.kind = CO_IMAGES_JITTER};
    for (size_t i = 0; i < CO_JITTERS; i++)
        (void)color_jitter_range(out->range[i], values[i], i == CO_JITTER_HUE);
}

static bool color_jitter_bytes(const void *state, uint8_t *out, const uint8_t *in,
                               const co_shape *shape, const co_rng *rng)
{
    static co_color_fn *const change[] = {co_color_brightness, co_color_contrast,
                                          co_color_saturation, co_color_hue};
    const size_t channels = (size_t)shape->dim[0], n = (size_t)(shape->dim[1] * shape->dim[2]);
    co_images_step step;
    co_jitter jitter;

    color_jitter_describe(state, &step);
    co_jitter_choose(&jitter, &step, rng);
    for (int32_t k = 0; k < jitter.n; k++)
        change[jitter.kind[k]](out, k ? out : in, channels, n, jitter.factor[k]);
    return jitter.n > 0;
}

const co_augment_ops co_augment_color_jitter = {
    .name = "color-jitter",
    .summary = "brightness, contrast, saturation and hue by random amounts",
    .keys = color_jitter_keys,
    .self_size = sizeof(color_jitter),
    .check = color_jitter_check,
    .bytes = color_jitter_bytes,
    .describe = color_jitter_describe,
};
