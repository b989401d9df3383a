/*
 * image.h - decode JPEG and PNG files to pixels of a given size. Untrusted input.
 */
#ifndef CO_IMAGE_IMAGE_H
#define CO_IMAGE_IMAGE_H

#include <cohort/types.h>

#include "image/lookup_table.h"

/* Limits on an image, pixels per side and in all: a small file can claim any size. */
#define CO_IMAGE_MAX_SIDE   65500
#define CO_IMAGE_MAX_PIXELS ((uint64_t)1 << 28)

typedef enum co_image_kind { CO_IMAGE_JPEG, CO_IMAGE_PNG } co_image_kind;

typedef struct co_image_info {
    co_image_kind kind;
    uint32_t width, height;
    int channels; /* as stored: 1 grey, 2 grey and alpha, 3 colour, 4 colour and alpha, or CMYK */
} co_image_info;

/* Read the header of a file, without decoding. CO_E_DATA, with a message that begins with `name`,
   if it is neither JPEG nor PNG, is cut short within its header, or exceeds the limits above. */
co_status co_image_probe(co_image_info *out, const uint8_t *bytes, size_t n, const char *name);

/* A rectangle in pixels of the image as stored (EXIF's orientation is ignored). (0, 0) is the outer
   corner of the first pixel, so the whole image is {0, 0, width, height}; fractions of pixels are
   allowed. */
typedef struct co_image_box {
    double x, y, width, height;
} co_image_box;

/* Which part of an image to decode, and to what. The box is within the image and is not empty;
   height and width are at least 1. */
typedef struct co_image_want {
    co_image_box box;
    int64_t channels, height, width; /* of the result; channels 1 or 3 */
    bool mirror;                     /* left and right swapped in the result */
    const co_lookup_table *table;    /* (channels): write floats, these; NULL: write bytes */
    bool stream; /* write floats with non-temporal stores: they are not read soon */
    bool scaled; /* a JPEG may be decoded at a smaller scale: faster, different bytes */
} co_image_want;

/* Memory for decoding (decoder, rows, filter weights), one per thread. It grows and is reused, so
   that in the long run decoding allocates nothing. */
typedef struct co_image_scratch co_image_scratch;
co_status co_image_scratch_create(co_image_scratch **out);
void co_image_scratch_destroy(co_image_scratch *scratch);

/*
 * Decode the box into `out`: planes (channels, height, width), row-major, red first; bytes, or
 * floats if want->table is set. A failure may leave a part of it written.
 *
 * Sampling is that of Pillow, and so of torchvision: Image.resize((width, height), BILINEAR,
 * box=box). A triangle filter as wide as the reduction, across columns first, then across rows,
 * rounded to a byte after each; pixels outside the box but within the image contribute, too. A box
 * of the wanted size at whole pixels is copied unchanged. With want->scaled a JPEG is first decoded
 * at 1/2, 1/4 or 1/8, as long as the box has at least the wanted pixels in both directions.
 *
 * Grey becomes colour by repetition; colour becomes grey by Rec. 601 (as Pillow's convert("L"));
 * alpha is dropped; CMYK is converted as Pillow does. CO_E_DATA, with a message that begins with
 * `name`, for what co_image_probe refuses and for damaged or missing image data.
 */
co_status co_image_decode(void *out, const co_image_want *want, co_image_scratch *scratch,
                          const uint8_t *bytes, size_t n, const char *name);

/* Pixels in memory. */
typedef struct co_pixels {
    const uint8_t *at; /* sample (c, y, x) is at[c * plane + y * row + x * column] */
    size_t plane, row, column;
    int64_t channels, height, width;
} co_pixels;

/* The same sampling of pixels in memory; `in` has want->channels channels. */
co_status co_image_resample(void *out, const co_image_want *want, const co_pixels *in,
                            co_image_scratch *scratch);

#endif
