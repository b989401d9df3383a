/*
 * test_image.c - decoding: decoding a part equals that part of the whole image, and damage is
 * always detected.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jpeglib.h>

#include "core/mem.h"
#include "draws.h"
#include "image/internal.h"
#include "pictures.h"

#define NAME "picture.jpg"

static co_image_scratch *scratch;

static int create_scratch(void **state)
{
    (void)state;
    return co_image_scratch_create(&scratch) == CO_OK ? 0 : -1;
}

static int destroy_scratch(void **state)
{
    (void)state;
    co_image_scratch_destroy(scratch);
    return 0;
}

static uint8_t *decode(const uint8_t *file, size_t size, const co_image_want *want)
{
    uint8_t *out = calloc((size_t)(want->channels * want->height * want->width), 1);

    assert_non_null(out);
    if (co_image_decode(out, want, scratch, file, size, NAME) != CO_OK)
        fail_msg("%s", co_error_message());
    return out;
}

/* The whole image, decoded by libjpeg alone: (height, width, components). */
static uint8_t *reference_jpeg(int *width, int *height, const uint8_t *file, size_t size,
                               unsigned scale, J_COLOR_SPACE colour)
{
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr error;
    uint8_t *out;
    size_t row;

    jpeg.err = jpeg_std_error(&error);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, file, size);
    jpeg_read_header(&jpeg, TRUE);
    jpeg.out_color_space = colour;
    jpeg.scale_num = scale;
    jpeg.scale_denom = 8;
    jpeg_start_decompress(&jpeg);
    *width = (int)jpeg.output_width;
    *height = (int)jpeg.output_height;
    row = (size_t)jpeg.output_width * (size_t)jpeg.output_components;
    out = malloc(row * jpeg.output_height);
    assert_non_null(out);
    while (jpeg.output_scanline < jpeg.output_height) {
        uint8_t *at = out + jpeg.output_scanline * row;

        jpeg_read_scanlines(&jpeg, &at, 1);
    }
    jpeg_finish_decompress(&jpeg);
    jpeg_destroy_decompress(&jpeg);
    return out;
}

static void check_part(const uint8_t *file, size_t size, const co_image_want *want,
                       const uint8_t *whole, int width, unsigned scale)
{
    uint8_t *part = decode(file, size, want);
    const int x0 = (int)(want->box.x * scale / 8), y0 = (int)(want->box.y * scale / 8);

    for (int64_t c = 0; c < 3; c++)
        for (int64_t y = 0; y < want->height; y++)
            for (int64_t x = 0; x < want->width; x++) {
                const uint8_t got = part[(c * want->height + y) * want->width + x];
                const uint8_t expected = whole[((y0 + y) * width + x0 + x) * 3 + c];

                if (got != expected)
                    fail_msg("scale %u/8, box %gx%g at (%g, %g): channel %d of (%d, %d) is %u, "
                             "expected %u",
                             scale, want->box.width, want->box.height, want->box.x, want->box.y,
                             (int)c, (int)x, (int)y, got, expected);
            }
    free(part);
}

static void jpeg_part_equals_part_of_whole(void **state)
{
    static const int factors[][2] = {{1, 1}, {2, 1}, {2, 2}, {4, 1}, {1, 2}};

    (void)state;
    for (size_t f = 0; f < 10; f++) {
        const picture p = {.width = 203,
                           .height = 161,
                           .channels = 3,
                           .h = factors[f % 5][0],
                           .v = factors[f % 5][1],
                           .progressive = f >= 5};
        size_t size;
        uint8_t *file = picture_jpeg(&size, &p);

        for (unsigned scale = 8; scale >= 1; scale /= 2) {
            const int unit = 8 / (int)scale;
            int width, height;
            uint8_t *whole = reference_jpeg(&width, &height, file, size, scale, JCS_RGB);

            for (int k = 0; k < 30; k++) {
                const int w = 1 + draw_below(p.width / unit), h = 1 + draw_below(p.height / unit);
                const int x = draw_below(p.width / unit - w + 1),
                          y = draw_below(p.height / unit - h + 1);
                const co_image_box box = {x * unit, y * unit, w * unit, h * unit};
                const co_image_want want = {box, 3, h, w, false, NULL, false, true};

                check_part(file, size, &want, whole, width, scale);
            }
            free(whole);
        }
        free(file);
    }
}

/* For any layout of pixels in memory, resampled or copied. */
static void resample_strided_output_equals_dense(void **state)
{
    enum { H = 21, W = 45, N = H * W };
    static uint8_t in[N * 3], planar[3 * N], out[2][3 * N];
    static const co_image_want wants[] = {
        {{0.5, 1, 40, 19.5}, 3, 11, 39, false, NULL, false, false},
        {{2, 3, 41, 15}, 3, 15, 41, false, NULL, false, false}};
    const co_pixels interleaved = {in, 1, W * 3, 3, 3, H, W}, planes = {planar, N, W, 1, 3, H, W};

    (void)state;
    for (size_t i = 0; i < sizeof(in); i++) {
        in[i] = (uint8_t)(i * 37 + i / 91);
        planar[i % 3 * N + i / 3] = in[i];
    }
    for (size_t k = 0; k < 2; k++) {
        const size_t n = (size_t)(wants[k].height * wants[k].width);

        assert_int_equal(co_image_resample(out[0], &wants[k], &interleaved, scratch), CO_OK);
        assert_int_equal(co_image_resample(out[1], &wants[k], &planes, scratch), CO_OK);
        assert_memory_equal(out[0], out[1], 3 * n);
        for (int64_t c = 0; c < 3; c++) { /* each channel as if it were the only one */
            const co_pixels one = {planar + c * N, N, W, 1, 1, H, W};
            co_image_want grey = wants[k];

            grey.channels = 1;
            assert_int_equal(co_image_resample(out[1], &grey, &one, scratch), CO_OK);
            assert_memory_equal(out[0] + (size_t)c * n, out[1], n);
        }
    }
    {
        const co_pixels two = {planar + N, N, W, 1, 2, H, W}; /* any number of channels */
        co_image_want want = wants[1];

        want.channels = 2;
        assert_int_equal(co_image_resample(out[1], &want, &two, scratch), CO_OK);
        assert_memory_equal(out[0] + 15 * 41, out[1], 2 * 15 * 41);
    }
    for (size_t y = 0; y < 15; y++) /* the second is not resized */
        assert_memory_equal(out[0] + y * 41, planar + (y + 3) * W + 2, 41);
}

/* Grey, CMYK and YCCK convert to colour, and colour to grey. */
static void jpeg_color_spaces_are_converted(void **state)
{
    const picture grey = {.width = 40, .height = 30, .channels = 1};
    const picture cmyk = {.width = 40, .height = 30, .channels = 4};
    picture ycck = cmyk;
    co_image_want want = {{0, 0, 40, 30}, 3, 30, 40, false, NULL, false, false};
    size_t size;
    uint8_t *file = picture_jpeg(&size, &grey), *out = decode(file, size, &want), *raw;
    int width, height;

    (void)state;
    raw = reference_jpeg(&width, &height, file, size, 8, JCS_GRAYSCALE);
    for (size_t c = 0; c < 3; c++)
        assert_memory_equal(out + c * 1200, raw, 1200);
    free(raw);
    free(out);
    free(file);
    ycck.ycck = true;
    for (int k = 0; k < 2; k++) {
        file = picture_jpeg(&size, k ? &ycck : &cmyk);
        out = decode(file, size, &want);
        raw = reference_jpeg(&width, &height, file, size, 8, JCS_CMYK);
        for (size_t i = 0; i < 3600; i++) { /* stored inverted: ink * black / 255 */
            const size_t channel = i / 1200;
            const uint8_t *pixel = raw + i % 1200 * 4;
            const double value = pixel[channel] * pixel[3] / 255.0;

            assert_int_in_range(out[i], (unsigned)value, (unsigned)ceil(value));
        }
        free(raw);
        free(out);
        want.channels = 1;
        free(decode(file, size, &want));
        want.channels = 3;
        free(file);
    }
}

static void image_color_to_grey_is_luma(void **state)
{
    const picture p = {.width = 40, .height = 30, .channels = 3};
    const co_image_want want = {{0, 0, 40, 30}, 1, 30, 40, false, NULL, false, false};
    size_t size;
    uint8_t *file = picture_png(&size, &p), *out = decode(file, size, &want);

    (void)state;
    for (int i = 0; i < 1200; i++) {
        const double luma = 0.299 * picture_pixel(&p, 0, i / 40, i % 40) +
                            0.587 * picture_pixel(&p, 1, i / 40, i % 40) +
                            0.114 * picture_pixel(&p, 2, i / 40, i % 40);

        assert_true(fabs(out[i] - luma) <= 0.51);
    }
    free(out);
    free(file);
}

static void png_every_kind_is_decoded(void **state)
{
    static const picture kinds[] = {
        {.width = 33, .height = 21, .channels = 1},
        {.width = 33, .height = 21, .channels = 2},
        {.width = 33, .height = 21, .channels = 3},
        {.width = 33, .height = 21, .channels = 4},
        {.width = 33, .height = 21, .channels = 3, .depth = 16},
        {.width = 33, .height = 21, .channels = 1, .depth = 16},
        {.width = 33, .height = 21, .channels = 3, .interlaced = true},
        {.width = 33, .height = 21, .channels = 1, .palette = true},
        {.width = 33, .height = 21, .channels = 1, .palette = true, .interlaced = true},
    };
    const co_image_want want = {{5, 3, 20, 15}, 3, 15, 20, false, NULL, false, false};

    (void)state;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        const picture *p = &kinds[k];
        size_t size;
        uint8_t *file = picture_png(&size, p), *out = decode(file, size, &want);

        for (int i = 0; i < 3 * 15 * 20; i++) {
            const int c = i / 300, y = 3 + i % 300 / 20, x = 5 + i % 20;
            uint8_t expected = picture_pixel(p, p->channels < 3 ? 0 : c, y, x);

            if (p->palette)
                expected = (uint8_t)(c == 0 ? expected : c == 1 ? 255 - expected : expected / 2);
            if (out[i] != expected)
                fail_msg("kind %zu: element %d is %u, expected %u", k, i, out[i], expected);
        }
        free(out);
        free(file);
    }
}

static void image_probe_gives_kind_and_size(void **state)
{
    const picture p = {.width = 300, .height = 200, .channels = 3, .h = 2, .v = 2};
    co_image_info info;
    size_t size;
    uint8_t *file = picture_jpeg(&size, &p);

    (void)state;
    assert_int_equal(co_image_probe(&info, file, size, NAME), CO_OK);
    assert_int_equal(info.kind, CO_IMAGE_JPEG);
    assert_int_equal(info.width, 300);
    assert_int_equal(info.height, 200);
    assert_int_equal(info.channels, 3);
    for (size_t n = 0; n < 100; n++)
        assert_int_equal(co_image_probe(&info, file, n, NAME), CO_E_DATA);
    free(file);
    file = picture_png(&size, &p);
    assert_int_equal(co_image_probe(&info, file, size, NAME), CO_OK);
    assert_int_equal(info.kind, CO_IMAGE_PNG);
    assert_int_equal(info.width, 300);
    assert_int_equal(info.height, 200);
    for (size_t n = 0; n < 33; n++)
        assert_int_equal(co_image_probe(&info, file, n, NAME), CO_E_DATA);
    free(file);
}

/* Markers without a length, which the decoder passes over: what follows is no length of theirs. */
static void image_probe_passes_over_lone_markers(void **state)
{
    static const uint8_t lone[] = {0xff, 0x01, 0xff, 0xd3};
    const picture p = {.width = 30, .height = 20, .channels = 3};
    uint8_t *file, more[8192];
    co_image_info info;
    size_t size;

    (void)state;
    file = picture_jpeg(&size, &p);
    assert_true(size + sizeof(lone) <= sizeof(more));
    memcpy(more, file, 2);
    memcpy(more + 2, lone, sizeof(lone));
    memcpy(more + 2 + sizeof(lone), file + 2, size - 2);
    assert_int_equal(co_image_probe(&info, more, size + sizeof(lone), NAME), CO_OK);
    assert_int_equal(info.width, 30);
    assert_int_equal(info.height, 20);
    free(file);
}

static void refuse(const uint8_t *file, size_t size, const char *word)
{
    const co_image_want want = {{0, 0, 64, 48}, 3, 48, 64, false, NULL, false, false};
    static uint8_t out[3 * 48 * 64];

    assert_int_equal(co_image_decode(out, &want, scratch, file, size, NAME), CO_E_DATA);
    if (strncmp(co_error_message(), NAME ": ", strlen(NAME) + 2) != 0 ||
        !strstr(co_error_message(), word))
        fail_msg("'%s' does not name " NAME " and '%s'", co_error_message(), word);
}

static void image_truncated_file_is_refused(void **state)
{
    picture p = {.width = 64, .height = 48, .channels = 3, .h = 2, .v = 2};

    (void)state;
    for (int k = 0; k < 3; k++) {
        size_t size;
        uint8_t *file;

        p.progressive = k == 1;
        file = k < 2 ? picture_jpeg(&size, &p) : picture_png(&size, &p);
        for (size_t n = 0; n + 24 < size; n += 7) {
            uint8_t *copy = malloc(n ? n : 1); /* exact size, so that reads past its end are
                                                  detected */

            assert_non_null(copy);
            memcpy(copy, file, n);
            refuse(copy, n, "");
            free(copy);
        }
        free(file);
    }
}

static void image_damaged_file_is_refused(void **state)
{
    const picture p = {.width = 64, .height = 48, .channels = 3};
    uint8_t text[] = "<!DOCTYPE html><html>", *file;
    size_t size;

    (void)state;
    refuse(text, sizeof(text), "neither JPEG nor PNG");
    refuse(text, 3, "too few");
    file = picture_jpeg(&size, &p);
    file[size / 2] = 0xff; /* a marker within the data */
    file[size / 2 + 1] = 0xd9;
    refuse(file, size, "cut short or damaged");
    free(file);
    file = picture_png(&size, &p);
    file[size / 2] ^= 0x10;
    refuse(file, size, "damaged");
    free(file);
}

static void image_decompression_bomb_is_refused(void **state)
{
    const picture p = {.width = 64, .height = 48, .channels = 3};
    const picture many = {.width = 64, .height = 48, .channels = 1, .one_scan = true};
    size_t size, scan, n;
    uint8_t *file = picture_png(&size, &p), *bomb;

    (void)state;
    memset(file + 16, 0, 8); /* 65535 x 65535 */
    file[18] = file[19] = file[22] = file[23] = 0xff;
    refuse(file, size, "pixels");
    free(file);
    file = picture_jpeg(&size, &p);
    for (n = 0; !(file[n] == 0xff && file[n + 1] == 0xc0); n++)
        ;
    memset(file + n + 5, 0xf0, 4);
    refuse(file, size, "61680 x 61680");
    free(file);

    /* repeat a scan some hundred times */
    file = picture_jpeg(&size, &many);
    for (scan = size - 2; !(file[scan] == 0xff && file[scan + 1] == 0xda); scan--)
        ;
    bomb = malloc(size + 200 * (size - 2 - scan));
    assert_non_null(bomb);
    memcpy(bomb, file, size - 2);
    n = size - 2;
    for (int k = 0; k < 200; k++, n += size - 2 - scan)
        memcpy(bomb + n, file + scan, size - 2 - scan);
    memcpy(bomb + n, file + size - 2, 2);
    refuse(bomb, n + 2, "scans");
    free(bomb);
    free(file);
}

/* Bytes after the image data are harmless, as in some files of ImageNet. */
static void image_trailing_bytes_are_ignored(void **state)
{
    const picture p = {.width = 64, .height = 48, .channels = 3};
    const co_image_want want = {{0, 0, 64, 48}, 3, 48, 64, false, NULL, false, false};
    size_t size;
    uint8_t *file = picture_jpeg(&size, &p), *more = calloc(size + 100, 1);

    (void)state;
    assert_non_null(more);
    memcpy(more, file, size);
    free(decode(more, size + 100, &want));
    free(decode(file, size - 2, &want)); /* without the end marker */
    free(more);
    free(file);
}

static void image_box_outside_is_refused(void **state)
{
    const picture p = {.width = 64, .height = 48, .channels = 3};
    static const co_image_box boxes[] = {{0, 0, 65, 48}, {-1, 0, 10, 10}, {0, 0, 0, 10},
                                         {60, 0, 5, 5},  {0, 40, 5, 9},   {NAN, 0, 5, 5}};
    size_t size;
    uint8_t *file = picture_jpeg(&size, &p), out[300];

    (void)state;
    for (size_t k = 0; k < sizeof(boxes) / sizeof(boxes[0]); k++) {
        const co_image_want want = {boxes[k], 3, 10, 10, false, NULL, false, false};

        assert_int_equal(co_image_decode(out, &want, scratch, file, size, NAME), CO_E_USAGE);
    }
    free(file);
}

static void image_failed_allocation_is_an_error(void **state)
{
    const picture p = {.width = 64, .height = 48, .channels = 3};
    const co_image_want want = {{1, 1, 60, 40}, 3, 30, 50, false, NULL, false, false};
    static uint8_t out[3 * 30 * 50];
    size_t size;
    uint8_t *file[2] = {picture_jpeg(&size, &p), NULL};
    size_t sizes[2] = {size, 0};

    (void)state;
    file[1] = picture_png(&sizes[1], &p);
    for (int kind = 0; kind < 2; kind++)
        for (uint64_t k = 1;; k++) {
            co_image_scratch *fresh = NULL;
            co_status st;

            co_mem_fail_at(k);
            st = co_image_scratch_create(&fresh);
            if (st == CO_OK)
                st = co_image_decode(out, &want, fresh, file[kind], sizes[kind], NAME);
            co_mem_fail_at(0);
            co_image_scratch_destroy(fresh);
            if (st == CO_OK)
                break;
            assert_int_equal(st, CO_E_NOMEM);
            assert_true(k < 50);
        }
    free(file[0]);
    free(file[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jpeg_part_equals_part_of_whole),
        cmocka_unit_test(resample_strided_output_equals_dense),
        cmocka_unit_test(jpeg_color_spaces_are_converted),
        cmocka_unit_test(image_color_to_grey_is_luma),
        cmocka_unit_test(png_every_kind_is_decoded),
        cmocka_unit_test(image_probe_gives_kind_and_size),
        cmocka_unit_test(image_probe_passes_over_lone_markers),
        cmocka_unit_test(image_truncated_file_is_refused),
        cmocka_unit_test(image_damaged_file_is_refused),
        cmocka_unit_test(image_decompression_bomb_is_refused),
        cmocka_unit_test(image_trailing_bytes_are_ignored),
        cmocka_unit_test(image_box_outside_is_refused),
        cmocka_unit_test(image_failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, create_scratch, destroy_scratch);
}
