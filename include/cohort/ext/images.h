/*
 * ext/images.h - how a device draws a batch of the images that are in its memory: as bytes of one
 * size, which it changes as the augmentations of a config do on the host, and makes floats of.
 */
#ifndef COHORT_EXT_IMAGES_H
#define COHORT_EXT_IMAGES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CO_IMAGES_MAX_STEPS 16

typedef enum co_images_kind {
    CO_IMAGES_RANDOM_BOX, /* random-resized-crop */
    CO_IMAGES_CROP,       /* random-crop */
    CO_IMAGES_FLIP,       /* horizontal-flip */
    CO_IMAGES_CUTOUT,
    CO_IMAGES_JITTER /* color-jitter */
} co_images_kind;

/** What is in the border of CO_IMAGES_CROP. */
typedef enum co_images_border {
    CO_IMAGES_ZERO,
    CO_IMAGES_EDGE,
    CO_IMAGES_REFLECT
} co_images_border;

/** One augmentation, with the keys of the config. */
typedef struct co_images_step {
    uint32_t kind;   /* co_images_kind */
    uint32_t stream; /* of its random numbers: co_rng.stream */
    int32_t n[2];    /* CROP: padding, co_images_border. CUTOUT: side, number */
    float p;         /* FLIP: probability */
    double scale[2], ratio[2], log_ratio[2]; /* RANDOM_BOX */
    float range[4][2]; /* JITTER: factors of brightness, contrast, saturation; turns of hue */
} co_images_step;

/** From the bytes of an image to the floats of a sample, (C, H, W) each. In this order: the box is
 * brought to the size `frame` as src/image/image.h says, or the image is taken as it is; steps on
 * bytes; zeros around; a float for each byte; steps on floats. */
typedef struct co_images_recipe {
    int32_t channels, stored[2];    /* height, width */
    int32_t boxed;                  /* 0: no box; `frame` is `stored` */
    double box[4];                  /* x, y, width, height, unless the first step chooses it */
    int32_t frame[2], to[2], at[2]; /* height, width; where the frame begins in the result */
    int32_t steps, floats;          /* all; where those on floats begin */
    co_images_step step[CO_IMAGES_MAX_STEPS];
} co_images_recipe;

/** All pointers lead to the device's memory. */
typedef struct co_images_batch {
    const co_images_recipe *recipe;
    const uint8_t *pixels;  /* (images, C, H, W) */
    const int32_t *label;   /* (images) */
    const float *table;     /* (C, 256) */
    const uint32_t *sample; /* (n) which images */
    float *out;             /* (n, C, H, W) */
    int32_t *out_label;     /* (n); NULL: not wanted */
    uint64_t seed, epoch;
    uint32_t n;
} co_images_batch;

struct co_queue;

typedef struct co_device_images {
    /** Puts the work on `queue`; the struct is copied. What fails later, fences say. */
    void (*draw)(struct co_queue *queue, const co_images_batch *batch);
} co_device_images;

#ifdef __cplusplus
}
#endif
#endif
