/* pack_convert.h - convert samples of a data set to records of a packed file. */
#ifndef CO_DATA_PACK_CONVERT_H
#define CO_DATA_PACK_CONVERT_H

#include "data/data.h"
#include "data/pack_format.h"

typedef struct co_pack_options {
    int64_t resize;  /* longest side; larger images are scaled down to it. 0: off */
    int64_t quality; /* JPEG quality of scaled images, 1 to 100 */
    int64_t decode;  /* store pixels of the middle square, scaled to this side. 0: off */
} co_pack_options;

typedef struct co_pack_converter {
    const co_dataset *data; /* borrowed */
    co_pack_options options;
    co_buffer stored, pixels, file;
    co_image_scratch *image;
    size_t read; /* stored bytes of the last sample */
} co_pack_converter;

/* `out` must be zero; close it after a failure, too. Sets `head`, without the counts. CO_E_USAGE
   for options that do not fit the data. */
co_status co_pack_converter_open(co_pack_converter *out, co_pack_head *head, const co_dataset *data,
                                 const co_pack_options *options);
/* The record of sample i, valid until the next call. */
co_status co_pack_convert(co_bytes *out, co_pack_converter *converter, uint64_t i);
void co_pack_converter_close(co_pack_converter *converter);

#endif
