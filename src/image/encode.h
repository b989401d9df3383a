/* encode.h - encode pixels as a JPEG or PNG file. */
#ifndef CO_IMAGE_ENCODE_H
#define CO_IMAGE_ENCODE_H

#include <cohort/ext/dataset.h>

/* Encode `planes` (C, H, W), C 1 or 3, sides below 65,500, as a baseline JPEG with chroma at half
   the resolution (4:2:0). `quality` is libjpeg's, from 1 to 100. The file is in `buffer`. */
co_status co_image_encode_jpeg(co_bytes *out, co_buffer *buffer, const uint8_t *planes,
                               const co_shape *shape, int quality);

/* The same as a PNG of 8 bits, without loss. */
co_status co_image_encode_png(co_bytes *out, co_buffer *buffer, const uint8_t *planes,
                              const co_shape *shape);

#endif
