/*
 * synthetic.c - data set "synthetic": generated images that a network can learn, for tests and for
 * measuring speed.
 *
 * A class is a coarse pattern of 4x4 patches per channel; a sample is its class's pattern mixed
 * with noise. Every byte is a function of (seed, split, sample, position), so no sample is stored.
 * Drawing a random number for every byte would take longer than a step of a small network. So the
 * noise of a row is a window of one bank of random bytes; the sample determines where it begins and
 * which bits are flipped.
 */
#include <string.h>

#include "core/mem.h"
#include "core/rng.h"
#include "data/formats.h"

#define SYNTHETIC_GRID    ((size_t)4) /* patches in each direction */
#define SYNTHETIC_CELLS   (SYNTHETIC_GRID * SYNTHETIC_GRID)
#define SYNTHETIC_BANK    ((size_t)65536) /* positions where a window may begin; 2^n */
#define SYNTHETIC_AT_ONCE ((size_t)16)    /* pixels of a row that are mixed together */
#define SYNTHETIC_PATTERN 2               /* random stream of patterns; splits have 0 and 1 */
#define SYNTHETIC_NOISE   3               /* random stream of the bank */

typedef struct synthetic {
    co_ints shape; /* (C, H, W) */
    int64_t classes, samples, test_samples, seed;
    double noise;
    /* set by open */
    uint32_t split;
    size_t channels, height, width;
    uint8_t *pattern;    /* owned: (classes, C, GRID, GRID) */
    uint8_t *noise_bank; /* owned: SYNTHETIC_BANK bytes and a row more, of whole steps */
} synthetic;

#define SYNTHETIC(field) offsetof(synthetic, field)

static const co_key synthetic_keys[] = {
    {"shape", CO_KEY_INTS, SYNTHETIC(shape), "[1, 28, 28]", 1, 4096, NULL,
     "channels, height, width of a sample"},
    {"classes", CO_KEY_INT, SYNTHETIC(classes), "10", 1, 100000, NULL, "number of labels"},
    {"samples", CO_KEY_INT, SYNTHETIC(samples), "512", 1, 4e9, NULL, "of the training split"},
    {"test_samples", CO_KEY_INT, SYNTHETIC(test_samples), "0", 0, 4e9, NULL,
     "of the test split; 0: a quarter of samples"},
    {"noise", CO_KEY_REAL, SYNTHETIC(noise), "0.5", 0, 1, NULL,
     "share of noise in a pixel, the rest is its class's pattern"},
    {"seed", CO_KEY_INT, SYNTHETIC(seed), "1234", 0, 9e15, NULL, "of patterns and noise"},
    CO_KEYS_END,
};

static co_rng synthetic_rng(const synthetic *self, uint32_t step, uint64_t item)
{
    return (co_rng){(uint64_t)self->seed, CO_RNG_SYNTHETIC, step, (uint32_t)item};
}

static void synthetic_fill(uint8_t *out, const co_rng *rng, size_t n)
{
    for (size_t k = 0; k < n; k++)
        out[k] = (uint8_t)(co_rng_word(rng, k) >> 24);
}

/* Pixels of a row in whole steps of SYNTHETIC_AT_ONCE. */
static size_t synthetic_whole(size_t width)
{
    return (width + SYNTHETIC_AT_ONCE - 1) / SYNTHETIC_AT_ONCE * SYNTHETIC_AT_ONCE;
}

static co_status synthetic_make_tables(synthetic *self)
{
    const size_t size = self->channels * SYNTHETIC_CELLS;
    const size_t bank = SYNTHETIC_BANK + synthetic_whole(self->width);
    const co_rng noise = synthetic_rng(self, SYNTHETIC_NOISE, 0);

    self->pattern = co_calloc((size_t)self->classes, size);
    self->noise_bank = co_calloc(1, bank);
    if (!self->pattern || !self->noise_bank) {
        co_free(self->pattern);
        co_free(self->noise_bank);
        return CO_E_NOMEM;
    }
    for (size_t c = 0; c < (size_t)self->classes; c++) {
        const co_rng rng = synthetic_rng(self, SYNTHETIC_PATTERN, c);

        synthetic_fill(self->pattern + c * size, &rng, size);
    }
    synthetic_fill(self->noise_bank, &noise, bank);
    return CO_OK;
}

static co_status synthetic_open(void *state, co_dataset_info *info, const char *path,
                                co_split split)
{
    synthetic *self = state;
    const int64_t *shape = self->shape.v;

    if (path)
        return co_fail(CO_E_USAGE, "data synthetic: takes no path, it is made up");
    if (self->shape.n != 3)
        return co_fail(CO_E_USAGE,
                       "data synthetic: key 'shape': expected [channels, height, "
                       "width], got %zu numbers",
                       self->shape.n);
    self->split = (uint32_t)split;
    self->channels = (size_t)shape[0];
    self->height = (size_t)shape[1];
    self->width = (size_t)shape[2];
    info->count = (uint64_t)self->samples;
    info->in_memory = true;
    if (split == CO_SPLIT_TEST)
        info->count = self->test_samples ? (uint64_t)self->test_samples : (info->count + 3) / 4;
    info->shape = (co_shape){3, {shape[0], shape[1], shape[2]}};
    info->classes = self->classes;
    return synthetic_make_tables(self);
}

static int32_t synthetic_label(const void *state, uint64_t i)
{
    return (int32_t)(i % (uint64_t)((const synthetic *)state)->classes);
}

/* The pattern's part of each pixel in a row, from the patches `cell`; times 256. */
static void synthetic_spread(uint16_t *signal, size_t width, const uint8_t *cell, unsigned noise)
{
    for (size_t g = 0; g < SYNTHETIC_GRID; g++) {
        const size_t begin = (g * width + SYNTHETIC_GRID - 1) / SYNTHETIC_GRID;
        const size_t end = ((g + 1) * width + SYNTHETIC_GRID - 1) / SYNTHETIC_GRID;

        for (size_t x = begin; x < end; x++)
            signal[x] = (uint16_t)(cell[g] * (256 - noise));
    }
}

/* A row in whole steps: what is written beyond its end is the next row's, or room after the last.
 */
static void synthetic_mix(uint8_t *restrict row, const uint16_t *restrict signal,
                          const uint8_t *restrict window, size_t width, uint8_t flip,
                          uint16_t noise)
{
    for (size_t x = 0; x < width; x += SYNTHETIC_AT_ONCE)
        for (size_t k = x; k < x + SYNTHETIC_AT_ONCE; k++) {
            const uint16_t own = (uint16_t)((uint8_t)(window[k] ^ flip) * noise);

            row[k] = (uint8_t)((uint16_t)(signal[k] + own) >> 8);
        }
}

static co_status synthetic_read(const void *state, co_bytes *bytes, co_buffer *buffer, uint64_t i)
{
    const synthetic *self = state;
    const co_rng rng = synthetic_rng(self, self->split, i);
    const uint8_t *cell =
        self->pattern + (size_t)synthetic_label(state, i) * self->channels * SYNTHETIC_CELLS;
    const unsigned noise = (unsigned)(self->noise * 256);
    const size_t width = self->width, size = self->channels * self->height * width;
    /* one row of `signal` follows the sample */
    const size_t scratch = (size + SYNTHETIC_AT_ONCE + 1) / 2 * 2, whole = synthetic_whole(width);
    uint32_t word[4];
    uint16_t *signal;
    uint8_t *out;

    CO_TRY(co_buffer_reserve(&out, buffer, scratch + whole * sizeof(*signal)));
    *bytes = (co_bytes){out, size};
    signal = (uint16_t *)(void *)(out + scratch);
    memset(signal, 0, whole * sizeof(*signal));
    co_rng_block(word, &rng, 0);
    for (size_t row = 0, y = 0, patch = 0; row < self->channels * self->height; row++) {
        if (patch < SYNTHETIC_GRID) { /* the first row of its patches */
            const size_t patches =
                row / self->height * SYNTHETIC_GRID + y * SYNTHETIC_GRID / self->height;

            synthetic_spread(signal, width, cell + patches * SYNTHETIC_GRID, noise);
        }
        synthetic_mix(out, signal, self->noise_bank + (word[0] + row * width) % SYNTHETIC_BANK,
                      width, (uint8_t)(word[1] * (2 * (uint32_t)row + 1) >> 24), (uint16_t)noise);
        out += width;
        y = y + 1 < self->height ? y + 1 : 0;
        for (patch = y ? patch + SYNTHETIC_GRID : 0; patch >= self->height;)
            patch -= self->height;
    }
    return CO_OK;
}

static void synthetic_close(void *state)
{
    synthetic *self = state;

    co_free(self->pattern);
    co_free(self->noise_bank);
}

const co_dataset_ops co_dataset_synthetic = {
    .name = "synthetic",
    .summary = "made-up images, a pattern per class and noise; needs no files",
    .keys = synthetic_keys,
    .self_size = sizeof(synthetic),
    .open = synthetic_open,
    .read = synthetic_read,
    .label = synthetic_label,
    .close = synthetic_close,
};
