/* color_impl.h - the colour loops, in C that compilers vectorize; once for each instruction set. */
#ifndef CO_IMAGE_COLOR_IMPL_H
#define CO_IMAGE_COLOR_IMPL_H

#include "image/color.h"

static uint8_t color_byte(float x)
{
    return (uint8_t)(x < 0 ? 0 : x > 255 ? 255 : x);
}

static void color_scale(uint8_t *restrict out, const uint8_t *restrict in, size_t n, float factor,
                        float more)
{
    for (size_t i = 0; i < n; i++)
        out[i] = color_byte(factor * (float)in[i] + more);
}

/* Rec. 601, rounded down. */
static void color_grey(uint8_t *restrict out, const uint8_t *restrict in, size_t plane, size_t n)
{
    const uint8_t *r = in, *g = in + plane, *b = in + 2 * plane;

    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)(0.2989f * (float)r[i] + 0.587f * (float)g[i] + 0.114f * (float)b[i]);
}

static uint32_t color_sum(const uint8_t *in, size_t n)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += in[i];
    return sum;
}

static void color_blend(uint8_t *restrict out, const uint8_t *restrict in,
                        const uint8_t *restrict grey, size_t n, float factor)
{
    const float rest = 1.0f - factor;

    for (size_t i = 0; i < n; i++)
        out[i] = color_byte(factor * (float)in[i] + rest * (float)grey[i]);
}

static float color_max(float a, float b)
{
    return a > b ? a : b;
}

static float color_min(float a, float b)
{
    return a < b ? a : b;
}

/* Hue of a pixel in sixths of the colour circle, 0 to 6. `most` is its largest channel, and `range`
   that minus the smallest. */
static float color_sixths(float r, float g, float b, float most, float range)
{
    const float scale = range > 0 ? range : 1.0f;
    const float of_red = (g - b) / scale, of_green = 2.0f + (b - r) / scale,
                of_blue = 4.0f + (r - g) / scale;
    const float sixths = most == r ? of_red : most == g ? of_green : of_blue;

    return sixths < 0 ? sixths + 6.0f : sixths;
}

/* A channel of the colour of hue `sixths`, to which 5 is added for red, 3 for green, 1 for blue:
   `most` at 0, `most` - `range` from 1 to 3, `most` again from 4 on, and linear in between. */
static uint8_t color_channel(float sixths, float most, float range)
{
    const float k = sixths >= 6.0f ? sixths - 6.0f : sixths;
    const float share = color_min(1.0f, color_max(0.0f, color_min(k, 4.0f - k)));

    return (uint8_t)((most - range * share) * ((256.0f - 1e-3f) / 255.0f));
}

/* Rotate hues in HSV (Smith, "Color gamut transform pairs", 1978), without branches. */
static void color_turn(uint8_t *restrict out, size_t out_plane, const uint8_t *restrict in,
                       size_t plane, size_t n, float turn)
{
    const uint8_t *red = in, *green = in + plane, *blue = in + 2 * plane;

    for (size_t i = 0; i < n; i++) {
        const float r = red[i], g = green[i], b = blue[i];
        const float most = color_max(r, color_max(g, b));
        const float range = most - color_min(r, color_min(g, b));
        float sixths = color_sixths(r, g, b, most, range) + 6.0f * turn;

        sixths = sixths < 0 ? sixths + 6.0f : sixths >= 6.0f ? sixths - 6.0f : sixths;
        out[i] = color_channel(sixths + 5.0f, most, range);
        out[out_plane + i] = color_channel(sixths + 3.0f, most, range);
        out[2 * out_plane + i] = color_channel(sixths + 1.0f, most, range);
    }
}

#define COLOR_LOOPS(title)                                                                         \
    {                                                                                              \
        .name = (title), .scale = color_scale, .grey = color_grey, .sum = color_sum,               \
        .blend = color_blend, .turn = color_turn                                                   \
    }

#endif
