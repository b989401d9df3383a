/*
 * augment.h - interface of an augmentation, and the list of them in a config.
 *
 * Random numbers are a function of (seed, position in the list, epoch, sample): independent of
 * threads, ranks and batches.
 */
#ifndef CO_IMAGE_AUGMENT_H
#define CO_IMAGE_AUGMENT_H

#include "core/plugin.h"
#include "core/rng.h"
#include "image/image.h"
#include "kernels/images/places.h"

typedef struct co_augment_ops {
    const char *name;
    const char *summary;
    const co_key *keys;
    size_t self_size;
    /** CO_E_USAGE for samples (C, H, W) that are not supported. NULL: all are. */
    co_status (*check)(const void *self, const co_shape *shape);
    /* One of box, bytes and floats; random numbers come from `rng` only. */
    /** The part of an image that is decoded and scaled to the sample's size. Must be the first. */
    void (*box)(const void *self, co_image_box *out, int64_t height, int64_t width,
                const co_rng *rng);
    /** From `in` to `out`, bytes (C, H, W). False: nothing changed, and `out` was not written. */
    bool (*bytes)(const void *self, uint8_t *out, const uint8_t *in, const co_shape *shape,
                  const co_rng *rng);
    /** Optional, with `bytes`, if it only swaps left and right: whether it does this time. */
    bool (*mirrors)(const void *self, const co_rng *rng);
    /** In place: normalised floats (C, H, W). Comes after those of bytes. */
    void (*floats)(const void *self, float *inout, const co_shape *shape, const co_rng *rng);
    /** Its kind and keys, for a device to do the same (ext/images.h). NULL: only the host can. */
    void (*describe)(const void *self, co_images_step *out);
} co_augment_ops;

extern const co_augment_ops co_augment_random_resized_crop;
extern const co_augment_ops co_augment_horizontal_flip;
extern const co_augment_ops co_augment_random_crop;
extern const co_augment_ops co_augment_color_jitter;
extern const co_augment_ops co_augment_cutout;

/* NULL-terminated, in the order that `cohort list augmentations` prints. */
extern const co_augment_ops *const co_augmentations[];
extern const co_plugins co_augment_plugins;

/* A list of augmentations, in the order of the config, allocated in the config's arena. */
typedef struct co_augment {
    size_t n;
    struct co_augment_one {
        const co_augment_ops *ops;
        const co_value *value; /* for the position in messages */
        void *self;
    } * one;
    size_t n_box, n_bytes; /* how many choose a box, change bytes; the others floats */
} co_augment;

/* What the random numbers of a sample depend on. */
typedef struct co_augment_place {
    uint64_t seed, epoch, sample;
} co_augment_place;

/* From `augment: NAME`, `{name: NAME, key: value}` or a list of these; NULL: an empty list. */
co_status co_augment_read(co_augment *out, const co_value *value, co_config *config);
/* CO_E_USAGE unless all of them support samples of this shape. */
co_status co_augment_check(const co_augment *augment, const co_shape *shape);

/* All of them for a device; false: *name has no description. */
bool co_augment_describe(co_images_recipe *out, const char **name, const co_augment *augment);

/* Choose the box of an image; only if n_box is not 0. */
void co_augment_box(const co_augment *augment, co_image_box *out, int64_t height, int64_t width,
                    const co_augment_place *place);
/* Returns how many of the first augmentations of bytes only mirror, and whether they do in all. */
size_t co_augment_mirrors(bool *mirror, const co_augment *augment, const co_augment_place *place);
/* Apply the augmentations of bytes, except the first `skip`, to `in` (C, H, W). The result is in
   `in` or in one of the blocks, each of the sample's size. */
const uint8_t *co_augment_bytes(const co_augment *augment, const uint8_t *in, uint8_t *block[2],
                                const co_shape *shape, const co_augment_place *place, size_t skip);
void co_augment_floats(const co_augment *augment, float *inout, const co_shape *shape,
                       const co_augment_place *place);

#endif
