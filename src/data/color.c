/*
 * color.c - brightness, contrast, saturation and hue.
 *
 * The arithmetic is torchvision's in float, rounding to bytes (down) included, so that what was
 * tuned there holds here.
 */
#include "data/color.h"

#include <string.h>

#define COLOR_ROWS ((size_t)256) /* pixels worked on together */

static uint8_t color_byte(float x)
{
    return (uint8_t)(x < 0 ? 0 : x > 255 ? 255 : x);
}

/* Rec. 601, rounded down. */
static void color_grey(uint8_t *out, const uint8_t *in, size_t plane, size_t n)
{
    const uint8_t *r = in, *g = in + plane, *b = in + 2 * plane;

    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)(0.2989f * (float)r[i] + 0.587f * (float)g[i] + 0.114f * (float)b[i]);
}

void co_color_brightness(uint8_t *out, const uint8_t *in, size_t channels, size_t n, float factor)
{
    for (size_t i = 0; i < channels * n; i++)
        out[i] = color_byte(factor * (float)in[i]);
}

void co_color_contrast(uint8_t *out, const uint8_t *in, size_t channels, size_t n, float factor)
{
    uint8_t grey[COLOR_ROWS];
    uint64_t sum = 0;
    float rest;

    for (size_t at = 0; at < n; at += COLOR_ROWS) {
        const size_t some = n - at < COLOR_ROWS ? n - at : COLOR_ROWS;
        const uint8_t *value = grey;
        uint32_t part = 0;

        if (channels == 3)
            color_grey(grey, in + at, n, some);
        else
            value = in + at;
        for (size_t i = 0; i < some; i++)
            part += value[i];
        sum += part;
    }
    rest = (1.0f - factor) * (float)((double)sum / (double)n);
    for (size_t i = 0; i < channels * n; i++)
        out[i] = color_byte(factor * (float)in[i] + rest);
}

void co_color_saturation(uint8_t *out, const uint8_t *in, size_t channels, size_t n, float factor)
{
    const float rest = 1.0f - factor;
    uint8_t grey[COLOR_ROWS];

    if (channels != 3) {
        memmove(out, in, channels * n);
        return;
    }
    for (size_t at = 0; at < n; at += COLOR_ROWS) {
        const size_t some = n - at < COLOR_ROWS ? n - at : COLOR_ROWS;

        color_grey(grey, in + at, n, some);
        for (size_t c = 0; c < 3; c++)
            for (size_t i = 0; i < some; i++)
                out[c * n + at + i] =
                    color_byte(factor * (float)in[c * n + at + i] + rest * (float)grey[i]);
    }
}

static float color_most(float a, float b)
{
    return a > b ? a : b;
}

static float color_least(float a, float b)
{
    return a < b ? a : b;
}

/* Place on the colour circle in sixths, 0 to 6, of a pixel whose largest channel is `most`. */
static float color_sixths(float r, float g, float b, float most, float range)
{
    const float scale = range > 0 ? range : 1.0f;
    const float of_red = (g - b) / scale, of_green = 2.0f + (b - r) / scale,
                of_blue = 4.0f + (r - g) / scale;
    const float sixths = most == r ? of_red : most == g ? of_green : of_blue;

    return sixths < 0 ? sixths + 6.0f : sixths;
}

/* A channel of the colour at `sixths`: 5 for red, 3 for green, 1 for blue are added to it. It falls
   from `most` by the whole range between 1 and 3, where it stays until 4, and rises again. */
static uint8_t color_channel(float sixths, float most, float range)
{
    const float k = sixths >= 6.0f ? sixths - 6.0f : sixths;
    const float share = color_least(1.0f, color_most(0.0f, color_least(k, 4.0f - k)));

    return (uint8_t)((most - range * share) * ((256.0f - 1e-3f) / 255.0f));
}

/* Through hue, saturation and value (Smith, "Color gamut transform pairs", 1978), without branches,
   so that compilers use vectors. */
static void color_turn(uint8_t *out, const uint8_t *in, size_t plane, size_t n, float turn)
{
    const uint8_t *red = in, *green = in + plane, *blue = in + 2 * plane;

    for (size_t i = 0; i < n; i++) {
        const float r = red[i], g = green[i], b = blue[i];
        const float most = color_most(r, color_most(g, b));
        const float range = most - color_least(r, color_least(g, b));
        float sixths = color_sixths(r, g, b, most, range) + 6.0f * turn;

        sixths = sixths < 0 ? sixths + 6.0f : sixths >= 6.0f ? sixths - 6.0f : sixths;
        out[i] = color_channel(sixths + 5.0f, most, range);
        out[plane + i] = color_channel(sixths + 3.0f, most, range);
        out[2 * plane + i] = color_channel(sixths + 1.0f, most, range);
    }
}

void co_color_hue(uint8_t *out, const uint8_t *in, size_t channels, size_t n, float factor)
{
    uint8_t block[3 * COLOR_ROWS];

    if (channels != 3) {
        memmove(out, in, channels * n);
        return;
    }
    /* By way of the stack, so that out may be in and yet the loop knows that they differ. */
    for (size_t at = 0; at < n; at += COLOR_ROWS) {
        const size_t some = n - at < COLOR_ROWS ? n - at : COLOR_ROWS;

        for (size_t c = 0; c < 3; c++)
            memcpy(block + c * COLOR_ROWS, in + c * n + at, some);
        color_turn(block, block, COLOR_ROWS, some, factor);
        for (size_t c = 0; c < 3; c++)
            memcpy(out + c * n + at, block + c * COLOR_ROWS, some);
    }
}
