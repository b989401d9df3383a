/* encode.h - pixels to a JPEG file. */
#ifndef CO_IMAGE_ENCODE_H
#define CO_IMAGE_ENCODE_H

#include <cohort/ext/dataset.h>

/* A baseline JPEG, chroma at half the resolution (4:2:0), of `planes` (channels, height, width),
   channels 1 or 3, sides below 65,500; quality from 1 to 100 as libjpeg's. The file is in
   `buffer`. */
co_status co_image_encode_jpeg(co_bytes *out, co_buffer *buffer, const uint8_t *planes,
                               const co_shape *shape, int quality);

#endif
