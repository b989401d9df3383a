/*
 * encode.c - encode pixels as a JPEG file, with libjpeg-turbo.
 *
 * As in jpeg.c, only encode_guard calls setjmp, and it owns nothing.
 */
#include "image/encode.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "core/fs.h"

#define ENCODE_PIXEL_MAX 6 /* bytes per pixel, enough for any quality */
#define ENCODE_HEAD_MAX  4096

typedef struct encode {
    struct jpeg_compress_struct lib;
    struct jpeg_error_mgr error;
    jmp_buf failed;
    const uint8_t *planes;
    const co_shape *shape;
    int quality;
    unsigned char *out, *row; /* borrowed */
    unsigned long size;
} encode;

static void encode_fail(j_common_ptr lib)
{
    longjmp(((encode *)lib->client_data)->failed, 1);
}

static bool encode_guard(encode *e, void (*run)(encode *))
{
    if (setjmp(e->failed) != 0)
        return false;
    run(e);
    return true;
}

static void encode_rows(encode *e)
{
    const size_t channels = (size_t)e->shape->dim[0], width = (size_t)e->shape->dim[2];
    const size_t plane = (size_t)e->shape->dim[1] * width;

    for (size_t y = 0; y < (size_t)e->shape->dim[1]; y++) {
        for (size_t x = 0; x < width; x++)
            for (size_t c = 0; c < channels; c++)
                e->row[x * channels + c] = e->planes[c * plane + y * width + x];
        (void)jpeg_write_scanlines(&e->lib, &e->row, 1);
    }
}

static void encode_run(encode *e)
{
    jpeg_create_compress(&e->lib);
    jpeg_mem_dest(&e->lib, &e->out, &e->size);
    e->lib.image_width = (JDIMENSION)e->shape->dim[2];
    e->lib.image_height = (JDIMENSION)e->shape->dim[1];
    e->lib.input_components = (int)e->shape->dim[0];
    e->lib.in_color_space = e->shape->dim[0] == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&e->lib);
    jpeg_set_quality(&e->lib, e->quality, TRUE);
    e->lib.optimize_coding = TRUE;
    jpeg_start_compress(&e->lib, TRUE);
    encode_rows(e);
    jpeg_finish_compress(&e->lib);
}

co_status co_image_encode_jpeg(co_bytes *out, co_buffer *buffer, const uint8_t *planes,
                               const co_shape *shape, int quality)
{
    const size_t row = (size_t)(shape->dim[0] * shape->dim[2]);
    const size_t room =
        (size_t)(shape->dim[1] + 16) * (size_t)(shape->dim[2] + 16) * ENCODE_PIXEL_MAX +
        ENCODE_HEAD_MAX;
    encode e = {.planes = planes, .shape = shape, .quality = quality, .size = room};
    uint8_t *bytes;
    bool done, moved;

    CO_TRY(co_buffer_reserve(&bytes, buffer, room + row));
    e.out = bytes;
    e.row = bytes + room;
    e.lib.err = jpeg_std_error(&e.error);
    e.error.error_exit = encode_fail;
    e.lib.client_data = &e;
    done = encode_guard(&e, encode_run);
    jpeg_destroy_compress(&e.lib);
    moved = e.out != bytes; /* the library allocated a larger block: `room` was not enough */
    if (moved)
        free(e.out);
    if (!done || moved)
        return co_fail(CO_E_NOMEM, "cannot encode an image: out of memory");
    *out = (co_bytes){bytes, e.size};
    return CO_OK;
}
