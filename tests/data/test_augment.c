/* test_augment.c - augmentations: their effect on a sample, how often, and what they depend on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "image/augment.h"
#include "image/color.h"

#define H     ((int64_t)4)
#define W     ((int64_t)6)
#define SIZE  ((size_t)(3 * H * W))
#define DRAWS 4000
#define EPOCH 3

static const co_shape shape = {3, {3, H, W}};

static const uint8_t image[] = {
    0,   255, 77,  189, 230, 118, 200, 10,  8,   228, 231, 190, 155, 112, 158, 208, 7,   204,
    143, 113, 181, 231, 80,  27,  0,   255, 77,  65,  175, 30,  200, 200, 125, 146, 254, 121,
    137, 106, 41,  233, 190, 129, 210, 103, 144, 206, 5,   58,  0,   255, 77,  110, 164, 105,
    10,  200, 31,  2,   68,  38,  105, 211, 147, 18,  113, 245, 135, 100, 108, 109, 158, 190};
/* --- a single augmentation on `image`, from its config --- */

typedef struct fixture {
    co_config *config;
    co_augment augment;
} fixture;

static void open_list(fixture *f, const char *text)
{
    const co_value *value;

    assert_int_equal(co_config_parse(&f->config, "", 0, "test"), CO_OK);
    assert_int_equal(co_config_add_text(&value, f->config, text), CO_OK);
    if (co_augment_read(&f->augment, value, f->config) != CO_OK ||
        co_augment_check(&f->augment, &shape) != CO_OK)
        fail_msg("%s: %s", text, co_error_message());
}

/* Augment sample `draw` of an epoch. */
static void change_bytes(uint8_t *out, const fixture *f, uint64_t draw)
{
    const co_augment_place place = {7, EPOCH, draw};
    uint8_t room[2][SIZE], *block[2] = {room[0], room[1]};

    memcpy(out, co_augment_bytes(&f->augment, image, block, &shape, &place, 0), SIZE);
}

/* Checks that each of n outcomes occurs about `expected` times: chi-square, far above its 0.9999
   quantile. */
static void assert_even(const unsigned *seen, size_t n, double expected)
{
    double chi = 0;

    for (size_t i = 0; i < n; i++)
        chi += ((double)seen[i] - expected) * ((double)seen[i] - expected) / expected;
    assert_true(chi < (double)n + 5 * sqrt(2 * (double)n) + 10);
}

static void flip_swaps_left_and_right(void **state)
{
    static const char *const configs[] = {"{name: horizontal-flip, p: 0}",
                                          "{name: horizontal-flip, p: 1}", "horizontal-flip",
                                          "[{name: horizontal-flip, p: 0.9}]"};
    static const double p[] = {0, 1, 0.5, 0.9};
    uint8_t flipped[SIZE], out[SIZE];

    (void)state;
    for (size_t row = 0; row < SIZE / W; row++)
        for (size_t x = 0; x < W; x++)
            flipped[row * W + x] = image[row * W + W - 1 - x];
    for (size_t k = 0; k < 4; k++) {
        unsigned n = 0;
        fixture f;

        open_list(&f, configs[k]);
        for (uint64_t draw = 0; draw < DRAWS; draw++) {
            change_bytes(out, &f, draw);
            n += memcmp(out, flipped, SIZE) == 0;
            assert_true(memcmp(out, flipped, SIZE) == 0 || memcmp(out, image, SIZE) == 0);
        }
        assert_true(fabs(n - DRAWS * p[k]) <= 4 * sqrt(DRAWS * p[k] * (1 - p[k])));
        co_config_destroy(f.config);
    }
}

/* Widths around multiples of a word. */
static void flip_of_any_width_reverses_rows(void **state)
{
    enum { WIDEST = 41 };
    const co_augment_place place = {7, EPOCH, 0};
    uint8_t in[2 * WIDEST], room[2][2 * WIDEST], *block[2] = {room[0], room[1]};
    fixture f;

    (void)state;
    open_list(&f, "{name: horizontal-flip, p: 1}");
    for (size_t i = 0; i < sizeof(in); i++)
        in[i] = (uint8_t)(i * 3);
    for (size_t width = 1; width <= WIDEST; width++) {
        const co_shape two_rows = {3, {1, 2, (int64_t)width}};
        const uint8_t *out = co_augment_bytes(&f.augment, in, block, &two_rows, &place, 0);

        for (size_t i = 0; i < 2 * width; i++)
            assert_int_equal(out[i], in[i / width * width + width - 1 - i % width]);
    }
    co_config_destroy(f.config);
}

static int64_t source_of(int64_t at, int64_t n, int mode)
{
    if (at >= 0 && at < n)
        return at;
    if (mode == 0)
        return -1;
    if (mode == 1)
        return at < 0 ? 0 : n - 1;
    return at < 0 ? -at : 2 * n - 2 - at;
}

static void shifted(uint8_t *out, int64_t down, int64_t right, int mode)
{
    for (int64_t c = 0; c < 3; c++)
        for (int64_t y = 0; y < H; y++)
            for (int64_t x = 0; x < W; x++) {
                int64_t sy = source_of(y + down, H, mode), sx = source_of(x + right, W, mode);

                *out++ = sy < 0 || sx < 0 ? 0 : image[(c * H + sy) * W + sx];
            }
}

static void crop_offsets_are_uniform(void **state)
{
    static const char *const configs[] = {"{name: random-crop, padding: 2}",
                                          "{name: random-crop, padding: 2, mode: edge}",
                                          "{name: random-crop, padding: 2, mode: reflect}"};
    (void)state;
    for (int mode = 0; mode < 3; mode++) {
        unsigned seen[25] = {0};
        uint8_t out[SIZE], want[SIZE];
        fixture f;

        open_list(&f, configs[mode]);
        for (uint64_t draw = 0; draw < DRAWS; draw++) {
            size_t found = 25;

            change_bytes(out, &f, draw);
            for (size_t k = 0; k < 25; k++) {
                shifted(want, (int64_t)k / 5 - 2, (int64_t)k % 5 - 2, mode);
                if (memcmp(out, want, SIZE) == 0)
                    found = k;
            }
            assert_true(found < 25);
            seen[found]++;
        }
        assert_even(seen, 25, DRAWS / 25.0);
        co_config_destroy(f.config);
    }
}

/* Padding wider than the image: only the edge, or a corner, may remain. */
static void crop_outside_image_is_padding(void **state)
{
    uint8_t out[SIZE];
    fixture f;

    (void)state;
    open_list(&f, "{name: random-crop, padding: 40, mode: edge}");
    for (uint64_t draw = 0; draw < 300; draw++) {
        change_bytes(out, &f, draw);
        for (size_t c = 0; c < 3; c++)
            assert_non_null(memchr(image + c * H * W, out[c * H * W], H * W));
    }
    co_config_destroy(f.config);
}

/* Squares of 3: rows y - 1 .. y + 1 around a centre that can be any pixel. */
static void cutout_odd_size_covers_square_around_any_pixel(void **state)
{
    unsigned seen[H * W] = {0};
    fixture f;

    (void)state;
    open_list(&f, "{name: cutout, size: 3}");
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        const co_augment_place place = {7, EPOCH, draw};
        int64_t centre = -1;
        float value[SIZE];

        for (size_t i = 0; i < SIZE; i++)
            value[i] = 1;
        co_augment_floats(&f.augment, value, &shape, &place);
        for (int64_t k = 0; k < H * W; k++) {
            bool same = true;

            for (int64_t i = 0; i < (int64_t)SIZE && same; i++) {
                const int64_t y = i / W % H, x = i % W;

                same = value[i] == (float)(llabs(y - k / W) > 1 || llabs(x - k % W) > 1);
            }
            centre = same ? k : centre;
        }
        assert_true(centre >= 0);
        seen[centre]++;
    }
    assert_even(seen, H * W, (double)DRAWS / (H * W));
    co_config_destroy(f.config);
}

static void cutout_even_size_and_holes_cover_as_many(void **state)
{
    const co_augment_place place = {7, EPOCH, 11};
    float once[SIZE] = {0}, value[SIZE] = {0};
    unsigned hidden[2] = {0};
    fixture f;

    (void)state;
    for (int k = 0; k < 2; k++) {
        open_list(&f, k ? "{name: cutout, size: 2, holes: 12}" : "{name: cutout, size: 2}");
        for (size_t i = 0; i < SIZE; i++)
            value[i] = 1;
        co_augment_floats(&f.augment, value, &shape, &place);
        for (size_t i = 0; i < SIZE; i++)
            hidden[k] += value[i] == 0;
        if (k == 0)
            memcpy(once, value, sizeof(once));
        for (size_t i = 0; i < SIZE; i++)
            assert_true(once[i] != 0 || value[i] == 0); /* the first hole is the same */
        co_config_destroy(f.config);
    }
    assert_true(hidden[0] > 0 && hidden[0] <= 3 * 4 && hidden[1] > hidden[0]);
}

/* Whole pixels inside the image, with area and aspect ratio in bounds; sides are rounded. */
static void resized_crop_has_area_and_ratio_in_bounds(void **state)
{
    static const struct {
        int64_t height, width;
    } sizes[] = {{375, 500}, {500, 375}, {224, 224}, {32, 32}};
    fixture f;

    (void)state;
    open_list(&f, "random-resized-crop");
    for (size_t k = 0; k < 4; k++) {
        const double height = (double)sizes[k].height, width = (double)sizes[k].width;
        double area = 0, left = 0, top = 0;

        for (uint64_t draw = 0; draw < DRAWS; draw++) {
            const co_augment_place place = {7, EPOCH, draw};
            co_image_box box;
            double ratio;

            co_augment_box(&f.augment, &box, sizes[k].height, sizes[k].width, &place);
            assert_true(box.x == floor(box.x) && box.y == floor(box.y));
            assert_true(box.width == floor(box.width) && box.height == floor(box.height));
            assert_true(box.x >= 0 && box.y >= 0 && box.width >= 1 && box.height >= 1);
            assert_true(box.x + box.width <= width && box.y + box.height <= height);
            assert_true((box.width + 0.5) * (box.height + 0.5) >= 0.08 * height * width - 1);
            ratio = box.width / box.height;
            assert_true(ratio > 0.75 - 1 / box.height && ratio < 4.0 / 3 + 2 / box.height);
            area += box.width * box.height / (height * width) / DRAWS;
            left += (box.x + box.width / 2) / width / DRAWS;
            top += (box.y + box.height / 2) / height / DRAWS;
        }
        /* Uniform from 0.08 to 1 has the mean 0.54; it is less because the largest boxes of other
           shapes than the image do not fit. */
        assert_true(area > 0.40 && area < 0.54);
        assert_true(fabs(left - 0.5) < 0.02 && fabs(top - 0.5) < 0.02);
    }
    co_config_destroy(f.config);
}

static void resized_crop_that_never_fits_is_centred(void **state)
{
    const co_augment_place place = {7, EPOCH, 1};
    co_image_box box;
    fixture f;

    (void)state;
    open_list(&f, "{name: random-resized-crop, scale: [1, 1], ratio: [0.5, 2]}");
    co_augment_box(&f.augment, &box, 10, 100, &place);
    assert_true(box.x == 40 && box.y == 0 && box.width == 20 && box.height == 10);
    co_augment_box(&f.augment, &box, 100, 10, &place);
    assert_true(box.x == 0 && box.y == 40 && box.width == 10 && box.height == 20);
    co_augment_box(&f.augment, &box, 1, 1, &place);
    assert_true(box.x == 0 && box.y == 0 && box.width == 1 && box.height == 1);
    co_config_destroy(f.config);
}

/* The factor shows in the pixel with value 77, which is never clamped. */
static void jitter_factors_are_uniform(void **state)
{
    unsigned seen[10] = {0};
    fixture f;

    (void)state;
    open_list(&f, "{name: color-jitter, brightness: 0.5}");
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        uint8_t out[SIZE];
        double factor;

        change_bytes(out, &f, draw);
        factor = (out[2] + 0.5) / 77.0;
        assert_true(factor > 0.49 && factor < 1.51);
        seen[(size_t)fmin(9, fmax(0, (factor - 0.5) * 10))]++;
    }
    for (size_t i = 0; i < 10; i++)
        assert_true(seen[i] > DRAWS * 0.075 && seen[i] < DRAWS * 0.125);
    co_config_destroy(f.config);
}

/* The result tells whether brightness or saturation was changed first. */
static void jitter_order_of_changes_is_random(void **state)
{
    unsigned brightness_first = 0;
    fixture f;

    (void)state;
    open_list(&f, "{name: color-jitter, brightness: [1.5, 1.5], saturation: [2, 2]}");
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        uint8_t out[SIZE], want[2][SIZE];

        change_bytes(out, &f, draw);
        co_color_brightness(want[0], image, 3, SIZE / 3, 1.5f);
        co_color_saturation(want[0], want[0], 3, SIZE / 3, 2);
        co_color_saturation(want[1], image, 3, SIZE / 3, 2);
        co_color_brightness(want[1], want[1], 3, SIZE / 3, 1.5f);
        brightness_first += memcmp(out, want[0], SIZE) == 0;
        assert_true(memcmp(out, want[0], SIZE) == 0 || memcmp(out, want[1], SIZE) == 0);
    }
    assert_true(abs((int)brightness_first - DRAWS / 2) < 130);
    co_config_destroy(f.config);
}

static void augment_two_of_one_kind_draw_independently(void **state)
{
    unsigned same = 0;
    fixture f;

    (void)state;
    open_list(&f, "[horizontal-flip, horizontal-flip]");
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        uint8_t out[SIZE];

        change_bytes(out, &f, draw);
        same += memcmp(out, image, SIZE) == 0;
    }
    assert_true(abs((int)same - DRAWS / 2) < 130);
    co_config_destroy(f.config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flip_swaps_left_and_right),
        cmocka_unit_test(flip_of_any_width_reverses_rows),
        cmocka_unit_test(crop_offsets_are_uniform),
        cmocka_unit_test(crop_outside_image_is_padding),
        cmocka_unit_test(cutout_odd_size_covers_square_around_any_pixel),
        cmocka_unit_test(cutout_even_size_and_holes_cover_as_many),
        cmocka_unit_test(resized_crop_has_area_and_ratio_in_bounds),
        cmocka_unit_test(resized_crop_that_never_fits_is_centred),
        cmocka_unit_test(jitter_factors_are_uniform),
        cmocka_unit_test(jitter_order_of_changes_is_random),
        cmocka_unit_test(augment_two_of_one_kind_draw_independently),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
