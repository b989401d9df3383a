/* picture.h - a sample of images as a file that people can look at. */
#ifndef CO_DATA_PICTURE_H
#define CO_DATA_PICTURE_H

#include "data/data.h"

/* Memory for one after the other. Zero is empty. */
typedef struct co_picture {
    co_bytes png;            /* of the last sample; empty: it is no picture */
    co_data_scratch scratch; /* from here on for picture.c alone */
    co_buffer values, packed;
} co_picture;

/* Sample i as the network sees it, augmented for `place` (NULL: not), before normalisation: a PNG
   of 8 bits if it is an image of 1 or 3 channels. */
co_status co_picture_draw(co_picture *out, const co_dataset *dataset, uint64_t i,
                          const co_augment_place *place);
void co_picture_free(co_picture *picture);

#endif
