/*
 * colors.h - changes of the colours of a pixel, for loops on any device: what src/image has in
 * common with kernels of a GPU. Bytes in and out, arithmetic in float.
 */
#ifndef CO_KERNELS_IMAGES_COLORS_H
#define CO_KERNELS_IMAGES_COLORS_H

#include <stdint.h>

#include <cohort/ext/images.h>

#include "core/rng.h"

static inline uint8_t co_color_byte(float x)
{
    return (uint8_t)(x < 0 ? 0 : x > 255 ? 255 : x);
}

static inline uint8_t co_color_scaled(uint8_t x, float factor, float more)
{
    return co_color_byte(factor * (float)x + more);
}

/* Rec. 601, rounded down. */
static inline uint8_t co_color_grey(uint8_t r, uint8_t g, uint8_t b)
{
    return (uint8_t)(0.2989f * (float)r + 0.587f * (float)g + 0.114f * (float)b);
}

/* `rest` is 1 - factor. */
static inline uint8_t co_color_blended(uint8_t x, uint8_t grey, float factor, float rest)
{
    return co_color_byte(factor * (float)x + rest * (float)grey);
}

/* What contrast adds to `factor` times each channel; the mean of the grey image is sum / n. */
static inline float co_color_contrast_more(float factor, uint64_t sum, uint64_t n)
{
    return (1.0f - factor) * (float)((double)sum / (double)n);
}

/* ---- hue, in HSV (Smith, "Color gamut transform pairs", 1978) ---- */

static inline float co_color_max(float a, float b)
{
    return a > b ? a : b;
}

static inline float co_color_min(float a, float b)
{
    return a < b ? a : b;
}

/* A pixel's hue in sixths of the colour circle, 0 to 6; its largest channel, and that minus the
   smallest. */
typedef struct co_color_hsv {
    float sixths, most, range;
} co_color_hsv;

/* Without branches. */
static inline float co_color_sixths(float r, float g, float b, float most, float range)
{
    const float scale = range > 0 ? range : 1.0f;
    const float of_red = (g - b) / scale, of_green = 2.0f + (b - r) / scale,
                of_blue = 4.0f + (r - g) / scale;
    const float sixths = most == r ? of_red : most == g ? of_green : of_blue;

    return sixths < 0 ? sixths + 6.0f : sixths;
}

/* A pixel whose hue is turned by so many circles, -0.5 to 0.5. */
static inline co_color_hsv co_color_turned(float r, float g, float b, float turn)
{
    const float most = co_color_max(r, co_color_max(g, b));
    const float range = most - co_color_min(r, co_color_min(g, b));
    const float sixths = co_color_sixths(r, g, b, most, range) + 6.0f * turn;
    co_color_hsv out;

    out.sixths = sixths < 0 ? sixths + 6.0f : sixths >= 6.0f ? sixths - 6.0f : sixths;
    out.most = most;
    out.range = range;
    return out;
}

/* A channel, `shift` from red on: 5 for red, 3 for green, 1 for blue. It is `most` where the sum
   with the hue is 0, `most` - `range` from 1 to 3, `most` again from 4 on, and linear in between.
 */
static inline uint8_t co_color_channel(const co_color_hsv *pixel, float shift)
{
    const float sum = pixel->sixths + shift, k = sum >= 6.0f ? sum - 6.0f : sum;
    const float share = co_color_min(1.0f, co_color_max(0.0f, co_color_min(k, 4.0f - k)));

    return (uint8_t)((pixel->most - pixel->range * share) * ((256.0f - 1e-3f) / 255.0f));
}

/* ---- color-jitter ---- */

enum { CO_JITTER_BRIGHTNESS, CO_JITTER_CONTRAST, CO_JITTER_SATURATION, CO_JITTER_HUE, CO_JITTERS };

/* What is done to a sample, in this order. */
typedef struct co_jitter {
    int32_t n, kind[CO_JITTERS];
    float factor[CO_JITTERS]; /* of hue: turns */
} co_jitter;

static inline void co_jitter_choose(co_jitter *out, const co_images_step *step, const co_rng *rng)
{
    co_rng order = *rng;
    uint32_t word[4], at[CO_JITTERS];

    order.stream |= 1u << 31;
    co_rng_philox(word, rng, 0);
    co_rng_permute(at, CO_JITTERS, &order);
    out->n = 0;
    for (uint32_t k = 0; k < CO_JITTERS; k++) {
        const float *range = step->range[at[k]];

        if (range[0] == range[1] && range[0] == (at[k] == CO_JITTER_HUE ? 0.0f : 1.0f))
            continue;
        out->kind[out->n] = (int32_t)at[k];
        out->factor[out->n++] = range[0] + (range[1] - range[0]) * co_rng_to_unit(word[at[k]]);
    }
}

#endif
