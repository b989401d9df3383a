/*
 * augment_random_crop.c - shift the image by up to `padding` pixels in each direction: pad it, and
 * crop it to its old size, as torchvision's RandomCrop(size, padding).
 */
#include <string.h>

#include "image/augment.h"

typedef struct random_crop {
    int64_t padding;
    int mode; /* co_images_border */
} random_crop;

static const char *const random_crop_modes[] = {"zero", "edge", "reflect", NULL};

static const co_key random_crop_keys[] = {
    {"padding", CO_KEY_INT, offsetof(random_crop, padding), "4", 1, 4096, NULL,
     "pixels of the border"},
    {"mode", CO_KEY_CHOICE, offsetof(random_crop, mode), "zero", 0, 0, random_crop_modes,
     "what the border holds: zeros, the pixel at the edge, or the image mirrored at it"},
    CO_KEYS_END,
};

static co_status random_crop_check(const void *self, const co_shape *shape)
{
    const random_crop *crop = self;
    const int64_t side = shape->dim[1] < shape->dim[2] ? shape->dim[1] : shape->dim[2];

    if (crop->padding < side || crop->mode == CO_IMAGES_EDGE)
        return CO_OK;
    return co_fail(
        CO_E_USAGE,
        "augmentation random-crop: a padding of %lld is no less than the images, %lldx%lld",
        (long long)crop->padding, (long long)shape->dim[1], (long long)shape->dim[2]);
}

static void random_crop_border(uint8_t *out, const random_crop *crop, const uint8_t *in, int64_t n,
                               int64_t shift, const int64_t span[2])
{
    for (int64_t x = span[0]; x < span[1]; x++) {
        const int64_t source = co_crop_source(crop->mode, x + shift, n);

        out[x] = source < 0 ? 0 : in[source];
    }
}

static int64_t random_crop_clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* out[x] = in[x + shift] */
static void random_crop_row(uint8_t *out, const random_crop *crop, const uint8_t *in, int64_t n,
                            int64_t shift)
{
    const int64_t begin = random_crop_clamp(-shift, 0, n);
    const int64_t end = random_crop_clamp(n - shift, begin, n);

    random_crop_border(out, crop, in, n, shift, (const int64_t[2]){0, begin});
    if (begin < end)
        memcpy(out + begin, in + begin + shift, (size_t)(end - begin));
    random_crop_border(out, crop, in, n, shift, (const int64_t[2]){end, n});
}

static bool random_crop_bytes(const void *self, uint8_t *out, const uint8_t *in,
                              const co_shape *shape, const co_rng *rng)
{
    const random_crop *crop = self;
    const int64_t height = shape->dim[1], width = shape->dim[2];
    int64_t down, right;
    int32_t shift[2];

    co_crop_shift(shift, (int32_t)crop->padding, rng);
    down = shift[0];
    right = shift[1];
    if (down == 0 && right == 0)
        return false;
    for (int64_t c = 0; c < shape->dim[0]; c++, in += height * width)
        for (int64_t y = 0; y < height; y++, out += width) {
            const int64_t source = co_crop_source(crop->mode, y + down, height);

            if (source < 0)
                memset(out, 0, (size_t)width);
            else
                random_crop_row(out, crop, in + source * width, width, right);
        }
    return true;
}

static void random_crop_describe(const void *self, co_images_step *out)
{
    const random_crop *crop = self;

    *out = (co_images_step){.kind = CO_IMAGES_CROP, .n = {(int32_t)crop->padding, crop->mode}};
}

const co_augment_ops co_augment_random_crop = {
    .name = "random-crop",
    .summary = "pad, and cut the old size out at a random place",
    .keys = random_crop_keys,
    .self_size = sizeof(random_crop),
    .check = random_crop_check,
    .bytes = random_crop_bytes,
    .describe = random_crop_describe,
};
