/* images.h - files of images from anywhere, read as the samples of a data set are. */
#ifndef CO_DATA_IMAGES_H
#define CO_DATA_IMAGES_H

#include "data/data.h"

typedef struct co_image_files {
    const char *const *path; /* (n), borrowed */
    size_t n;
    bool encoded;    /* the data set's samples are image files themselves */
    co_shape stored; /* of a sample of the data set as stored: (C, H, W); encoded: (C, 0, 0) */
    co_shape sample; /* as the network gets it */
    int64_t classes;
} co_image_files;

/* Open them as the test split of a data set with the common keys (normalize, resize, ...) of a
   config's `data`; its own keys, and its path, play no part. Labels are 0. A set that stores pixels
   has samples of one size: of an image of another one the largest part of that shape in its middle
   is resampled. `config` and `files` must outlive the data set. CO_E_DATA, by the read that meets
   it, for a file that is no image. */
co_status co_dataset_open_images(co_dataset **out, const co_value *value, co_config *config,
                                 const co_image_files *files);

#endif
