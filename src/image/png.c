/*
 * png.c - decode PNG files, with libpng.
 *
 * libpng reports errors by longjmp. Only image_png_guard calls setjmp, and it owns nothing; what
 * runs under it keeps its state in an image_png.
 */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <png.h>

#include "core/fs.h"
#include "core/mem.h"
#include "image/internal.h"

#define PNG_HEAD      33 /* bytes of the signature and the IHDR chunk */
#define PNG_CHUNK_MAX ((png_alloc_size_t)8 << 20)

typedef struct image_png {
    png_structp lib;
    png_infop info;
    const co_image_job *job;
    size_t at; /* in job->bytes */
    size_t lanes, row_bytes;
    bool interlaced, cut_short;
    co_image_block whole; /* owned: an interlaced image */
    char message[128];
} image_png;

static void image_png_fail(png_structp lib, png_const_charp text)
{
    image_png *file = png_get_error_ptr(lib);

    snprintf(file->message, sizeof(file->message), "%s", text);
    png_longjmp(lib, 1);
}

/* Warnings do not concern pixels: damaged pixels are errors. */
static void image_png_ignore(png_structp lib, png_const_charp text)
{
    (void)lib, (void)text;
}

static void image_png_give(png_structp lib, png_bytep out, size_t n)
{
    image_png *file = png_get_io_ptr(lib);

    if (n > file->job->n - file->at) {
        file->cut_short = true;
        png_error(lib, "the file ends");
    }
    memcpy(out, file->job->bytes + file->at, n);
    file->at += n;
}

static bool image_png_guard(image_png *file, void (*run)(image_png *))
{
    if (setjmp(*png_set_longjmp_fn(file->lib, longjmp, sizeof(jmp_buf))) != 0)
        return false;
    run(file);
    return true;
}

static co_status image_png_status(const image_png *file)
{
    return co_fail(CO_E_DATA, "%s: a PNG that is %s (%s)", file->job->name,
                   file->cut_short ? "cut short" : "damaged", file->message);
}

static uint32_t image_png_u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

co_status co_image_png_probe(co_image_info *out, const uint8_t *bytes, size_t n, const char *name)
{
    static const int channels[] = {[0] = 1, [2] = 3, [3] = 3, [4] = 2, [6] = 4};
    uint8_t colour;

    if (n < PNG_HEAD || memcmp(bytes + 12, "IHDR", 4) != 0)
        return co_fail(CO_E_DATA, "%s: a PNG that is cut short or damaged within its header", name);
    colour = bytes[25];
    if (colour > 6 || channels[colour] == 0)
        return co_fail(CO_E_DATA, "%s: a PNG of colour type %u, which does not exist", name,
                       colour);
    out->kind = CO_IMAGE_PNG;
    out->width = image_png_u32(bytes + 16);
    out->height = image_png_u32(bytes + 20);
    out->channels = channels[colour];
    return co_image_check_size(out->width, out->height, name);
}

static void image_png_read_head(image_png *file)
{
    png_set_read_fn(file->lib, file, image_png_give);
    png_set_user_limits(file->lib, CO_IMAGE_MAX_SIDE, CO_IMAGE_MAX_SIDE);
    png_set_chunk_malloc_max(file->lib, PNG_CHUNK_MAX);
    png_read_info(file->lib, file->info);
}

/* 8 bits per channel; grey, or RGBX. Of 16 bits the upper 8 are used, as in Pillow. */
static void image_png_choose_form(image_png *file)
{
    const png_byte colour = png_get_color_type(file->lib, file->info);

    png_set_strip_16(file->lib);
    if (colour == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(file->lib);
    if (colour == PNG_COLOR_TYPE_GRAY)
        png_set_expand_gray_1_2_4_to_8(file->lib);
    if (colour == PNG_COLOR_TYPE_GRAY_ALPHA)
        png_set_strip_alpha(file->lib);
    if (colour & PNG_COLOR_MASK_COLOR)
        png_set_filler(file->lib, 0xff, PNG_FILLER_AFTER); /* without effect if there is alpha */
    file->interlaced = png_get_interlace_type(file->lib, file->info) != PNG_INTERLACE_NONE;
    (void)png_set_interlace_handling(file->lib);
    png_read_update_info(file->lib, file->info);
    file->lanes = colour & PNG_COLOR_MASK_COLOR ? 4 : 1;
    file->row_bytes = png_get_rowbytes(file->lib, file->info);
}

static void image_png_take(image_png *file, uint8_t *row)
{
    co_image_scaler *scaler = file->job->scaler;
    const size_t n = scaler->column.end - scaler->column.low;

    row += scaler->column.low * file->lanes;
    if (file->lanes == 4 && scaler->lanes == 1)
        co_image_rgb_to_grey(row, n);
    co_image_scaler_row(scaler, row);
}

/* Rows above the box must be decoded, too; those below it are not. */
static void image_png_read_rows(image_png *file)
{
    const co_image_filter *row = &file->job->scaler->row;
    uint8_t *buffer = file->job->rows->at;

    for (size_t y = 0; y < row->end; y++) {
        png_read_row(file->lib, buffer, NULL);
        if (y >= row->low)
            image_png_take(file, buffer);
    }
}

/* Each pass covers the whole image, so all of it is kept. */
static void image_png_read_passes(image_png *file)
{
    const co_image_filter *row = &file->job->scaler->row;
    const size_t height = png_get_image_height(file->lib, file->info);
    uint8_t *whole = file->whole.at;

    for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; pass++)
        for (size_t y = 0; y < height; y++)
            png_read_row(file->lib, whole + y * file->row_bytes, NULL);
    for (size_t y = row->low; y < row->end; y++)
        image_png_take(file, whole + y * file->row_bytes);
}

static co_status image_png_prepare(image_png *file)
{
    const co_image_job *job = file->job;
    const size_t width = png_get_image_width(file->lib, file->info);
    const size_t height = png_get_image_height(file->lib, file->info);

    if (file->row_bytes != width * file->lanes)
        return co_fail(CO_E_DATA, "%s: a PNG of an unknown kind", job->name);
    CO_TRY(co_image_scaler_begin(job->scaler, job->out, job->want, &job->want->box, width, height,
                                 job->want->channels == 1 ? 1 : file->lanes));
    if (!file->interlaced)
        return co_image_reserve(job->rows, file->row_bytes + CO_IMAGE_ROW_PAD, 1);
    if (height > CO_IMAGE_MAX_MEMORY / file->row_bytes)
        return co_fail(CO_E_DATA, "%s: takes more than %zu MiB to decode; store it not interlaced",
                       job->name, CO_IMAGE_MAX_MEMORY >> 20);
    return co_image_reserve(&file->whole, height * file->row_bytes + CO_IMAGE_ROW_PAD, 1);
}

static co_status image_png_decode(image_png *file)
{
    if (!image_png_guard(file, image_png_read_head))
        return image_png_status(file);
    if (!image_png_guard(file, image_png_choose_form))
        return image_png_status(file);
    CO_TRY(image_png_prepare(file));
    if (!image_png_guard(file, file->interlaced ? image_png_read_passes : image_png_read_rows))
        return image_png_status(file);
    return CO_OK;
}

co_status co_image_png_decode(const co_image_job *job)
{
    image_png file = {.job = job};
    co_image_info info;
    co_status st;

    CO_TRY(co_image_png_probe(&info, job->bytes, job->n, job->name));
    file.lib =
        png_create_read_struct(PNG_LIBPNG_VER_STRING, &file, image_png_fail, image_png_ignore);
    if (!file.lib)
        return co_fail(CO_E_NOMEM, "%s: out of memory", job->name);
    file.info = png_create_info_struct(file.lib);
    st = file.info ? image_png_decode(&file) : co_fail(CO_E_NOMEM, "%s: out of memory", job->name);
    png_destroy_read_struct(&file.lib, &file.info, NULL);
    co_free(file.whole.at);
    return st;
}
