/*
 * resample_loops.c - the inner loops of resampling in plain C, and the list of all sets.
 */
#include <string.h>

#include "core/isa.h"
#include "image/internal.h"

static uint8_t loops_byte(int32_t sum)
{
    sum >>= CO_IMAGE_SHIFT;
    return (uint8_t)(sum > 255 ? 255 : sum);
}

/* The weight of tap k of result i. */
static int32_t loops_weight(const co_image_filter *f, size_t i, size_t k)
{
    const size_t at = (k / 2 * f->room + i) * CO_IMAGE_PAIR + k % 2;

    return f->high[at] * (1 << CO_IMAGE_HALF) + f->low_bits[at];
}

static void loops_across(uint8_t *out, size_t plane, const uint8_t *row, const co_image_filter *f)
{
    for (size_t i = 0; i < f->n; i++) {
        const uint8_t *at = row + 4 * (size_t)f->first[i];
        int32_t red = 1 << (CO_IMAGE_SHIFT - 1), green = red, blue = red;

        for (size_t k = 0; k < 2 * f->pairs; k++, at += 4) {
            const int32_t weight = loops_weight(f, i, k);

            red += weight * at[0];
            green += weight * at[1];
            blue += weight * at[2];
        }
        out[i] = loops_byte(red);
        out[plane + i] = loops_byte(green);
        out[2 * plane + i] = loops_byte(blue);
    }
}

static void loops_down(uint8_t *out, const uint8_t *rows, size_t stride, const co_image_filter *f,
                       size_t i, size_t n)
{
    int32_t sum[256];

    rows += f->first[i] * stride;
    for (size_t x = 0; x < n; x += 256) {
        const size_t part = n - x < 256 ? n - x : 256;

        for (size_t j = 0; j < part; j++)
            sum[j] = 1 << (CO_IMAGE_SHIFT - 1);
        for (size_t k = 0; k < 2 * f->pairs; k++) {
            const uint8_t *row = rows + k * stride + x;
            const int32_t weight = loops_weight(f, i, k);

            for (size_t j = 0; weight != 0 && j < part; j++)
                sum[j] += weight * row[j];
        }
        for (size_t j = 0; j < part; j++)
            out[x + j] = loops_byte(sum[j]);
    }
}

static void loops_part(uint8_t *out, size_t plane, const uint8_t *row, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++)
            out[c * plane + i] = row[4 * i + c];
}

static void loops_join(uint8_t *row, const uint8_t *planes[3], size_t step, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++)
            row[4 * i + c] = planes[c][i * step];
}

const co_image_loops co_image_loops_basic = {
    .name = "plain C",
    .across = loops_across,
    .down = loops_down,
    .part = loops_part,
    .join = loops_join,
};

size_t co_image_loops_list(const co_image_loops *out[CO_IMAGE_MAX_LOOPS])
{
    size_t n = 0;

    out[n++] = &co_image_loops_basic;
#ifdef CO_IMAGE_X86
    if (co_isa_has(CO_ISA_AVX2))
        out[n++] = &co_image_loops_avx2;
    if (co_isa_has_bytes())
        out[n++] = &co_image_loops_avx512;
#endif
    return n;
}
