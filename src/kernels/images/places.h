/*
 * places.h - where augmentations of images take their pixels from, for loops on any device: what
 * src/image has in common with kernels of a GPU.
 */
#ifndef CO_KERNELS_IMAGES_PLACES_H
#define CO_KERNELS_IMAGES_PLACES_H

#include <math.h>
#include <stdbool.h>

#include <cohort/ext/images.h>

#include "core/rng.h"

/* Weights of resampling are so many bits, as Pillow's for 8-bit pixels. */
#define CO_IMAGE_SHIFT 22

/* A random word mapped to 0 .. n - 1. */
static inline int64_t co_augment_below(uint32_t word, int64_t n)
{
    return (int64_t)(((uint64_t)word * (uint64_t)n) >> 32);
}

static inline bool co_flip_happens(float p, const co_rng *rng)
{
    uint32_t word[4];

    co_rng_philox(word, rng, 0);
    return co_rng_to_unit(word[0]) < p;
}

/* How far a random crop is down and right of the image. */
static inline void co_crop_shift(int32_t shift[2], int32_t padding, const co_rng *rng)
{
    uint32_t word[4];

    co_rng_philox(word, rng, 0);
    for (int i = 0; i < 2; i++)
        shift[i] = (int32_t)(co_augment_below(word[i], 2 * (int64_t)padding + 1) - padding);
}

/* The pixel of the image for position `at`, which may be in the border; -1: a zero. */
static inline int64_t co_crop_source(int border, int64_t at, int64_t n)
{
    if (at >= 0 && at < n)
        return at;
    if (border == CO_IMAGES_ZERO)
        return -1;
    if (border == CO_IMAGES_EDGE)
        return at < 0 ? 0 : n - 1;
    return at < 0 ? -at : 2 * (n - 1) - at;
}

/* The part of a side of n pixels that a square with its centre at `centre` covers. */
static inline void co_cutout_span(int64_t span[2], int64_t centre, int64_t size, int64_t n)
{
    span[0] = centre - size / 2;
    span[1] = span[0] + size < n ? span[0] + size : n;
    if (span[0] < 0)
        span[0] = 0;
}

#define CO_RANDOM_BOX_TRIES 10

/* The largest centred box of an allowed aspect ratio. */
static inline void co_middle_box(double box[4], const co_images_step *step, double height,
                                 double width)
{
    const double ratio = width / height;
    double h = height, w = width;

    if (ratio < step->ratio[0])
        h = nearbyint(width / step->ratio[0]);
    else if (ratio > step->ratio[1])
        w = nearbyint(height * step->ratio[1]);
    h = fmax(1.0, fmin(h, height));
    w = fmax(1.0, fmin(w, width));
    box[0] = floor((width - w) / 2);
    box[1] = floor((height - h) / 2);
    box[2] = w;
    box[3] = h;
}

/* x, y, width and height of a box of random area and aspect ratio. */
static inline void co_random_box(double box[4], const co_images_step *step, int64_t height,
                                 int64_t width, const co_rng *rng)
{
    const double area = (double)height * (double)width;
    const double low = step->log_ratio[0], high = step->log_ratio[1];

    for (uint32_t k = 0; k < CO_RANDOM_BOX_TRIES; k++) {
        double part, ratio, h, w;
        uint32_t word[4];

        co_rng_philox(word, rng, k);
        part = area * (step->scale[0] +
                       (step->scale[1] - step->scale[0]) * (double)co_rng_to_unit(word[0]));
        ratio = exp(low + (high - low) * (double)co_rng_to_unit(word[1]));
        w = nearbyint(sqrt(part * ratio));
        h = nearbyint(sqrt(part / ratio));
        if (w >= 1 && h >= 1 && w <= (double)width && h <= (double)height) {
            box[1] = (double)co_augment_below(word[2], height - (int64_t)h + 1);
            box[0] = (double)co_augment_below(word[3], width - (int64_t)w + 1);
            box[2] = w;
            box[3] = h;
            return;
        }
    }
    co_middle_box(box, step, (double)height, (double)width);
}

#endif
