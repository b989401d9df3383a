/*
 * jpeg.c - decode JPEG files, with libjpeg-turbo: only the wanted part and, if allowed, at the
 * smallest scale that has enough pixels.
 *
 * libjpeg reports errors by longjmp. Only image_jpeg_guard calls setjmp, and it owns nothing; what
 * runs under it keeps its state in the decoder, and allocates nothing itself.
 */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "core/mem.h"
#include "image/internal.h"

#define JPEG_ROWS   4 /* rows decoded at a time */
#define JPEG_ASKEW  4 /* bytes from an aligned address */
#define JPEG_MARKER 0xff
#define JPEG_SOF    0xc0
#define JPEG_SCAN   0xda
#define JPEG_END    0xd9
#define JPEG_TEM    0x01 /* for private use in arithmetic coding: no length follows, */
#define JPEG_RST    0xd0 /* nor after the eight marks of a restart */
#define JPEG_FULL   8    /* full scale, in eighths */
/* Chroma is interpolated between neighbours, so a cropped edge needs one more chroma column. */
#define JPEG_NEIGHBOUR 2

struct co_image_jpeg {
    struct jpeg_decompress_struct lib;
    struct jpeg_error_mgr error;
    struct jpeg_progress_mgr progress;
    jmp_buf failed;
    bool created, too_many_scans;
    const co_image_job *job; /* of the current image */
    uint8_t *row[JPEG_ROWS]; /* into job->rows */
    size_t skip;             /* bytes of a row before the first wanted pixel */
};

static void image_jpeg_fail(j_common_ptr lib)
{
    co_image_jpeg *jpeg = lib->client_data;

    longjmp(jpeg->failed, 1);
}

/* Whether a warning means damage. Extra data after the last scan is harmless, and so is a
   missing end marker if no other scan can be missing: missing data within a scan has a warning
   of its own. */
static bool image_jpeg_is_damage(const struct jpeg_decompress_struct *lib)
{
    switch (lib->err->msg_code) {
    case JWRN_JFIF_MAJOR:
    case JWRN_ADOBE_XFORM:
        return false;
    case JWRN_EXTRANEOUS_DATA:
        return lib->err->msg_parm.i[1] != JPEG_END;
    case JWRN_JPEG_EOF:
        return lib->progressive_mode || lib->arith_code ||
               lib->comps_in_scan != lib->num_components;
    default:
        return true;
    }
}

static void image_jpeg_message(j_common_ptr lib, int level)
{
    co_image_jpeg *jpeg = lib->client_data;

    if (level < 0 && image_jpeg_is_damage(&jpeg->lib))
        image_jpeg_fail(lib);
}

static void image_jpeg_say(j_common_ptr lib)
{
    (void)lib; /* only the last message counts, and image_jpeg_status fetches it */
}

/* Limit the scans: a few bytes can contain one of the whole image. */
static void image_jpeg_count_scans(j_common_ptr lib)
{
    co_image_jpeg *jpeg = lib->client_data;

    if (jpeg->lib.input_scan_number > CO_IMAGE_MAX_SCANS) {
        jpeg->too_many_scans = true;
        image_jpeg_fail(lib);
    }
}

static bool image_jpeg_guard(co_image_jpeg *jpeg, void (*run)(co_image_jpeg *))
{
    if (setjmp(jpeg->failed) != 0)
        return false;
    run(jpeg);
    return true;
}

/* The error for which image_jpeg_guard has returned false. */
static co_status image_jpeg_status(co_image_jpeg *jpeg, const char *name)
{
    char message[JMSG_LENGTH_MAX] = "";

    if (jpeg->too_many_scans)
        return co_fail(CO_E_DATA, "%s: more than %d scans; save it again", name,
                       CO_IMAGE_MAX_SCANS);
    jpeg->error.format_message((j_common_ptr)&jpeg->lib, message);
    switch (jpeg->error.msg_code) {
    case JERR_OUT_OF_MEMORY:
        return co_fail(CO_E_NOMEM, "%s: out of memory", name);
    case JERR_NO_BACKING_STORE:
        return co_fail(CO_E_DATA, "%s: takes more than %zu MiB to decode; store it smaller", name,
                       CO_IMAGE_MAX_MEMORY >> 20);
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JERR_INPUT_EOF:
    case JERR_INPUT_EMPTY:
        return co_fail(CO_E_DATA, "%s: a JPEG that is cut short or damaged (%s)", name, message);
    default:
        return co_fail(CO_E_DATA, "%s: a JPEG that is damaged or of an unknown kind (%s)", name,
                       message);
    }
}

static void image_jpeg_start(co_image_jpeg *jpeg)
{
    jpeg_create_decompress(&jpeg->lib);
    jpeg->lib.client_data = jpeg;
    jpeg->lib.progress = &jpeg->progress;
    jpeg->lib.mem->max_memory_to_use = (long)CO_IMAGE_MAX_MEMORY;
}

co_status co_image_jpeg_create(co_image_jpeg **out)
{
    co_image_jpeg *jpeg = co_calloc(1, sizeof(*jpeg));

    if (!jpeg)
        return CO_E_NOMEM;
    jpeg->lib.err = jpeg_std_error(&jpeg->error);
    jpeg->error.error_exit = image_jpeg_fail;
    jpeg->error.emit_message = image_jpeg_message;
    jpeg->error.output_message = image_jpeg_say;
    jpeg->progress.progress_monitor = image_jpeg_count_scans;
    jpeg->lib.client_data = jpeg;
    if (!image_jpeg_guard(jpeg, image_jpeg_start)) {
        co_free(jpeg);
        return co_fail(CO_E_NOMEM, "out of memory");
    }
    *out = jpeg;
    return CO_OK;
}

void co_image_jpeg_destroy(co_image_jpeg *jpeg)
{
    if (!jpeg)
        return;
    jpeg_destroy_decompress(&jpeg->lib);
    co_free(jpeg);
}

/* Start-of-frame markers are c0 to cf without those of tables (c4, c8, cc). */
static bool image_jpeg_is_frame(uint8_t marker)
{
    return (marker & 0xf0) == JPEG_SOF && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

co_status co_image_jpeg_probe(co_image_info *out, const uint8_t *bytes, size_t n, const char *name)
{
    size_t at = 2;

    /* Each marker segment: ff, marker, a length of two bytes that counts itself. */
    while (at + 4 <= n && bytes[at] == JPEG_MARKER) {
        const uint8_t marker = bytes[at + 1];
        const size_t length = (size_t)bytes[at + 2] << 8 | bytes[at + 3];

        if (marker == JPEG_MARKER) { /* padding */
            at++;
            continue;
        }
        if (marker == JPEG_TEM || (marker & 0xf8) == JPEG_RST) {
            at += 2;
            continue;
        }
        if (image_jpeg_is_frame(marker) && length >= 8 && at + 10 <= n) {
            out->kind = CO_IMAGE_JPEG;
            out->height = (uint32_t)bytes[at + 5] << 8 | bytes[at + 6];
            out->width = (uint32_t)bytes[at + 7] << 8 | bytes[at + 8];
            out->channels = bytes[at + 9];
            return co_image_check_size(out->width, out->height, name);
        }
        if (image_jpeg_is_frame(marker) || marker == JPEG_SCAN || marker == JPEG_END || length < 2)
            break;
        at += 2 + length;
    }
    return co_fail(CO_E_DATA, "%s: a JPEG that is cut short or damaged within its header", name);
}

static void image_jpeg_read_head(co_image_jpeg *jpeg)
{
    const co_image_job *job = jpeg->job;

    jpeg_mem_src(&jpeg->lib, job->bytes, (unsigned long)job->n);
    (void)jpeg_read_header(&jpeg->lib, TRUE);
}

/* The smallest scale that leaves enough pixels: decoding fewer is faster than reducing more. The
   library has vector code for 1/2, 1/4 and 1/8; scales between them are slower than full scale. */
static unsigned image_jpeg_choose_scale(const co_image_want *want)
{
    unsigned scale = JPEG_FULL;

    while (want->scaled && scale > 1 &&
           want->box.width * 0.5 * scale >= (double)want->width * JPEG_FULL &&
           want->box.height * 0.5 * scale >= (double)want->height * JPEG_FULL)
        scale /= 2;
    return scale;
}

/* Choose the colours to decode to; returns the bytes of a pixel: RGBX or CMYK 4, grey 1. */
static size_t image_jpeg_choose_colour(struct jpeg_decompress_struct *lib,
                                       const co_image_want *want)
{
    switch (lib->jpeg_color_space) {
    case JCS_CMYK:
    case JCS_YCCK:
        lib->out_color_space = JCS_CMYK;
        return 4;
    case JCS_GRAYSCALE:
        lib->out_color_space = JCS_GRAYSCALE;
        return 1;
    default:
        lib->out_color_space = want->channels == 1 ? JCS_GRAYSCALE : JCS_EXT_RGBX;
        return want->channels == 1 ? 1 : 4;
    }
}

/* The library writes aligned rows with non-temporal stores, but they are read right away: keep them
   unaligned. */
static co_status image_jpeg_make_rows(co_image_jpeg *jpeg, size_t width, size_t lanes)
{
    const size_t step = (width * lanes + 2 * CO_IMAGE_ROW_PAD) / CO_IMAGE_ROW_PAD;

    CO_TRY(co_image_reserve(jpeg->job->rows, JPEG_ROWS * step + 1, CO_IMAGE_ROW_PAD));
    for (size_t i = 0; i < JPEG_ROWS; i++)
        jpeg->row[i] = (uint8_t *)jpeg->job->rows->at + i * step * CO_IMAGE_ROW_PAD + JPEG_ASKEW;
    return CO_OK;
}

static co_status image_jpeg_prepare(co_image_jpeg *jpeg)
{
    struct jpeg_decompress_struct *lib = &jpeg->lib;
    const co_image_want *want = jpeg->job->want;
    const unsigned scale = image_jpeg_choose_scale(want);
    const double part = (double)scale / JPEG_FULL;
    const co_image_box box = {want->box.x * part, want->box.y * part, want->box.width * part,
                              want->box.height * part};
    const size_t lanes = image_jpeg_choose_colour(lib, want);
    const size_t width = ((size_t)lib->image_width * scale + JPEG_FULL - 1) / JPEG_FULL;
    const size_t height = ((size_t)lib->image_height * scale + JPEG_FULL - 1) / JPEG_FULL;
    const bool grey = lanes == 4 && want->channels == 1;

    lib->scale_num = scale;
    lib->scale_denom = JPEG_FULL;
    CO_TRY(image_jpeg_make_rows(jpeg, width, lanes));
    return co_image_scaler_begin(jpeg->job->scaler, jpeg->job->out, want, &box, width, height,
                                 grey ? 1 : lanes);
}

/* Crop the columns that are not wanted, as far as whole blocks allow. */
static void image_jpeg_cut_columns(co_image_jpeg *jpeg)
{
    struct jpeg_decompress_struct *lib = &jpeg->lib;
    const co_image_filter *column = &jpeg->job->scaler->column;
    const size_t lanes = (size_t)lib->output_components;
    const size_t low = column->low > JPEG_NEIGHBOUR ? column->low - JPEG_NEIGHBOUR : 0;
    const size_t end = column->end + JPEG_NEIGHBOUR;
    JDIMENSION left = (JDIMENSION)low;
    JDIMENSION width = (JDIMENSION)(end < lib->output_width ? end : lib->output_width) - left;

    if (width < lib->output_width)
        jpeg_crop_scanline(lib, &left, &width);
    jpeg->skip = (column->low - left) * lanes;
}

static void image_jpeg_take(co_image_jpeg *jpeg, uint8_t *row)
{
    co_image_scaler *scaler = jpeg->job->scaler;
    const size_t n = scaler->column.end - scaler->column.low;

    if (jpeg->lib.out_color_space == JCS_CMYK) {
        co_image_cmyk_to_rgb(row, n);
        if (scaler->lanes == 1)
            co_image_rgb_to_grey(row, n);
    }
    co_image_scaler_row(scaler, row);
}

static void image_jpeg_read_rows(co_image_jpeg *jpeg)
{
    struct jpeg_decompress_struct *lib = &jpeg->lib;
    const co_image_filter *row = &jpeg->job->scaler->row;

    (void)jpeg_start_decompress(lib);
    image_jpeg_cut_columns(jpeg);
    if (row->low > 0)
        (void)jpeg_skip_scanlines(lib, (JDIMENSION)row->low);
    while (lib->output_scanline < row->end) {
        const size_t left = row->end - lib->output_scanline;
        const JDIMENSION most = (JDIMENSION)(left < JPEG_ROWS ? left : JPEG_ROWS);
        const JDIMENSION n = jpeg_read_scanlines(lib, jpeg->row, most);

        for (JDIMENSION i = 0; i < n; i++)
            image_jpeg_take(jpeg, jpeg->row[i] + jpeg->skip);
    }
}

static co_status image_jpeg_decode(co_image_jpeg *jpeg, const char *name)
{
    if (!image_jpeg_guard(jpeg, image_jpeg_read_head))
        return image_jpeg_status(jpeg, name);
    CO_TRY(co_image_check_size(jpeg->lib.image_width, jpeg->lib.image_height, name));
    CO_TRY(image_jpeg_prepare(jpeg));
    return image_jpeg_guard(jpeg, image_jpeg_read_rows) ? CO_OK : image_jpeg_status(jpeg, name);
}

co_status co_image_jpeg_decode(co_image_jpeg *jpeg, const co_image_job *job)
{
    co_status st;

    jpeg->job = job;
    jpeg->too_many_scans = false;
    st = image_jpeg_decode(jpeg, job->name);
    jpeg_abort_decompress(&jpeg->lib); /* keeps the decoder for the next image */
    jpeg->job = NULL;
    return st;
}
