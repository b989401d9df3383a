/* resize.h - convert bytes of one size to floats of another. */
#ifndef CO_IMAGE_RESIZE_H
#define CO_IMAGE_RESIZE_H

#include "core/config.h"
#include "image/lookup_table.h"

typedef enum co_resize_mode {
    CO_RESIZE_BILINEAR, /* as PyTorch's F.interpolate(align_corners=False), no antialiasing */
    CO_RESIZE_PAD       /* zero bytes around the centred image */
} co_resize_mode;

/* One row or column of the output: the two of the input between which it is interpolated. */
typedef struct co_resize_tap {
    uint32_t low, high;
    float weight; /* of high */
} co_resize_tap;

typedef struct co_resize {
    int mode;     /* co_resize_mode */
    co_ints size; /* [height, width] as configured; n = 0: off */
    co_shape from, to;
    co_resize_tap *row, *column; /* BILINEAR: (to H), (to W), owned */
} co_resize;

/* From the config: a size, [height, width], or {size: ..., mode: bilinear | pad}. */
co_status co_resize_read(co_resize *out, const co_value *value, co_config *config);
/* Prepare for images of the stored shape (C, H, W). CO_E_USAGE for padding to a smaller size. */
co_status co_resize_setup(co_resize *resize, const co_shape *from);
void co_resize_close(co_resize *resize);

/* (C, H, W) bytes to (C, H', W') floats, through a table per channel. */
void co_resize_apply(float *out, const co_resize *resize, const uint8_t *in,
                     const co_lookup_table *table);

#endif
