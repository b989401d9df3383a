/* resize_crop.h - which part of an image becomes a sample, and of what size: `resize` and
   `center_crop`. */
#ifndef CO_IMAGE_RESIZE_CROP_H
#define CO_IMAGE_RESIZE_CROP_H

#include <cohort/ext/keys.h>

#include "image/image.h"

typedef struct co_frame {
    co_ints resize;        /* n = 1: the shorter side's length; 2: [height, width]; 0: off */
    co_ints crop;          /* center_crop: side, or [height, width]; n = 0: off */
    int64_t height, width; /* of a sample; with neither key, of the only image size allowed */
} co_frame;

/* Set height and width from the keys; `first` is the shape (C, H, W) of an image of the set.
   CO_E_USAGE if the crop is larger than the resized image. */
co_status co_frame_setup(co_frame *frame, const co_shape *first);
/* The box of an image of this size, as by torchvision's Resize and CenterCrop. CO_E_DATA, with a
   message that begins with `name`, for an image that does not fit. */
co_status co_frame_box(co_image_box *out, const co_frame *frame, int64_t height, int64_t width,
                       const char *name);

#endif
