/* pictures.c - JPEG and PNG files made for tests. */
#include "pictures.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jpeglib.h>
#include <png.h>

uint8_t picture_pixel(const picture *p, int c, int y, int x)
{
    const double a = 0.11 + 0.013 * (p->seed % 17) + 0.03 * c;
    const double wave = sin(a * x + c) * cos(0.07 * y * (c + 1)) + 0.3 * sin(1.3 * x + 0.9 * y);

    return (uint8_t)(127.5 + 95 * wave);
}

static void pictures_row(uint8_t *row, const picture *p, int y)
{
    for (int x = 0; x < p->width; x++)
        for (int c = 0; c < p->channels; c++)
            row[x * p->channels + c] = picture_pixel(p, c, y, x);
}

uint8_t *picture_jpeg(size_t *size, const picture *p)
{
    static const jpeg_scan_info averages = {.comps_in_scan = 1};
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr error;
    unsigned char *bytes = NULL;
    unsigned long n = 0;
    uint8_t *row = malloc((size_t)p->width * (size_t)p->channels);

    assert_non_null(row);
    jpeg.err = jpeg_std_error(&error);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &bytes, &n);
    jpeg.image_width = (JDIMENSION)p->width;
    jpeg.image_height = (JDIMENSION)p->height;
    jpeg.input_components = p->channels;
    jpeg.in_color_space = p->channels == 1 ? JCS_GRAYSCALE : p->channels == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&jpeg);
    if (p->ycck)
        jpeg_set_colorspace(&jpeg, JCS_YCCK);
    else if (p->channels == 4) {
        jpeg_set_colorspace(&jpeg, JCS_CMYK);
    }
    jpeg_set_quality(&jpeg, 90, TRUE);
    jpeg.comp_info[0].h_samp_factor = p->h ? p->h : 1;
    jpeg.comp_info[0].v_samp_factor = p->v ? p->v : 1;
    if (p->progressive)
        jpeg_simple_progression(&jpeg);
    if (p->one_scan) {
        jpeg.scan_info = &averages;
        jpeg.num_scans = 1;
    }
    jpeg_start_compress(&jpeg, TRUE);
    for (int y = 0; y < p->height; y++) {
        pictures_row(row, p, y);
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    free(row);
    *size = n;
    return bytes;
}

typedef struct pictures_file {
    uint8_t *at;
    size_t n;
} pictures_file;

static void pictures_write(png_structp png, png_bytep bytes, size_t n)
{
    pictures_file *file = png_get_io_ptr(png);

    file->at = realloc(file->at, file->n + n);
    assert_non_null(file->at);
    memcpy(file->at + file->n, bytes, n);
    file->n += n;
}

static int pictures_colour(const picture *p)
{
    static const int colours[] = {[1] = PNG_COLOR_TYPE_GRAY,
                                  [2] = PNG_COLOR_TYPE_GRAY_ALPHA,
                                  [3] = PNG_COLOR_TYPE_RGB,
                                  [4] = PNG_COLOR_TYPE_RGB_ALPHA};

    return p->palette ? PNG_COLOR_TYPE_PALETTE : colours[p->channels];
}

/* Entry k of the palette is (k, 255 - k, k / 2). */
static void pictures_palette(png_structp png, png_infop info)
{
    png_color colours[256];

    for (int k = 0; k < 256; k++)
        colours[k] = (png_color){(png_byte)k, (png_byte)(255 - k), (png_byte)(k / 2)};
    png_set_PLTE(png, info, colours, 256);
}

uint8_t *picture_png(size_t *size, const picture *p)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    const int depth = p->depth ? p->depth : 8, samples = p->width * p->channels;
    uint8_t *row = malloc((size_t)samples * 2);
    pictures_file file = {NULL, 0};
    const int passes = p->interlaced ? PNG_INTERLACE_ADAM7_PASSES : 1;

    assert_non_null(row);
    png_set_write_fn(png, &file, pictures_write, NULL);
    png_set_IHDR(png, info, (png_uint_32)p->width, (png_uint_32)p->height, depth,
                 pictures_colour(p), p->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (p->palette)
        pictures_palette(png, info);
    png_write_info(png, info);
    if (p->interlaced)
        (void)png_set_interlace_handling(png);
    for (int pass = 0; pass < passes; pass++)
        for (int y = 0; y < p->height; y++) {
            pictures_row(row, p, y);
            for (int i = samples - 1; depth == 16 && i >= 0; i--) {
                row[2 * i] = row[i]; /* big-endian */
                row[2 * i + 1] = (uint8_t)(i * 7);
            }
            png_write_row(png, row);
        }
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    free(row);
    *size = file.n;
    return file.at;
}
