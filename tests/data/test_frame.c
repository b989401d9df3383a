/* test_frame.c - the part of an image that resize and center_crop select. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "image/resize_crop.h"

static co_ints list_of(const int64_t v[2])
{
    return (co_ints){v[0] == 0 ? 0 : v[1] == 0 ? 1 : 2, v};
}

typedef struct frame_case {
    int64_t resize[2], crop[2]; /* zeros where not given */
    int64_t height, width;      /* of the image */
    co_image_box box;
    int64_t size[2];
} frame_case;

/* Resizing follows torchvision: the shorter side is exact, the longer rounded down. The crop starts
   at half of the rest, rounded half to even. Both are divided by the scale. */
static const frame_case cases[] = {
    {{256}, {224}, 256, 256, {16, 16, 224, 224}, {224, 224}},
    {{256}, {224}, 512, 1024, {288, 32, 448, 448}, {224, 224}},
    {{256}, {224}, 1024, 512, {32, 288, 448, 448}, {224, 224}},
    {{8}, {4}, 16, 25, {4 * 25.0 / 12, 4, 4 * 25.0 / 12, 8}, {4, 4}},
    {{8}, {3}, 8, 8, {2, 2, 3, 3}, {3, 3}}, /* 2.5 rounds to even */
    {{8}, {5}, 8, 8, {2, 2, 5, 5}, {5, 5}}, /* 1.5 rounds to even */
    {{8}, {0}, 16, 48, {16, 0, 16, 16}, {8, 8}},
    {{8}, {0}, 4, 4, {0, 0, 4, 4}, {8, 8}},
    {{8, 6}, {0}, 16, 48, {0, 0, 48, 16}, {8, 6}},
    {{8, 6}, {4, 2}, 16, 48, {16, 4, 16, 8}, {4, 2}},
    {{0}, {4, 6}, 10, 10, {2, 3, 6, 4}, {4, 6}},
    {{0}, {10}, 10, 10, {0, 0, 10, 10}, {10, 10}},
    {{0}, {0}, 10, 12, {0, 0, 12, 10}, {10, 12}},
};

static void crop_box_equals_torchvision(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const frame_case *c = &cases[i];
        co_frame frame = {.resize = list_of(c->resize), .crop = list_of(c->crop)};
        co_image_box box;

        assert_int_equal(co_frame_setup(&frame, &(co_shape){3, {3, c->height, c->width}}), CO_OK);
        assert_int_equal(frame.height, c->size[0]);
        assert_int_equal(frame.width, c->size[1]);
        assert_int_equal(co_frame_box(&box, &frame, c->height, c->width, "x.jpg"), CO_OK);
        if (fabs(box.x - c->box.x) > 1e-9 || fabs(box.y - c->box.y) > 1e-9 ||
            fabs(box.width - c->box.width) > 1e-9 || fabs(box.height - c->box.height) > 1e-9)
            fail_msg("case %zu: %g %g %g %g", i, box.x, box.y, box.width, box.height);
    }
}

/* For any sizes, rounding stays within the image. */
static void crop_box_of_any_size_is_within_image(void **state)
{
    const int64_t resize[2] = {37}, crop[2] = {37};
    co_frame frame = {.resize = list_of(resize), .crop = list_of(crop)};

    (void)state;
    assert_int_equal(co_frame_setup(&frame, &(co_shape){3, {3, 1, 1}}), CO_OK);
    for (int64_t height = 1; height < 120; height++)
        for (int64_t width = 1; width < 120; width++) {
            co_image_box box;

            assert_int_equal(co_frame_box(&box, &frame, height, width, ""), CO_OK);
            assert_true(box.x >= 0 && box.y >= 0 && box.width > 0 && box.height > 0);
            assert_true(box.x + box.width <= (double)width);
            assert_true(box.y + box.height <= (double)height);
        }
}

static void crop_box_larger_than_image_is_refused(void **state)
{
    const int64_t crop[2] = {8, 10};
    co_frame frame = {.crop = list_of(crop)}, plain = {0};
    co_image_box box;

    (void)state;
    assert_int_equal(co_frame_setup(&frame, &(co_shape){3, {3, 9, 9}}), CO_OK);
    assert_int_equal(co_frame_box(&box, &frame, 8, 9, "x.jpg"), CO_E_DATA);
    assert_string_equal(co_error_message(), "x.jpg: is 8x9, smaller than center_crop, 8x10 (height "
                                            "x width); set data.resize too");
    assert_int_equal(co_frame_setup(&plain, &(co_shape){3, {3, 9, 9}}), CO_OK);
    assert_int_equal(co_frame_box(&box, &plain, 9, 8, "x.jpg"), CO_E_DATA);
    assert_string_equal(co_error_message(),
                        "x.jpg: is 9x8, other images are 9x9 (height x width); bring them to one "
                        "size with data.resize");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crop_box_equals_torchvision),
        cmocka_unit_test(crop_box_of_any_size_is_within_image),
        cmocka_unit_test(crop_box_larger_than_image_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
