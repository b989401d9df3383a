/* color.h - colour changes of an image, as by torchvision's functions on uint8 tensors. */
#ifndef CO_IMAGE_COLOR_H
#define CO_IMAGE_COLOR_H

#include <cohort/types.h>

/* Bytes (C, H, W), C 1 or 3; `n` is H * W; `out` may be `in`. Factor 1 (hue: 0) changes nothing. */
typedef void co_color_fn(uint8_t *out, const uint8_t *in, size_t channels, size_t n, float factor);

co_color_fn co_color_brightness; /* factor * x */
co_color_fn co_color_contrast;   /* relative to the mean of the grey image */
co_color_fn co_color_saturation; /* relative to the grey image */
co_color_fn co_color_hue;        /* factor from -0.5 to 0.5: turns of the colour circle */

/* Inner loops over n pixels, one set for each instruction set; all give the same bytes. `out` must
   not overlap the other arrays. */
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
/* The sets that this machine can run, the fastest last. */
size_t co_color_loops_list(const co_color_loops *out[CO_COLOR_MAX_LOOPS]);

#endif
