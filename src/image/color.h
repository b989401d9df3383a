/* color.h - change the colours of an image, as torchvision's functions on tensors of bytes do. */
#ifndef CO_IMAGE_COLOR_H
#define CO_IMAGE_COLOR_H

#include <cohort/types.h>

/* Planes (C, H, W) of bytes, C 1 or 3; `n` is H * W; out may be in. A factor of 1 changes nothing
   (hue: of 0). */
typedef void co_color_fn(uint8_t *out, const uint8_t *in, size_t channels, size_t n, float factor);

co_color_fn co_color_brightness; /* factor * x */
co_color_fn co_color_contrast;   /* away from the mean of the grey image */
co_color_fn co_color_saturation; /* away from the grey image */
co_color_fn co_color_hue;        /* factor from -0.5 to 0.5: turns of the colour circle */

/* What they do with n pixels at a time, once for each instruction set; all give the same bytes, and
   `out` overlaps nothing. */
typedef struct co_color_loops {
    const char *name;
    void (*scale)(uint8_t *out, const uint8_t *in, size_t n, float factor, float more);
    void (*grey)(uint8_t *out, const uint8_t *in, size_t plane, size_t n);
    uint32_t (*sum)(const uint8_t *in, size_t n);
    void (*blend)(uint8_t *out, const uint8_t *in, const uint8_t *grey, size_t n, float factor);
    void (*turn)(uint8_t *out, size_t out_plane, const uint8_t *in, size_t plane, size_t n,
                 float turn);
} co_color_loops;

extern const co_color_loops co_color_avx2;
extern const co_color_loops co_color_avx512;
#define CO_COLOR_MAX_LOOPS 3
/* Those that this machine can run, the fastest last. */
size_t co_color_loops_list(const co_color_loops *out[CO_COLOR_MAX_LOOPS]);

#endif
