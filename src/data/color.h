/* color.h - change the colours of an image, as torchvision's functions on tensors of bytes do. */
#ifndef CO_DATA_COLOR_H
#define CO_DATA_COLOR_H

#include <cohort/types.h>

/* Planes (C, H, W) of bytes, C 1 or 3; `n` is H * W; out may be in. A factor of 1 changes nothing
   (hue: of 0). */
typedef void co_color_fn(uint8_t *out, const uint8_t *in, size_t channels, size_t n, float factor);

co_color_fn co_color_brightness; /* factor * x */
co_color_fn co_color_contrast;   /* away from the mean of the grey image */
co_color_fn co_color_saturation; /* away from the grey image */
co_color_fn co_color_hue;        /* factor from -0.5 to 0.5: turns of the colour circle */

#endif
