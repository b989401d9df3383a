/*
 * augment_horizontal_flip.c - swap left and right, with a probability.
 */
#include "image/augment.h"

#include <string.h>

typedef struct horizontal_flip {
    double p;
} horizontal_flip;

static const co_key horizontal_flip_keys[] = {
    {"p", CO_KEY_REAL, offsetof(horizontal_flip, p), "0.5", 0, 1, NULL, "probability of a flip"},
    CO_KEYS_END,
};

/* Reverse a row, eight bytes at a time. */
static void horizontal_flip_row(uint8_t *out, const uint8_t *in, size_t width)
{
    size_t x = 0;

    for (; x + 8 <= width; x += 8) {
        uint64_t bytes;

        memcpy(&bytes, in + width - 8 - x, sizeof(bytes));
        bytes = __builtin_bswap64(bytes);
        memcpy(out + x, &bytes, sizeof(bytes));
    }
    for (; x < width; x++)
        out[x] = in[width - 1 - x];
}

static bool horizontal_flip_mirrors(const void *self, const co_rng *rng)
{
    return co_flip_happens((float)((const horizontal_flip *)self)->p, rng);
}

static bool horizontal_flip_bytes(const void *self, uint8_t *out, const uint8_t *in,
                                  const co_shape *shape, const co_rng *rng)
{
    const size_t rows = (size_t)(shape->dim[0] * shape->dim[1]), width = (size_t)shape->dim[2];

    if (!horizontal_flip_mirrors(self, rng))
        return false;
    for (size_t row = 0; row < rows; row++, in += width, out += width)
        horizontal_flip_row(out, in, width);
    return true;
}

static void horizontal_flip_describe(const void *self, co_images_step *out)
{
    *out = (co_images_step){.kind = CO_IMAGES_FLIP, .p = (float)((const horizontal_flip *)self)->p};
}

const co_augment_ops co_augment_horizontal_flip = {
    .name = "horizontal-flip",
    .summary = "swap left and right, with a probability",
    .keys = horizontal_flip_keys,
    .self_size = sizeof(horizontal_flip),
    .bytes = horizontal_flip_bytes,
    .mirrors = horizontal_flip_mirrors,
    .describe = horizontal_flip_describe,
};
