/*
 * augment_cutout.c - set a square to 0 after normalisation, which is the mean (DeVries and Taylor,
 * arXiv:1708.04552). Its centre may be any pixel, so a part of it may be outside.
 */
#include "image/augment.h"

typedef struct cutout {
    int64_t size, holes;
} cutout;

static const co_key cutout_keys[] = {
    {"size", CO_KEY_INT, offsetof(cutout, size), "8", 1, 1 << 14, NULL, "side of a square, pixels"},
    {"holes", CO_KEY_INT, offsetof(cutout, holes), "1", 1, 64, NULL, "squares"},
    CO_KEYS_END,
};

static void cutout_floats(const void *self, float *inout, const co_shape *shape, const co_rng *rng)
{
    const cutout *cut = self;
    const int64_t height = shape->dim[1], width = shape->dim[2];

    for (int64_t k = 0; k < cut->holes; k++) {
        int64_t row[2], column[2];
        uint32_t word[4];

        co_rng_block(word, rng, (uint32_t)k);
        co_cutout_span(row, co_augment_below(word[0], height), cut->size, height);
        co_cutout_span(column, co_augment_below(word[1], width), cut->size, width);
        for (int64_t c = 0; c < shape->dim[0]; c++)
            for (int64_t y = row[0]; y < row[1]; y++)
                for (int64_t x = column[0]; x < column[1]; x++)
                    inout[(c * height + y) * width + x] = 0;
    }
}

static void cutout_describe(const void *self, co_images_step *out)
{
    const cutout *cut = self;

    *out =
        (co_images_step){.kind = CO_IMAGES_CUTOUT, .n = {(int32_t)cut->size, (int32_t)cut->holes}};
}

const co_augment_ops co_augment_cutout = {
    .name = "cutout",
    .summary = "hide a square at a random place",
    .keys = cutout_keys,
    .self_size = sizeof(cutout),
    .floats = cutout_floats,
    .describe = cutout_describe,
};
