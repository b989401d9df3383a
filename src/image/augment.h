/*
 * augment.h - what the author of an augmentation fills in, and the list of them in a config.
 *
 * Everything drawn is a function of (seed, place in the list, epoch, sample): never of a thread,
 * a rank or a batch.
 */
#ifndef CO_IMAGE_AUGMENT_H
#define CO_IMAGE_AUGMENT_H

#include "core/plugin.h"
#include "core/rng.h"
#include "image/image.h"

typedef struct co_augment_ops {
    const char *name;
    const char *summary;
    const co_key *keys;
    size_t self_size;
    /** CO_E_USAGE for samples (C, H, W) that it cannot change. NULL: any will do. */
    co_status (*check)(const void *self, const co_shape *shape);
    /* One of these three; it draws from `rng` alone. */
    /** The part of an image that is decoded and brought to the sample's size. Comes first. */
    void (*box)(const void *self, co_image_box *out, int64_t height, int64_t width,
                const co_rng *rng);
    /** From one block of bytes (C, H, W) to another. False: it changes nothing this time, and has
     *  written nothing. */
    bool (*bytes)(const void *self, uint8_t *out, const uint8_t *in, const co_shape *shape,
                  const co_rng *rng);
    /** Beside `bytes`, where all it does is to swap left and right: whether it does this time. */
    bool (*mirrors)(const void *self, const co_rng *rng);
    /** In place, (C, H, W) as the network gets it, normalised. Comes after the bytes. */
    void (*floats)(const void *self, float *inout, const co_shape *shape, const co_rng *rng);
} co_augment_ops;

extern const co_augment_ops co_augment_random_resized_crop;
extern const co_augment_ops co_augment_horizontal_flip;
extern const co_augment_ops co_augment_random_crop;
extern const co_augment_ops co_augment_color_jitter;
extern const co_augment_ops co_augment_cutout;

/* NULL-ended, in the order that `cohort list augmentations` prints. */
extern const co_augment_ops *const co_augmentations[];
extern const co_plugins co_augment_plugins;

/* A list of augmentations, in the order of the config; lives in the config's arena. */
typedef struct co_augment {
    size_t n;
    struct co_augment_one {
        const co_augment_ops *ops;
        const co_value *value; /* where it is */
        void *self;
    } * one;
    size_t n_box, n_bytes; /* the first ones; the rest change floats */
} co_augment;

/* The position of a sample in the run: what the draws depend on. */
typedef struct co_augment_place {
    uint64_t seed, epoch, sample;
} co_augment_place;

/* From `augment: NAME`, `{name: NAME, key: value}` or a list of these; NULL: an empty list. */
co_status co_augment_read(co_augment *out, const co_value *value, co_config *config);
/* Whether they can change samples of this shape. */
co_status co_augment_check(const co_augment *augment, const co_shape *shape);

/* The box of an image; only where there is one to choose (n_box). */
void co_augment_box(const co_augment *augment, co_image_box *out, int64_t height, int64_t width,
                    const co_augment_place *place);
/* How many of the first augmentations of bytes only mirror, and whether they do in all. */
size_t co_augment_mirrors(bool *mirror, const co_augment *augment, const co_augment_place *place);
/* Bytes (C, H, W), without the first `skip` augmentations of them; the result is in `in` or in
 * one of the blocks, each of the sample's size. */
const uint8_t *co_augment_bytes(const co_augment *augment, const uint8_t *in, uint8_t *block[2],
                                const co_shape *shape, const co_augment_place *place, size_t skip);
void co_augment_floats(const co_augment *augment, float *inout, const co_shape *shape,
                       const co_augment_place *place);

/* A whole number from 0 to n - 1, from a word. */
static inline int64_t co_augment_below(uint32_t word, int64_t n)
{
    return (int64_t)(((uint64_t)word * (uint64_t)n) >> 32);
}

#endif
