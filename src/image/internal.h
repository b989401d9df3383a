/* internal.h - what the files of image*.c share: rows of pixels on their way to a result. */
#ifndef CO_IMAGE_INTERNAL_H
#define CO_IMAGE_INTERNAL_H

#include "image/image.h"

/* Memory that a decoder may take for one image beside its rows: progressive JPEGs and interlaced
   PNGs have to be held whole. */
#define CO_IMAGE_MAX_MEMORY ((size_t)1 << 30)
/* Scans of a progressive JPEG; encoders write about ten. */
#define CO_IMAGE_MAX_SCANS 100
/* Readable bytes after a row that is given to a scaler. */
#define CO_IMAGE_ROW_PAD 128

/* A block that grows as needed and is kept. Zero is empty. */
typedef struct co_image_block {
    void *at; /* owned, aligned to 64 */
    size_t size;
} co_image_block;

co_status co_image_reserve(co_image_block *block, size_t count, size_t size);

/* Weights of one direction: result i is the sum over k < taps of weight[k] * source[first[i] + k].
   Weights are whole numbers of 2^-22 that sum to 2^22 but for rounding, kept as two signed 16-bit
   numbers, weight = high * 2^11 + low, and in pairs of taps, as multiply-and-add instructions want
   them. */
typedef struct co_image_filter {
    size_t n;        /* results */
    size_t room;     /* n rounded up to CO_IMAGE_STEP; the rest has weight 0 */
    size_t pairs;    /* (taps + 1) / 2 */
    size_t low, end; /* the part of the source that has any weight */
    uint32_t *first; /* (room), relative to low; all up or all down */
    uint32_t *base;  /* (room / CO_IMAGE_BLOCK), minimum of `first` in a block */
    uint32_t *taps;  /* (room), first - base in the lower half and one more in the upper one */
    size_t spread;   /* first - base, at most */
    int16_t *high;   /* (pairs, room, 2) */
    int16_t *low_bits;
    bool copy; /* the result is the source from `low` on */
    co_image_block block, work;
} co_image_filter;

/* For a box that begins at `start` and is `length` long, of `size` pixels, to n results; backwards:
   the last one first. Zero is an empty filter; it grows and is kept. */
co_status co_image_filter_make(co_image_filter *f, double start, double length, size_t size,
                               int64_t n, bool backwards);
void co_image_filter_close(co_image_filter *f);

#define CO_IMAGE_STEP  32
#define CO_IMAGE_BLOCK 16
#define CO_IMAGE_PAIR  2
#define CO_IMAGE_SHIFT 22
/* More may exceed 255 by rounding of the weights alone. */
#define CO_IMAGE_PAIRS 4096
#define CO_IMAGE_HALF  11

/* The inner loops, once for each instruction set; all give the same bytes. */
typedef struct co_image_loops {
    const char *name;
    /* A row of 4-byte pixels to three planes of filter->n bytes each, `plane` apart; writes up to
       filter->room bytes of each. */
    void (*across)(uint8_t *out, size_t plane, const uint8_t *row, const co_image_filter *filter);
    /* The same of one or three planes, for filters with spread + 2 <= window and no more than
       CO_IMAGE_PAIRS; reads up to
       CO_IMAGE_ROW_PAD bytes after a row. */
    void (*across_planes)(uint8_t *out, size_t plane, const uint8_t *const row[3], size_t planes,
                          const co_image_filter *filter);
    size_t window; /* 0: there is no such function */
    /* Result i of a filter over rows of n bytes, `stride` apart; reads and writes up to n rounded
       up to 16. */
    void (*down)(uint8_t *out, const uint8_t *rows, size_t stride, const co_image_filter *filter,
                 size_t i, size_t n);
    /* The first three bytes of 4-byte pixels to planes, as across. */
    void (*part)(uint8_t *out, size_t plane, const uint8_t *row, size_t n);
    /* The other way round, of bytes that are `step` apart. */
    void (*join)(uint8_t *row, const uint8_t *planes[3], size_t step, size_t n);
} co_image_loops;

extern const co_image_loops co_image_loops_basic;
extern const co_image_loops co_image_loops_avx2;
extern const co_image_loops co_image_loops_avx512;
#define CO_IMAGE_MAX_LOOPS 3
/* Those that this machine can run, the fastest last. */
size_t co_image_loops_list(const co_image_loops *out[CO_IMAGE_MAX_LOOPS]);

/* Resamples an image whose rows come one by one, the top one first. */
typedef struct co_image_scaler {
    const co_image_loops *loops;
    co_image_filter column, row;
    size_t lanes;           /* bytes of a source pixel: 1, or 4 of which the last is ignored */
    size_t stride;          /* of a plane's row in `rows`, bytes */
    size_t come;            /* rows so far */
    size_t done;            /* rows of the result so far */
    size_t need, strip_end; /* rows that have to come for those up to strip_end */
    const co_image_want *want;
    void *out;
    co_image_block rows;  /* (row.end - row.low, planes, stride) */
    co_image_block strip; /* rows of one plane of the result, on their way to floats */
} co_image_scaler;

/* Begin an image of width x height pixels of `lanes` bytes, where `box` is wanted. Rows row.low to
   row.end, exclusive, are to come then, each from column.low on; with the last one `out` is
   complete. */
co_status co_image_scaler_begin(co_image_scaler *s, void *out, const co_image_want *want,
                                const co_image_box *box, size_t width, size_t height, size_t lanes);
/* `pixels`: CO_IMAGE_ROW_PAD bytes after its last pixel can be read. */
void co_image_scaler_row(co_image_scaler *s, const uint8_t *pixels);
/* The same of a row for each plane, one or three. */
void co_image_scaler_planes(co_image_scaler *s, const uint8_t *const row[3]);
/* Whether this is faster than putting pixels together. */
bool co_image_scaler_likes_planes(const co_image_scaler *s);
void co_image_scaler_close(co_image_scaler *s);

/* Rows of 4-byte pixels, in place. */
void co_image_cmyk_to_rgb(uint8_t *row, size_t n); /* inverted, as Adobe's programs write it */
void co_image_rgb_to_grey(uint8_t *row, size_t n); /* to 1-byte pixels */

/* What a format's decoder gets. */
typedef struct co_image_job {
    void *out;
    const co_image_want *want;
    const uint8_t *bytes;
    size_t n;
    const char *name;
    co_image_scaler *scaler;
    co_image_block *rows; /* for decoded rows */
} co_image_job;

/* A JPEG decoder, kept from image to image. */
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
