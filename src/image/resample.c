/*
 * resample.c - resample a box of an image to another size, row by row.
 *
 * Columns before rows, rounded to bytes after each, as in Pillow: the bytes are those of
 * Image.resize(..., BILINEAR, box=...), on every machine.
 */
#include <string.h>

#include "core/fs.h"
#include "core/mem.h"
#include "image/internal.h"

#define SCALE_ALIGN 32
/* Rows of the result at a time, few enough for the L1 cache. */
#define SCALE_STRIP 8

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

/* Planes of the rows passed. */
static size_t resample_planes(const co_image_scaler *s)
{
    return s->lanes == 1 ? 1 : 3;
}

/* Set strip_end and need for the next rows of the result. */
static void resample_expect(co_image_scaler *s)
{
    const co_image_filter *f = &s->row;
    const size_t left = f->n - s->done, end = s->done + (left < SCALE_STRIP ? left : SCALE_STRIP);

    s->strip_end = end;
    if (end == s->done)
        s->need = SIZE_MAX;
    else if (f->copy)
        s->need = end;
    else
        s->need = f->first[end - 1] + 2 * f->pairs;
    if (s->need > f->end - f->low && end > s->done) /* the row beyond has weight 0 */
        s->need = f->end - f->low;
}

co_status co_image_scaler_begin(co_image_scaler *s, void *out, const co_image_want *want,
                                const co_image_box *box, size_t width, size_t height, size_t lanes)
{
    CO_TRY(co_image_filter_make(&s->column, box->x, box->width, width, want->width, want->mirror));
    CO_TRY(co_image_filter_make(&s->row, box->y, box->height, height, want->height, false));
    s->want = want;
    s->lanes = lanes;
    s->received = s->done = 0;
    s->out = out;
    resample_expect(s);
    s->stride = (s->column.n + SCALE_ALIGN - 1) / SCALE_ALIGN * SCALE_ALIGN;
    if (want->table)
        CO_TRY(co_image_reserve(&s->strip, SCALE_STRIP, s->column.n));
    /* One more row: a filter with an odd number of taps reads it, with weight 0. */
    return co_image_reserve(&s->rows, s->row.end - s->row.low + 1, resample_planes(s) * s->stride);
}

static void resample_across_plane(uint8_t *out, const uint8_t *row, const co_image_filter *f)
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
static void resample_down(uint8_t *out, const co_image_scaler *s, size_t plane, size_t i)
{
    const size_t step = resample_planes(s) * s->stride;
    const uint8_t *rows = (const uint8_t *)s->rows.at + plane * s->stride;

    if (s->row.copy)
        memcpy(out, rows + i * step, s->column.n);
    else
        s->loops->down(out, rows, step, &s->row, i, s->column.n);
}

/* Write rows [s->done, end) of the result; grey is repeated for all channels. */
static void resample_deliver(co_image_scaler *s, size_t end)
{
    const size_t planes = resample_planes(s), n = s->column.n;
    const size_t size = n * s->row.n, at = n * s->done, count = n * (end - s->done);
    const co_lookup_table *table = s->want->table;

    for (size_t c = 0; c < (size_t)s->want->channels; c++) {
        uint8_t *rows = table ? s->strip.at : (uint8_t *)s->out + c * size + at;

        for (size_t i = s->done; i < end && c < planes; i++)
            resample_down(rows + (i - s->done) * n, s, c, i);
        if (table && s->want->stream)
            co_lookup_stream((float *)s->out + c * size + at, rows, count, &table[c]);
        else if (table)
            co_lookup((float *)s->out + c * size + at, rows, count, &table[c]);
        else if (c >= planes)
            memcpy(rows, (uint8_t *)s->out + at, count);
    }
    s->done = end;
    if (s->want->stream && end == s->row.n)
        co_lookup_fence();
}

static uint8_t *resample_next_row(co_image_scaler *s)
{
    return (uint8_t *)s->rows.at + s->received++ * resample_planes(s) * s->stride;
}

static void resample_deliver_ready(co_image_scaler *s)
{
    while (s->received >= s->need) {
        resample_deliver(s, s->strip_end);
        resample_expect(s);
    }
}

static bool resample_has_planes(const co_image_scaler *s)
{
    return s->column.spread + 2 <= s->loops->window && s->column.pairs <= CO_IMAGE_PAIRS;
}

bool co_image_scaler_prefers_planes(const co_image_scaler *s)
{
    return s->lanes == 1 || s->column.copy || resample_has_planes(s);
}

void co_image_scaler_planes(co_image_scaler *s, const uint8_t *const row[3])
{
    const co_image_filter *f = &s->column;
    uint8_t *out = resample_next_row(s);
    const size_t planes = resample_planes(s);

    if (!f->copy && resample_has_planes(s))
        s->loops->across_planes(out, s->stride, row, planes, f);
    else
        for (size_t c = 0; c < planes; c++)
            if (f->copy)
                memcpy(out + c * s->stride, row[c], f->n);
            else
                resample_across_plane(out + c * s->stride, row[c], f);
    resample_deliver_ready(s);
}

void co_image_scaler_row(co_image_scaler *s, const uint8_t *pixels)
{
    uint8_t *out;

    if (s->lanes == 1) {
        co_image_scaler_planes(s, (const uint8_t *const[3]){pixels, NULL, NULL});
        return;
    }
    out = resample_next_row(s);
    if (s->column.copy)
        s->loops->part(out, s->stride, pixels, s->column.n);
    else
        s->loops->across(out, s->stride, pixels, &s->column);
    resample_deliver_ready(s);
}

void co_image_scaler_close(co_image_scaler *s)
{
    co_image_filter_close(&s->column);
    co_image_filter_close(&s->row);
    co_free(s->rows.at);
    co_free(s->strip.at);
}
