/* color_impl.h - the colour loops, in C that compilers vectorize; once for each instruction set. */
#ifndef CO_IMAGE_COLOR_IMPL_H
#define CO_IMAGE_COLOR_IMPL_H

#include "image/color.h"
#include "kernels/images/colors.h"

static void color_scale(uint8_t *restrict out, const uint8_t *restrict in, size_t n, float factor,
                        float more)
{
    for (size_t i = 0; i < n; i++)
        out[i] = co_color_scaled(in[i], factor, more);
}

static void color_grey(uint8_t *restrict out, const uint8_t *restrict in, size_t plane, size_t n)
{
    const uint8_t *r = in, *g = in + plane, *b = in + 2 * plane;

    for (size_t i = 0; i < n; i++)
        out[i] = co_color_grey(r[i], g[i], b[i]);
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
        out[i] = co_color_blended(in[i], grey[i], factor, rest);
}

static void color_turn(uint8_t *restrict out, size_t out_plane, const uint8_t *restrict in,
                       size_t plane, size_t n, float turn)
{
    const uint8_t *red = in, *green = in + plane, *blue = in + 2 * plane;

    for (size_t i = 0; i < n; i++) {
        const co_color_hsv pixel = co_color_turned(red[i], green[i], blue[i], turn);

        out[i] = co_color_channel(&pixel, 5.0f);
        out[out_plane + i] = co_color_channel(&pixel, 3.0f);
        out[2 * out_plane + i] = co_color_channel(&pixel, 1.0f);
    }
}

#define COLOR_LOOPS(title)                                                                         \
    {                                                                                              \
        .name = (title), .scale = color_scale, .grey = color_grey, .sum = color_sum,               \
        .blend = color_blend, .turn = color_turn                                                   \
    }

#endif
