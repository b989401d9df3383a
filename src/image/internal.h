/* internal.h - shared by the files of src/image: filters, scaler and decoders. */
#ifndef CO_IMAGE_INTERNAL_H
#define CO_IMAGE_INTERNAL_H

#include "image/image.h"
#include "kernels/images/places.h"

/* Bytes that a decoder may allocate for one image besides its rows: progressive JPEGs and
   interlaced PNGs are kept as a whole. */
#define CO_IMAGE_MAX_MEMORY ((size_t)1 << 30)
/* Limit on the scans of a progressive JPEG; encoders write about ten. */
#define CO_IMAGE_MAX_SCANS 100
/* Bytes that must be readable after a row that is passed to a scaler. */
#define CO_IMAGE_ROW_PAD 128

/* A block that grows and is reused. Zero is empty. */
typedef struct co_image_block {
    void *at; /* owned, aligned to 64 */
    size_t size;
} co_image_block;

co_status co_image_reserve(co_image_block *block, size_t count, size_t size);

/* Weights of one direction: result i is the sum over k < taps of weight[k] * source[first[i] + k].
   Weights are integer multiples of 2^-22 that add up to 1 except for rounding. They are stored as
   two signed 16-bit numbers, weight = high * 2^11 + low, and in pairs of taps, for multiply-and-add
   instructions. */
typedef struct co_image_filter {
    size_t n;        /* results */
    size_t room;     /* n rounded up to CO_IMAGE_STEP; the rest has weight 0 */
    size_t pairs;    /* (taps + 1) / 2 */
    size_t low, end; /* the range of the source with any weight */
    uint32_t *first; /* (room), relative to low; monotonic */
    uint32_t *base;  /* (room / CO_IMAGE_BLOCK), minimum of `first` in a block */
    uint32_t *taps;  /* (room), first - base in the lower half, first - base + 1 in the upper one */
    size_t spread;   /* maximum of first - base */
    int16_t *high;   /* (pairs, room, 2) */
    int16_t *low_bits;
    bool copy; /* no filtering: the result is the source from `low` on */
    co_image_block block, work;
} co_image_filter;

/* Compute the filter from the box of `length` pixels at `start`, of `size` in all, to n results, in
   reverse order if `backwards`. Zero is an empty filter; its memory grows and is reused. */
co_status co_image_filter_make(co_image_filter *f, double start, double length, size_t size,
                               int64_t n, bool backwards);
void co_image_filter_close(co_image_filter *f);

#define CO_IMAGE_STEP  32
#define CO_IMAGE_BLOCK 16
#define CO_IMAGE_PAIR  2
/* With more pairs, rounding of the weights alone may exceed 255. */
#define CO_IMAGE_PAIRS 4096
#define CO_IMAGE_HALF  11

/* Inner loops, one set for each instruction set; all give the same bytes. */
typedef struct co_image_loops {
    const char *name;
    /* Filter a row of 4-byte pixels into three planes of filter->n bytes, `plane` bytes apart; may
       write filter->room bytes of each. */
    void (*across)(uint8_t *out, size_t plane, const uint8_t *row, const co_image_filter *filter);
    /* The same from one or three planes, for filters with spread + 2 <= window and at most
       CO_IMAGE_PAIRS; may read CO_IMAGE_ROW_PAD bytes after a row. */
    void (*across_planes)(uint8_t *out, size_t plane, const uint8_t *const row[3], size_t planes,
                          const co_image_filter *filter);
    size_t window; /* 0: no across_planes */
    /* Row i of the result of a filter over rows of n bytes, `stride` bytes apart; may read and
       write n rounded up to 16. */
    void (*down)(uint8_t *out, const uint8_t *rows, size_t stride, const co_image_filter *filter,
                 size_t i, size_t n);
    /* Split 4-byte pixels into three planes, without the fourth byte; may write as `across`. */
    void (*part)(uint8_t *out, size_t plane, const uint8_t *row, size_t n);
    /* Join planes, whose bytes are `step` apart, to 4-byte pixels; the fourth byte is undefined. */
    void (*join)(uint8_t *row, const uint8_t *planes[3], size_t step, size_t n);
} co_image_loops;

extern const co_image_loops co_image_loops_basic;
extern const co_image_loops co_image_loops_avx2;
extern const co_image_loops co_image_loops_avx512;
#define CO_IMAGE_MAX_LOOPS 3
/* The sets that this machine can run, the fastest last. */
size_t co_image_loops_list(const co_image_loops *out[CO_IMAGE_MAX_LOOPS]);

/* Resamples an image that is passed row by row, from the top. */
typedef struct co_image_scaler {
    const co_image_loops *loops;
    co_image_filter column, row;
    size_t lanes;           /* bytes of a source pixel: 1, or 4 of which the last is ignored */
    size_t stride;          /* bytes of a plane's row in `rows` */
    size_t received;        /* source rows passed */
    size_t done;            /* rows of the result written */
    size_t need, strip_end; /* source rows needed for those of the result up to strip_end */
    const co_image_want *want;
    void *out;
    co_image_block rows;  /* (row.end - row.low, planes, stride) */
    co_image_block strip; /* rows of one plane of the result, before they become floats */
} co_image_scaler;

/* Begin an image of width x height pixels of `lanes` bytes, of which `box` is wanted. The caller
   then passes rows [row.low, row.end), each from column.low on; with the last one `out` is
   complete. */
co_status co_image_scaler_begin(co_image_scaler *s, void *out, const co_image_want *want,
                                const co_image_box *box, size_t width, size_t height, size_t lanes);
/* Pass a row. CO_IMAGE_ROW_PAD bytes after its last pixel must be readable. */
void co_image_scaler_row(co_image_scaler *s, const uint8_t *pixels);
/* The same as one or three planes. */
void co_image_scaler_planes(co_image_scaler *s, const uint8_t *const row[3]);
/* Whether planes are faster than interleaved pixels. */
bool co_image_scaler_prefers_planes(const co_image_scaler *s);
void co_image_scaler_close(co_image_scaler *s);

/* Rows of 4-byte pixels, in place. */
void co_image_cmyk_to_rgb(uint8_t *row, size_t n); /* inverted, as Adobe's programs write it */
void co_image_rgb_to_grey(uint8_t *row, size_t n); /* to 1-byte pixels */

/* Arguments of a decoder, borrowed. */
typedef struct co_image_job {
    void *out;
    const co_image_want *want;
    const uint8_t *bytes;
    size_t n;
    const char *name;
    co_image_scaler *scaler;
    co_image_block *rows; /* for decoded rows */
} co_image_job;

/* A JPEG decoder, reused for all images. */
typedef struct co_image_jpeg co_image_jpeg;
co_status co_image_jpeg_create(co_image_jpeg **out);
void co_image_jpeg_destroy(co_image_jpeg *jpeg);
co_status co_image_jpeg_probe(co_image_info *out, const uint8_t *bytes, size_t n, const char *name);
co_status co_image_jpeg_decode(co_image_jpeg *jpeg, const co_image_job *job);

co_status co_image_png_probe(co_image_info *out, const uint8_t *bytes, size_t n, const char *name);
co_status co_image_png_decode(const co_image_job *job);

/* CO_E_DATA unless the size is within the limits of image.h. */
co_status co_image_check_size(uint64_t width, uint64_t height, const char *name);

#endif
