/* dataset_internal.h - an open data set; shared by dataset.c and read_sample.c. */
#ifndef CO_DATA_DATASET_INTERNAL_H
#define CO_DATA_DATASET_INTERNAL_H

#include "data/data.h"
#include "image/augment.h"
#include "image/normalize.h"
#include "image/resize.h"
#include "image/resize_crop.h"

#define CO_DATASET_NAME 1024 /* bytes of a sample's name in messages */

struct co_dataset {
    const co_dataset_ops *ops;
    co_config *config; /* owned; NULL if the caller owns it */
    const char *path;
    const co_value *normalize_value, *resize_value, *augment_value;
    co_normalize normalize;
    co_augment augment; /* n = 0 for the test split */
    co_resize resize;
    co_ints center_crop;
    bool scaled;    /* JPEGs may be decoded at a smaller scale; false for the test split */
    int on_bad;     /* index into dataset_on_bad */
    bool named;     /* its images were named one by one: there are no others for bad ones */
    bool framed;    /* `frame`, not `resize`, sets the size; images may differ in size */
    co_frame frame; /* if framed */
    co_dataset_info info;
    co_shape shape; /* of the input of a network; images: (C, H, W) */
    co_field field[CO_MAX_FIELDS];
    co_lookup_table *table; /* (C): the float for each byte; owned */
    bool drawn;             /* samples are those of ops->draw; false for the test split */
    bool open;              /* ops->close must be called */
    max_align_t self[];     /* the format's own fields */
};

/* Open as the test split of the data set that `value` says, but with other `ops`: the common keys
   (normalize, resize, ...) are read; `self`, of the ops' size, is copied. Samples that cannot be
   read are errors. */
co_status co_dataset_open_as(co_dataset **out, const co_dataset_ops *ops, const void *self,
                             const co_value *value, co_config *config);

#endif
