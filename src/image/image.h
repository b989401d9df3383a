/*
 * image.h - JPEG and PNG files, whose bytes may be anything, to pixels of the size that is wanted.
 *
 * Knows files and sampling; not what chooses the box, and nothing of data sets.
 */
#ifndef CO_IMAGE_IMAGE_H
#define CO_IMAGE_IMAGE_H

#include <cohort/types.h>

#include "image/lookup_table.h"

/* Neither side of an image may be longer, nor may it have more pixels: a small file can claim to
   unpack to anything. */
#define CO_IMAGE_MAX_SIDE   65500
#define CO_IMAGE_MAX_PIXELS ((uint64_t)1 << 28)

typedef enum co_image_kind { CO_IMAGE_JPEG, CO_IMAGE_PNG } co_image_kind;

typedef struct co_image_info {
    co_image_kind kind;
    uint32_t width, height;
    int channels; /* as stored: 1 grey, 2 grey and alpha, 3 colour, 4 colour and alpha, or CMYK */
} co_image_info;

/* What the header of a file says, decoding nothing. CO_E_DATA, with a message that begins with
   `name`, for what is no JPEG or PNG, is cut short within its header, or is larger than the limits
   above. */
co_status co_image_probe(co_image_info *out, const uint8_t *bytes, size_t n, const char *name);

/* A rectangle in pixels of the image as stored (EXIF's orientation is ignored). (0, 0) is the outer
   corner of the first pixel, so the whole image is {0, 0, width, height}; parts of pixels are
   allowed. */
typedef struct co_image_box {
    double x, y, width, height;
} co_image_box;

/* The part of the image that is wanted, and what to make of it. The box is within the image and
   is not empty; height and width are at least 1. */
typedef struct co_image_want {
    co_image_box box;
    int64_t channels, height, width; /* of the result; channels 1 or 3 */
    bool mirror;                     /* left and right swapped in the result */
    const co_lookup_table *table;    /* (channels): floats are wanted, these; NULL: bytes */
    bool past;                       /* floats past the caches: nobody reads them soon */
    bool scaled; /* a JPEG may be decoded at a smaller scale: faster, other bytes */
} co_image_want;

/* What decoding needs over and over (decoder, rows, filter weights): one per thread, grows and is
   kept, so that decoding many images takes no memory in the long run. */
typedef struct co_image_scratch co_image_scratch;
co_status co_image_scratch_create(co_image_scratch **out);
void co_image_scratch_destroy(co_image_scratch *scratch);

/*
 * Decode the box into `out`, planes (channels, height, width) row-major: channel after channel, red
 * first; bytes, or floats when want->table is there. A failure may leave a part of it written.
 *
 * Sampling is Pillow's, and so torchvision's: Image.resize((width, height), BILINEAR, box=box): a
 * triangle filter as wide as the reduction, across columns first, then across rows, rounded to a
 * byte after each; pixels outside the box but within the image weigh in as there. A box of the
 * wanted size at whole pixels is copied unchanged. With want->scaled a JPEG is decoded at 1/2, 1/4
 * or 1/8 before that, as long as the box has no fewer pixels than are wanted in either direction.
 *
 * Grey becomes colour by repeating it; colour becomes grey by Rec. 601 (as Pillow's convert("L"));
 * alpha is dropped; CMYK is converted as Pillow does. CO_E_DATA, with a message that begins with
 * `name`, for what probe refuses and for damaged or missing image data.
 */
co_status co_image_decode(void *out, const co_image_want *want, co_image_scratch *scratch,
                          const uint8_t *bytes, size_t n, const char *name);

/* Pixels in memory. */
typedef struct co_pixels {
    const uint8_t *at; /* sample (c, y, x) is at[c * plane + y * row + x * column] */
    size_t plane, row, column;
    int64_t channels, height, width;
} co_pixels;

/* The same sampling, of pixels that need no decoding; `in` has the channels that are wanted. */
co_status co_image_resample(void *out, const co_image_want *want, const co_pixels *in,
                            co_image_scratch *scratch);

#endif
