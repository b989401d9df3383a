/*
 * stripes.c - a data set as a plugin: images of stripes, whose direction is the label. Each is
 * computed when it is read, from its number alone, so any rank and any thread may ask for any.
 */
#include <cohort/ext/dataset.h>
#include <cohort/ext/rng.h>

typedef struct stripes {
    int64_t samples, side; /* keys */
    uint32_t stream;       /* set by open */
} stripes;

static const co_key stripes_keys[] = {
    {"samples", CO_KEY_INT, offsetof(stripes, samples), "500", 1, 1e9, NULL, "of each split"},
    {"side", CO_KEY_INT, offsetof(stripes, side), "12", 4, 256, NULL, "of an image, in pixels"},
    CO_KEYS_END,
};

static co_status stripes_open(void *self, co_dataset_info *info, const char *path, co_split split)
{
    stripes *own = self;

    (void)path;
    own->stream = CO_RNG_PLUGIN | (uint32_t)split << 8;
    info->count = (uint64_t)own->samples;
    info->shape = (co_shape){3, {1, own->side, own->side}};
    info->classes = 2;
    return CO_OK;
}

static int32_t stripes_label(const void *self, uint64_t i)
{
    (void)self;
    return (int32_t)(i % 2);
}

/* Stripes two pixels wide, from a random offset, and some noise. */
static co_status stripes_read(const void *self, co_bytes *out, co_buffer *buffer, uint64_t i)
{
    const stripes *own = self;
    const size_t side = (size_t)own->side, n = side * side;
    const co_rng rng = {.seed = 1, .stream = own->stream, .item = (uint32_t)i};
    uint32_t word[4];
    uint8_t *pixel;

    CO_TRY(co_buffer_reserve(&pixel, buffer, n));
    co_rng_block(word, &rng, 0);
    for (size_t k = 0, offset = word[0] % 4; k < n; k++) {
        const size_t along = stripes_label(self, i) ? k / side : k % side;

        if (k % 4 == 0)
            co_rng_block(word, &rng, 1 + (uint32_t)k / 4);
        pixel[k] = (uint8_t)(((along + offset) % 4 < 2 ? 40 : 180) + word[k % 4] % 32);
    }
    *out = (co_bytes){pixel, n};
    return CO_OK;
}

static const co_dataset_ops stripes_ops = {
    .name = "stripes",
    .summary = "images of stripes that run down (0) or across (1)",
    .keys = stripes_keys,
    .self_size = sizeof(stripes),
    .open = stripes_open,
    .read = stripes_read,
    .label = stripes_label,
};

CO_PLUGIN_ENTRY
{
    return CO_PLUGIN_REGISTER(CO_PLUGIN_DATASET, &stripes_ops);
}
