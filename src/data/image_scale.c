/*
 * image_scale.c - a box of an image to another size, row by row.
 *
 * A triangle filter as wide as the reduction, columns before rows, a byte after each, in Pillow's
 * fixed-point arithmetic: the bytes are those of Image.resize(..., BILINEAR, box=...), on every
 * machine. Must not know files.
 */
#include <math.h>
#include <string.h>

#include "core/fs.h"
#include "core/mem.h"
#include "data/image_internal.h"

#define SCALE_ALIGN 32
#define SCALE_BLOCK 16 /* of f->spread */
/* Rows of the result at once: what they take stays in the first cache. */
#define SCALE_STRIP 8
/* A weight that is 0 in fixed point, whatever the sum. */
#define SCALE_NOTHING 1e-9

co_status co_image_reserve(co_image_block *block, size_t count, size_t size)
{
    size_t n;

    if (co_mul_size(&n, count, size) != 0)
        return co_fail(CO_E_NOMEM, "out of memory");
    if (n <= block->size)
        return CO_OK;
    co_free(block->at);
    block->size = 0;
    block->at = co_calloc_aligned(n, 1);
    if (!block->at)
        return CO_E_NOMEM;
    block->size = n;
    return CO_OK;
}

/* One direction of a box: from `start`, `length` long, of `size` pixels to `n`. */
typedef struct scale_line {
    double start, scale, support; /* source pixels a result, and half the width of the filter */
    double inverse;               /* of support */
    int64_t size;
    size_t n;
    bool backwards; /* result i is that of n - 1 - i */
} scale_line;

static double scale_triangle(const scale_line *line, double center, int64_t i)
{
    const double at = fabs(((double)i - center + 0.5) * line->inverse);

    return at < 1.0 ? 1.0 - at : 0.0;
}

/* The pixels that result i is made of. */
static size_t scale_reach(int64_t *first, double *center, const scale_line *line, size_t i)
{
    int64_t end;

    i = line->backwards ? line->n - 1 - i : i;
    *center = line->start + ((double)i + 0.5) * line->scale;
    *first = (int64_t)(*center - line->support + 0.5);
    end = (int64_t)(*center + line->support + 0.5);
    if (*first < 0)
        *first = 0;
    if (end > line->size)
        end = line->size;
    while (end > *first + 1 && scale_triangle(line, *center, end - 1) < SCALE_NOTHING)
        end--;
    return end > *first ? (size_t)(end - *first) : 0;
}

static void scale_put(co_image_filter *f, size_t i, size_t tap, double weight)
{
    const uint32_t whole = (uint32_t)(0.5 + weight * (1 << CO_IMAGE_SHIFT));
    const size_t at = (tap / 2 * f->room + i) * CO_IMAGE_PAIR + tap % 2;

    f->high[at] = (int16_t)(whole >> CO_IMAGE_HALF);
    f->low_bits[at] = (int16_t)(whole & ((1u << CO_IMAGE_HALF) - 1));
}

/* Where there are fewer taps than elsewhere, at an end, they are the last of the pairs: so none
   lies behind the source but one, when their number is odd. */
static void scale_weigh(co_image_filter *f, const scale_line *line, size_t i)
{
    const size_t span = f->end - f->low, most = 2 * f->pairs, limit = span > most ? span - most : 0;
    double center, sum = 0;
    int64_t first;
    const size_t taps = scale_reach(&first, &center, line, i);
    const size_t from = (size_t)first - f->low, skip = from > limit ? from - limit : 0;

    f->first[i] = (uint32_t)(from - skip);
    for (size_t k = 0; k < taps; k++)
        sum += scale_triangle(line, center, first + (int64_t)k);
    for (size_t k = 0; k < taps; k++) {
        const double weight = scale_triangle(line, center, first + (int64_t)k);

        scale_put(f, i, k + skip, sum > 0 ? weight / sum : weight);
    }
}

/* Sets low, end and pairs; false: the box has no pixels. */
static bool scale_measure(co_image_filter *f, const scale_line *line)
{
    size_t most = 0;
    double center;
    int64_t first;

    f->low = SIZE_MAX;
    f->end = 0;
    for (size_t i = 0; i < line->n; i++) {
        const size_t taps = scale_reach(&first, &center, line, i);

        if (taps == 0)
            return false;
        most = taps > most ? taps : most;
        f->low = (size_t)first < f->low ? (size_t)first : f->low;
        f->end = (size_t)first + taps > f->end ? (size_t)first + taps : f->end;
    }
    f->pairs = (most + 1) / 2;
    return true;
}

static void scale_spread(co_image_filter *f)
{
    for (size_t i = f->n; i < f->room; i++) /* without weight */
        f->first[i] = f->first[f->n - 1];
    f->spread = 0;
    for (size_t i = 0; i < f->room; i++) {
        const uint32_t a = f->first[i], b = f->first[i - i % SCALE_BLOCK];
        const size_t spread = a > b ? a - b : b - a;

        f->spread = spread > f->spread ? spread : f->spread;
    }
}

static co_status scale_filter(co_image_filter *f, double start, double length, size_t size,
                              int64_t n, bool backwards)
{
    /* Pillow's boxes are of single precision. */
    const float low = (float)start, end = (float)(start + length);
    scale_line line = {
        .start = (double)low, .size = (int64_t)size, .n = (size_t)n, .backwards = backwards};
    size_t weights, bytes;

    if (!(start >= 0 && length > 0 && start + length <= (double)size * (1 + 1e-9)) || n < 1)
        return co_fail(CO_E_USAGE, "image: a box that is not within the image");
    start = (double)low;
    length = (double)(end - low); /* rounded, it may lead out of the image by less than a pixel */
    line.scale = length / (double)n;
    line.support = line.scale > 1.0 ? line.scale : 1.0;
    line.inverse = 1.0 / line.support;
    f->n = line.n;
    f->room = (line.n + CO_IMAGE_STEP - 1) / CO_IMAGE_STEP * CO_IMAGE_STEP;
    f->copy = length == (double)n && start == floor(start) && !backwards;
    if (!scale_measure(f, &line))
        return co_fail(CO_E_USAGE, "image: a box without pixels");
    if (f->copy) {
        f->low = (size_t)start;
        f->end = f->low + f->n;
        return CO_OK;
    }
    if (co_mul_size(&weights, f->pairs * CO_IMAGE_PAIR, f->room) != 0 ||
        co_mul_size(&bytes, weights, 4) != 0)
        return co_fail(CO_E_NOMEM, "out of memory");
    CO_TRY(co_image_reserve(&f->block, bytes + f->room * sizeof(*f->first), 1));
    memset(f->block.at, 0, bytes + f->room * sizeof(*f->first));
    f->high = f->block.at;
    f->low_bits = f->high + weights;
    f->first = (uint32_t *)(void *)(f->low_bits + weights);
    for (size_t i = 0; i < f->n; i++)
        scale_weigh(f, &line, i);
    scale_spread(f);
    return CO_OK;
}

co_status co_image_scaler_begin(co_image_scaler *s, void *out, const co_image_want *want,
                                const co_image_box *box, size_t width, size_t height, size_t lanes)
{
    const size_t planes = lanes == 1 ? 1 : 3;

    CO_TRY(scale_filter(&s->column, box->x, box->width, width, want->width, want->mirror));
    CO_TRY(scale_filter(&s->row, box->y, box->height, height, want->height, false));
    s->want = want;
    s->lanes = lanes;
    s->come = s->done = 0;
    s->out = out;
    s->stride = (s->column.n + SCALE_ALIGN - 1) / SCALE_ALIGN * SCALE_ALIGN;
    if (want->table)
        CO_TRY(co_image_reserve(&s->strip, SCALE_STRIP, s->column.n));
    /* One row more: a filter of an odd number of taps reads it, with weight 0. */
    return co_image_reserve(&s->rows, s->row.end - s->row.low + 1, planes * s->stride);
}

static void scale_across_grey(uint8_t *out, const uint8_t *row, const co_image_filter *f)
{
    for (size_t i = 0; i < f->n; i++) {
        const uint8_t *at = row + f->first[i];
        int32_t sum = 1 << (CO_IMAGE_SHIFT - 1);

        for (size_t p = 0; p < f->pairs; p++) {
            const int16_t *high = f->high + (p * f->room + i) * CO_IMAGE_PAIR;
            const int16_t *low = f->low_bits + (p * f->room + i) * CO_IMAGE_PAIR;

            sum += ((high[0] << CO_IMAGE_HALF) + low[0]) * at[2 * p];
            sum += ((high[1] << CO_IMAGE_HALF) + low[1]) * at[2 * p + 1];
        }
        sum >>= CO_IMAGE_SHIFT;
        out[i] = (uint8_t)(sum > 255 ? 255 : sum);
    }
}

/* Row i of a plane of the result. */
static void scale_down(uint8_t *out, const co_image_scaler *s, size_t plane, size_t i)
{
    const size_t step = (s->lanes == 1 ? 1 : 3) * s->stride;
    const uint8_t *rows = (const uint8_t *)s->rows.at + plane * s->stride;

    if (s->row.copy)
        memcpy(out, rows + i * step, s->column.n);
    else
        s->loops->down(out, rows, step, &s->row, i, s->column.n);
}

/* The rows of the result from s->done to `end`; grey is repeated for all channels. */
static void scale_deliver(co_image_scaler *s, size_t end)
{
    const size_t planes = s->lanes == 1 ? 1 : 3, n = s->column.n;
    const size_t size = n * s->row.n, at = n * s->done, count = n * (end - s->done);
    const co_lookup_table *table = s->want->table;

    for (size_t c = 0; c < (size_t)s->want->channels; c++) {
        uint8_t *rows = table ? s->strip.at : (uint8_t *)s->out + c * size + at;

        for (size_t i = s->done; i < end && c < planes; i++)
            scale_down(rows + (i - s->done) * n, s, c, i);
        if (table && s->want->past)
            co_lookup_past((float *)s->out + c * size + at, rows, count, &table[c]);
        else if (table)
            co_lookup((float *)s->out + c * size + at, rows, count, &table[c]);
        else if (c >= planes)
            memcpy(rows, (uint8_t *)s->out + at, count);
    }
    s->done = end;
    if (s->want->past && end == s->row.n)
        co_lookup_settle();
}

/* How many rows of the result the source's rows that have come suffice for. */
static size_t scale_ready(const co_image_scaler *s, size_t most)
{
    const co_image_filter *f = &s->row;
    size_t i = s->done;

    if (f->copy)
        return s->come < most ? s->come : most;
    while (i < most && (f->first[i] + 2 * f->pairs <= s->come || s->come == f->end - f->low))
        i++;
    return i;
}

void co_image_scaler_row(co_image_scaler *s, const uint8_t *pixels)
{
    const size_t planes = s->lanes == 1 ? 1 : 3;
    uint8_t *out = (uint8_t *)s->rows.at + s->come++ * planes * s->stride;

    if (s->lanes == 1 && s->column.copy)
        memcpy(out, pixels, s->column.n);
    else if (s->lanes == 1)
        scale_across_grey(out, pixels, &s->column);
    else if (s->column.copy)
        s->loops->part(out, s->stride, pixels, s->column.n);
    else
        s->loops->across(out, s->stride, pixels, &s->column);
    while (s->done < s->row.n) {
        const size_t left = s->row.n - s->done;
        const size_t most = s->done + (left < SCALE_STRIP ? left : SCALE_STRIP);

        if (scale_ready(s, most) < most)
            break;
        scale_deliver(s, most);
    }
}

void co_image_scaler_close(co_image_scaler *s)
{
    co_free(s->column.block.at);
    co_free(s->row.block.at);
    co_free(s->rows.at);
    co_free(s->strip.at);
}
