/* encode_png.c - encode pixels as a PNG file, with libpng. */
#include <png.h>

#include "image/encode.h"

co_status co_image_encode_png(co_bytes *out, co_buffer *buffer, const uint8_t *planes,
                              const co_shape *shape)
{
    const size_t channels = (size_t)shape->dim[0];
    const size_t plane = (size_t)(shape->dim[1] * shape->dim[2]), size = plane * channels;
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)shape->dim[2],
                       .height = (png_uint_32)shape->dim[1],
                       .format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB};
    const png_alloc_size_t room = PNG_IMAGE_PNG_SIZE_MAX(image);
    png_alloc_size_t n = room;
    uint8_t *pixels;

    CO_TRY(co_buffer_reserve(&pixels, buffer, size + room));
    for (size_t c = 0; c < channels; c++)
        for (size_t k = 0; k < plane; k++)
            pixels[k * channels + c] = planes[c * plane + k];
    if (!png_image_write_to_memory(&image, pixels + size, &n, 0, pixels, 0, NULL))
        return co_fail(CO_E_NOMEM, "cannot encode an image: %s", image.message);
    *out = (co_bytes){pixels + size, n};
    return CO_OK;
}
