/*
 * test_decoded.c - the scale at which large JPEGs are decoded: the test split at full size, the
 * training split by `scaled_decode`, and packed pixels likewise. Expected values come from libjpeg
 * alone and our resampling.
 */
#include <stdio.h>
#include <stdlib.h>

#include "folder.h"

#include <jpeglib.h>

#include <cohort/data.h>

#include "core/fs.h"
#include "core/mem.h"
#include "data/data.h"
#include "data/pack_convert.h"
#include "image/resize_crop.h"
#include "pictures.h"

enum { SIDE = 40, SAMPLE = 3 * SIDE * SIDE, FULL = 8 };

/* The shorter side is at least 5 times SIDE, except for the last two: 1.5 times and twice. */
static const picture pictures[] = {
    {.width = 403, .height = 301, .channels = 3, .h = 2, .v = 2, .seed = 1},
    {.width = 211, .height = 333, .channels = 3, .h = 1, .v = 1, .seed = 2},
    {.width = 350, .height = 270, .channels = 3, .h = 2, .v = 1, .seed = 3},
    {.width = 403, .height = 301, .channels = 3, .h = 2, .v = 2, .progressive = true, .seed = 4},
    {.width = 300, .height = 220, .channels = 1, .seed = 5},
    {.width = 60, .height = 75, .channels = 3, .h = 2, .v = 2, .seed = 6},
    {.width = 90, .height = 80, .channels = 3, .h = 2, .v = 2, .seed = 7},
};
#define PICTURES (sizeof(pictures) / sizeof(pictures[0]))

/* The scale of each in eighths, if reduced scales are allowed. */
static const unsigned reduced[PICTURES] = {2, 2, 2, 2, 2, 8, 4};

static int make(void **state)
{
    if (folder_make(state) != 0)
        return -1;
    for (int split = 0; split < 2; split++) {
        const char *const folders[] = {"train/a", "val/a"};

        if (co_fs_mkdirs(folder_path(folders[split])) != CO_OK)
            return -1;
        for (size_t i = 0; i < PICTURES; i++) {
            char name[32];
            size_t size;
            uint8_t *bytes = picture_jpeg(&size, &pictures[i]);
            FILE *file;

            snprintf(name, sizeof(name), "%s/%zu.jpg", folders[split], i);
            file = fopen(folder_path(name), "wb");
            if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
                return -1;
            free(bytes);
        }
    }
    return 0;
}

static co_dataset *open_set(const char *more, co_split split)
{
    co_dataset *data = NULL;
    char text[256];

    snprintf(text, sizeof(text), "{name: imagefolder, path: %s, resize: %d%s}", folder, SIDE, more);
    if (co_dataset_open(&data, text, split) != CO_OK)
        fail_msg("%s", co_error_message());
    return data;
}

/* Decode all of picture i with libjpeg at `scale` eighths: (height, width, channels). */
static uint8_t *decode_whole(int *width, int *height, size_t i, unsigned scale)
{
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr error;
    size_t size, row;
    uint8_t *file = picture_jpeg(&size, &pictures[i]), *out;

    jpeg.err = jpeg_std_error(&error);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, file, size);
    jpeg_read_header(&jpeg, TRUE);
    jpeg.out_color_space = pictures[i].channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg.scale_num = scale;
    jpeg.scale_denom = FULL;
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
    free(file);
    return out;
}

/* The resampled middle square of the image at that scale; grey is repeated. */
static void expect(uint8_t out[SAMPLE], size_t i, unsigned scale)
{
    const picture *p = &pictures[i];
    const int64_t side = SIDE, channels = p->channels;
    const double part = (double)scale / FULL;
    const co_shape shape = {3, {channels, p->height, p->width}};
    co_frame frame = {.resize = {1, &side}};
    co_image_want want = {.channels = channels, .height = SIDE, .width = SIDE};
    co_image_scratch *scratch = NULL;
    int width, height;
    uint8_t *whole = decode_whole(&width, &height, i, scale);
    const co_pixels pixels = {.at = whole,
                              .plane = 1,
                              .row = (size_t)(width * channels),
                              .column = (size_t)channels,
                              .channels = channels,
                              .height = height,
                              .width = width};

    assert_int_equal(co_frame_setup(&frame, &shape), CO_OK);
    assert_int_equal(co_frame_box(&want.box, &frame, p->height, p->width, "picture"), CO_OK);
    want.box = (co_image_box){want.box.x * part, want.box.y * part, want.box.width * part,
                              want.box.height * part};
    assert_int_equal(co_image_scratch_create(&scratch), CO_OK);
    assert_int_equal(co_image_resample(out, &want, &pixels, scratch), CO_OK);
    for (int64_t c = channels; c < 3; c++)
        memcpy(out + c * SIDE * SIDE, out, SIDE * SIDE);
    co_image_scratch_destroy(scratch);
    free(whole);
}

static void check(const char *more, co_split split, bool scaled)
{
    co_dataset *data = open_set(more, split);

    assert_int_equal(co_dataset_count(data), PICTURES);
    for (size_t i = 0; i < PICTURES; i++) {
        uint8_t wanted[SAMPLE];
        float sample[SAMPLE];

        expect(wanted, i, scaled ? reduced[i] : FULL);
        if (co_dataset_read(data, sample, i) != CO_OK)
            fail_msg("%s", co_error_message());
        for (size_t k = 0; k < SAMPLE; k++)
            if ((int)(sample[k] * 255 + 0.5f) != wanted[k])
                fail_msg("split %d%s, picture %zu, byte %zu: %g, expected %u", split, more, i, k,
                         sample[k] * 255.0, wanted[k]);
    }
    co_dataset_destroy(data);
}

static void decode_test_split_is_at_full_size(void **state)
{
    (void)state;
    check("", CO_SPLIT_TEST, false);
    check(", scaled_decode: true", CO_SPLIT_TEST, false);
    check(", scaled_decode: false", CO_SPLIT_TEST, false);
}

static void decode_training_split_follows_scaled_decode(void **state)
{
    (void)state;
    check("", CO_SPLIT_TRAIN, true);
    check(", scaled_decode: true", CO_SPLIT_TRAIN, true);
    check(", scaled_decode: false", CO_SPLIT_TRAIN, false);
}

/* Ensures that the cases above are meaningful. */
static void decode_reduced_differs_from_full_size(void **state)
{
    (void)state;
    for (size_t i = 0; i < PICTURES; i++) {
        uint8_t full[SAMPLE], less[SAMPLE];

        expect(full, i, FULL);
        expect(less, i, reduced[i]);
        assert_int_equal(memcmp(full, less, SAMPLE) != 0, reduced[i] != FULL);
    }
}

static void pack_pixels_are_decoded_like_their_split(void **state)
{
    static const char *const keys[] = {"", ", scaled_decode: false"};
    const co_pack_options options = {.decode = SIDE};

    (void)state;
    for (int k = 0; k < 4; k++) {
        co_dataset *data = open_set(keys[k % 2], (co_split)(k / 2));
        co_pack_converter converter = {0};
        co_pack_head head;

        assert_int_equal(co_pack_converter_open(&converter, &head, data, &options), CO_OK);
        for (size_t i = 0; i < PICTURES; i++) {
            uint8_t wanted[SAMPLE];
            co_bytes record;

            expect(wanted, i, k == 0 ? reduced[i] : FULL);
            assert_int_equal(co_pack_convert(&record, &converter, i), CO_OK);
            assert_int_equal(record.n, SAMPLE);
            assert_memory_equal(record.at, wanted, SAMPLE);
        }
        co_pack_converter_close(&converter);
        co_dataset_destroy(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode_test_split_is_at_full_size),
        cmocka_unit_test(decode_training_split_follows_scaled_decode),
        cmocka_unit_test(decode_reduced_differs_from_full_size),
        cmocka_unit_test(pack_pixels_are_decoded_like_their_split),
    };

    return cmocka_run_group_tests(tests, make, folder_remove);
}
