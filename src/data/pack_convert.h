/* pack_convert.h - samples of a data set to records of a packed file. */
#ifndef CO_DATA_PACK_CONVERT_H
#define CO_DATA_PACK_CONVERT_H

#include "data/data.h"
#include "data/pack_format.h"

typedef struct co_pack_options {
    int64_t resize;  /* longest side of images that are larger; 0: as they are */
    int64_t quality; /* of those, from 1 to 100 */
    int64_t decode;  /* store pixels: shorter side, of which the middle square is taken; 0: no */
} co_pack_options;

/* What turns sample after sample into records. */
typedef struct co_pack_converter {
    const co_dataset *data; /* borrowed */
    co_pack_options options;
    co_buffer stored, pixels, file;
    co_image_scratch *image;
    size_t read; /* bytes of the last sample as it was stored */
} co_pack_converter;

/* Zero `out` first; close it whatever happens. CO_E_USAGE for options that do not fit the data. */
co_status co_pack_converter_open(co_pack_converter *out, co_pack_head *head, const co_dataset *data,
                                 const co_pack_options *options);
/* The record of sample i, good until the next call. */
co_status co_pack_convert(co_bytes *out, co_pack_converter *converter, uint64_t i);
void co_pack_converter_close(co_pack_converter *converter);

#endif
