/*
 * color.c - change brightness, contrast, saturation and hue.
 *
 * Arithmetic is torchvision's in float, including rounding down to bytes, so that parameters tuned
 * there are valid here. Pixels are copied through a block: `out` may be `in`, while the loops can
 * assume that they do not overlap.
 */
#include "image/color_impl.h"

#include <string.h>

#include "core/isa.h"

#define COLOR_BLOCK ((size_t)1024) /* pixels at a time */

static const co_color_loops color_basic = COLOR_LOOPS("plain C");

size_t co_color_loops_list(const co_color_loops *out[CO_COLOR_MAX_LOOPS])
{
    size_t n = 0;

    out[n++] = &color_basic;
#ifdef CO_IMAGE_X86
    if (co_isa_has(CO_ISA_AVX2))
        out[n++] = &co_color_avx2;
    if (co_isa_has(CO_ISA_AVX512))
        out[n++] = &co_color_avx512;
#endif
    return n;
}

static const co_color_loops *color_choose(void)
{
    const co_color_loops *loops[CO_COLOR_MAX_LOOPS];

    return loops[co_color_loops_list(loops) - 1];
}

static size_t color_some(size_t n, size_t at)
{
    return n - at < COLOR_BLOCK ? n - at : COLOR_BLOCK;
}

static void color_scale_all(uint8_t *out, const uint8_t *in, size_t n, float factor, float more)
{
    const co_color_loops *loops = color_choose();
    uint8_t block[COLOR_BLOCK];

    for (size_t at = 0; at < n; at += COLOR_BLOCK) {
        const size_t some = color_some(n, at);

        memcpy(block, in + at, some);
        loops->scale(out + at, block, some, factor, more);
    }
}

void co_color_brightness(uint8_t *out, const uint8_t *in, size_t channels, size_t n, float factor)
{
    color_scale_all(out, in, channels * n, factor, 0);
}

void co_color_contrast(uint8_t *out, const uint8_t *in, size_t channels, size_t n, float factor)
{
    const co_color_loops *loops = color_choose();
    uint8_t grey[COLOR_BLOCK];
    uint64_t sum = 0;

    for (size_t at = 0; at < n; at += COLOR_BLOCK) {
        const size_t some = color_some(n, at);

        if (channels == 3)
            loops->grey(grey, in + at, n, some);
        sum += loops->sum(channels == 3 ? grey : in + at, some);
    }
    color_scale_all(out, in, channels * n, factor, co_color_contrast_more(factor, sum, n));
}

/* Copy an image without colours; false if it has some. */
static bool color_keep_grey(uint8_t *out, const uint8_t *in, size_t channels, size_t n)
{
    if (channels != 3)
        memmove(out, in, channels * n);
    return channels != 3;
}

void co_color_saturation(uint8_t *out, const uint8_t *in, size_t channels, size_t n, float factor)
{
    const co_color_loops *loops = color_choose();
    uint8_t grey[COLOR_BLOCK], block[COLOR_BLOCK];

    if (color_keep_grey(out, in, channels, n))
        return;
    for (size_t at = 0; at < n; at += COLOR_BLOCK) {
        const size_t some = color_some(n, at);

        loops->grey(grey, in + at, n, some);
        for (size_t c = 0; c < 3; c++) {
            memcpy(block, in + c * n + at, some);
            loops->blend(out + c * n + at, block, grey, some, factor);
        }
    }
}

void co_color_hue(uint8_t *out, const uint8_t *in, size_t channels, size_t n, float factor)
{
    const co_color_loops *loops = color_choose();
    uint8_t block[3 * COLOR_BLOCK];

    if (color_keep_grey(out, in, channels, n))
        return;
    for (size_t at = 0; at < n; at += COLOR_BLOCK) {
        const size_t some = color_some(n, at);

        for (size_t c = 0; c < 3; c++)
            memcpy(block + c * COLOR_BLOCK, in + c * n + at, some);
        loops->turn(out + at, n, block, COLOR_BLOCK, some, factor);
    }
}
