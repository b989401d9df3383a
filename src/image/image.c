/*
 * image.c - decode JPEG and PNG files: detects the format, and has what both share.
 */
#include "image/image.h"

#include <string.h>

#include "core/mem.h"
#include "image/internal.h"

#define IMAGE_LINE  64 /* bytes of a cache line */
#define IMAGE_AHEAD 8  /* rows to prefetch ahead */

struct co_image_scratch {
    co_image_jpeg *jpeg; /* owned; created for the first JPEG */
    co_image_scaler scaler;
    co_image_block rows;
};

co_status co_image_scratch_create(co_image_scratch **out)
{
    co_image_scratch *scratch = co_calloc(1, sizeof(*scratch));
    const co_image_loops *loops[CO_IMAGE_MAX_LOOPS];

    if (!scratch)
        return CO_E_NOMEM;
    scratch->scaler.loops = loops[co_image_loops_list(loops) - 1];
    *out = scratch;
    return CO_OK;
}

void co_image_scratch_destroy(co_image_scratch *scratch)
{
    if (!scratch)
        return;
    co_image_jpeg_destroy(scratch->jpeg);
    co_image_scaler_close(&scratch->scaler);
    co_free(scratch->rows.at);
    co_free(scratch);
}

static bool image_is_jpeg(const uint8_t *bytes, size_t n)
{
    return n >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff;
}

static bool image_is_png(const uint8_t *bytes, size_t n)
{
    return n >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static co_status image_unknown(const uint8_t *bytes, size_t n, const char *name)
{
    if (n < 8)
        return co_fail(CO_E_DATA, "%s: neither JPEG nor PNG: %zu bytes are too few", name, n);
    return co_fail(CO_E_DATA, "%s: neither JPEG nor PNG: it begins with %02x %02x %02x %02x", name,
                   bytes[0], bytes[1], bytes[2], bytes[3]);
}

co_status co_image_check_size(uint64_t width, uint64_t height, const char *name)
{
    if (width == 0 || height == 0)
        return co_fail(CO_E_DATA, "%s: an image without pixels", name);
    if (width > CO_IMAGE_MAX_SIDE || height > CO_IMAGE_MAX_SIDE ||
        width * height > CO_IMAGE_MAX_PIXELS)
        return co_fail(CO_E_DATA,
                       "%s: claims %llu x %llu pixels; at most %d on a side and %llu in all are "
                       "taken",
                       name, (unsigned long long)width, (unsigned long long)height,
                       CO_IMAGE_MAX_SIDE, (unsigned long long)CO_IMAGE_MAX_PIXELS);
    return CO_OK;
}

co_status co_image_probe(co_image_info *out, const uint8_t *bytes, size_t n, const char *name)
{
    if (image_is_jpeg(bytes, n))
        return co_image_jpeg_probe(out, bytes, n, name);
    if (image_is_png(bytes, n))
        return co_image_png_probe(out, bytes, n, name);
    return image_unknown(bytes, n, name);
}

co_status co_image_decode(void *out, const co_image_want *want, co_image_scratch *scratch,
                          const uint8_t *bytes, size_t n, const char *name)
{
    const co_image_job job = {out, want, bytes, n, name, &scratch->scaler, &scratch->rows};

    if (image_is_png(bytes, n))
        return co_image_png_decode(&job);
    if (!image_is_jpeg(bytes, n))
        return image_unknown(bytes, n, name);
    if (!scratch->jpeg)
        CO_TRY(co_image_jpeg_create(&scratch->jpeg));
    return co_image_jpeg_decode(scratch->jpeg, &job);
}

/* Prefetch a row: rows are short, and too far apart for the hardware to predict. */
static void image_fetch_row(const co_image_scaler *s, const co_pixels *in, size_t y)
{
    const size_t n = s->column.end - s->column.low;

    if (y >= s->row.end || in->column != 1)
        return;
    for (size_t c = 0; c < (size_t)in->channels; c++) {
        const uint8_t *row = in->at + c * in->plane + y * in->row + s->column.low;

        for (size_t x = 0; x < n; x += IMAGE_LINE)
            __builtin_prefetch(row + x);
        __builtin_prefetch(row + n - 1);
    }
}

/* Pass a row to a scaler: its planes in place if enough can be read after them, else a copy. */
static void image_give_row(co_image_scaler *s, uint8_t *scratch, const co_pixels *in, size_t y)
{
    const uint8_t *row = in->at + y * in->row + s->column.low * in->column;
    const uint8_t *planes[3] = {row, row + in->plane, row + 2 * in->plane};
    const size_t n = s->column.end - s->column.low;
    const size_t behind = ((size_t)in->height - 1 - y) * in->row;

    if (in->column == 1 && behind >= CO_IMAGE_ROW_PAD && co_image_scaler_prefers_planes(s)) {
        co_image_scaler_planes(s, planes);
        return;
    }
    if (s->lanes == 4)
        s->loops->join(scratch, planes, in->column, n);
    else
        for (size_t i = 0; i < n; i++)
            scratch[i] = row[i * in->column];
    co_image_scaler_row(s, scratch);
}

/* Copy a box that keeps its size. */
static void image_copy(uint8_t *out, const co_image_scaler *s, const co_pixels *in)
{
    for (size_t c = 0; c < (size_t)in->channels; c++)
        for (size_t y = s->row.low; y < s->row.end; y++) {
            const uint8_t *row = in->at + c * in->plane + y * in->row + s->column.low * in->column;

            if (in->column == 1)
                memcpy(out, row, s->column.n);
            else
                for (size_t x = 0; x < s->column.n; x++)
                    out[x] = row[x * in->column];
            out += s->column.n;
        }
}

/* Resample one channel, or three interleaved. */
static co_status image_resample(void *out, const co_image_want *want, const co_pixels *in,
                                co_image_scratch *scratch)
{
    co_image_scaler *s = &scratch->scaler;
    const size_t lanes = in->channels == 1 ? 1 : 4;

    CO_TRY(co_image_scaler_begin(s, out, want, &want->box, (size_t)in->width, (size_t)in->height,
                                 lanes));
    if (s->column.copy && s->row.copy && !want->table) {
        image_copy(out, s, in);
        return CO_OK;
    }
    CO_TRY(co_image_reserve(&scratch->rows, (size_t)in->width * lanes + CO_IMAGE_ROW_PAD, 1));
    for (size_t y = s->row.low; y < s->row.end; y++) {
        image_fetch_row(s, in, y + IMAGE_AHEAD);
        image_give_row(s, scratch->rows.at, in, y);
    }
    return CO_OK;
}

co_status co_image_resample(void *out, const co_image_want *want, const co_pixels *in,
                            co_image_scratch *scratch)
{
    const size_t plane =
        (size_t)(want->height * want->width) * (want->table ? sizeof(float) : sizeof(uint8_t));
    co_image_want one_wanted = *want;
    co_pixels one = *in;

    if (in->channels == 3)
        return image_resample(out, want, in, scratch);
    one.channels = one_wanted.channels = 1;
    for (int64_t c = 0; c < in->channels; c++) {
        one.at = in->at + (size_t)c * in->plane;
        if (want->table)
            one_wanted.table = want->table + c;
        CO_TRY(image_resample((uint8_t *)out + (size_t)c * plane, &one_wanted, &one, scratch));
    }
    return CO_OK;
}

/* a * b / 255, rounded as in Pillow. */
static unsigned image_scale_byte(unsigned a, unsigned b)
{
    const unsigned t = a * b + 128;

    return ((t >> 8) + t) >> 8;
}

void co_image_cmyk_to_rgb(uint8_t *row, size_t n)
{
    for (size_t i = 0; i < n; i++, row += 4)
        for (size_t c = 0; c < 3; c++)
            row[c] = (uint8_t)(row[3] - image_scale_byte(255u - row[c], row[3]));
}

void co_image_rgb_to_grey(uint8_t *row, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t *p = row + 4 * i;

        /* Rec. 601: 0.299, 0.587, 0.114 */
        row[i] = (uint8_t)((p[0] * 19595u + p[1] * 38470u + p[2] * 7471u + 0x8000u) >> 16);
    }
}
