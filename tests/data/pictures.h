/* pictures.h - JPEG and PNG files made for tests: smooth patterns whose bytes depend on a seed. */
#ifndef TESTS_DATA_PICTURES_H
#define TESTS_DATA_PICTURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct picture {
    int width, height;
    int channels; /* 1, 3; JPEG: 4 is CMYK; PNG: 2 and 4 have alpha */
    int h, v;     /* JPEG: luma samples per chroma sample; 0: 1 */
    bool progressive;
    bool one_scan; /* progressive: a single scan, which may be repeated */
    bool ycck;     /* CMYK stored as YCCK */
    int depth;     /* PNG: 8 or 16; 0: 8 */
    bool interlaced, palette;
    unsigned seed;
} picture;

/* malloc'd bytes of a file; the caller frees. */
uint8_t *picture_jpeg(size_t *size, const picture *p);
uint8_t *picture_png(size_t *size, const picture *p);
/* Channel c of pixel (x, y) before encoding; 8 bits. */
uint8_t picture_pixel(const picture *p, int c, int y, int x);

#endif
