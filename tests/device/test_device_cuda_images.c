/*
 * test_device_cuda_images.c - batches that a GPU draws from the images in its memory against those
 * that the host reads: the same bits, but on a GPU for boxes of random shape, whose exp may differ.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bits.h"
#include "core/mem.h"
#include "data/on_device.h"
#include "standin/open_gpu.h"
#include "waits.h"

#define SEED  11
#define EPOCH 3
#define COUNT 9

/* In any order, and twice. */
static const uint32_t wanted[COUNT] = {5, 0, 29, 5, 12, 7, 28, 1, 16};

static co_dataset *open_data(const char *keys, co_split split)
{
    co_dataset *data = NULL;
    char text[512];

    snprintf(text, sizeof(text), "{name: synthetic, classes: 7, samples: 30, %s}", keys);
    if (co_dataset_open(&data, text, split) != CO_OK)
        fail_msg("%s: %s", keys, co_error_message());
    return data;
}

static void read_on_host(float *out, const co_dataset *data)
{
    const size_t size = (size_t)co_shape_count(co_dataset_shape(data));
    co_data_scratch scratch = {0};

    for (size_t i = 0; i < COUNT; i++) {
        const co_augment_place place = {SEED, EPOCH, wanted[i]};

        assert_int_equal(co_dataset_draw(data, out + i * size, wanted[i], &place, &scratch), CO_OK);
    }
    co_data_scratch_free(&scratch);
}

static void draw_on_device(float *out, int32_t *label, const co_dataset *data, co_device *device)
{
    const size_t bytes = COUNT * (size_t)co_shape_count(co_dataset_shape(data)) * sizeof(*out);
    void *sample = NULL, *input = NULL, *drawn = NULL;
    co_images *images = NULL;
    co_queue *queue = NULL;

    assert_int_equal(co_dataset_to_device(&images, data, device, SEED), CO_OK);
    assert_int_equal(co_queue_create(&queue, device), CO_OK);
    assert_int_equal(co_device_alloc(&sample, device, sizeof(wanted), CO_MEMORY_DEVICE), CO_OK);
    assert_int_equal(co_device_alloc(&input, device, bytes, CO_MEMORY_DEVICE), CO_OK);
    assert_int_equal(co_device_alloc(&drawn, device, COUNT * sizeof(*label), CO_MEMORY_DEVICE),
                     CO_OK);
    assert_int_equal(co_queue_copy(queue, sample, wanted, sizeof(wanted)), CO_OK);
    co_images_draw(images, queue, sample, COUNT, EPOCH, input, drawn);
    assert_int_equal(co_queue_copy(queue, label, drawn, COUNT * sizeof(*label)), CO_OK);
    assert_int_equal(co_queue_copy_now(queue, out, input, bytes), CO_OK);
    co_queue_destroy(queue);
    co_device_free(device, sample, CO_MEMORY_DEVICE);
    co_device_free(device, input, CO_MEMORY_DEVICE);
    co_device_free(device, drawn, CO_MEMORY_DEVICE);
    co_images_destroy(images);
}

static void check_drawn(const char *keys, co_split split, co_device *device, bool exact)
{
    co_dataset *data = open_data(keys, split);
    const size_t n = COUNT * (size_t)co_shape_count(co_dataset_shape(data));
    float *want = co_calloc(n, sizeof(*want)), *got = co_calloc(n, sizeof(*got));
    char why[CO_ON_DEVICE_WHY] = "";
    int32_t label[COUNT];
    size_t bytes = 0, off = 0;

    if (co_dataset_stays_on_host(why, &bytes, data, device))
        fail_msg("%s: %s", keys, why);
    assert_true(want && got && bytes > 0);
    read_on_host(want, data);
    draw_on_device(got, label, data, device);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(label[i], co_dataset_label(data, wanted[i]));
    for (size_t i = 0; i < n; i++)
        off += !bits_are_same(&got[i], &want[i], sizeof(*got));
    if (off > (exact || standin ? 0 : n / 100))
        fail_msg("%s: %zu of %zu values differ", keys, off, n);
    co_free(want);
    co_free(got);
    co_dataset_destroy(data);
}

static void images_drawn_on_device_equal_those_of_host(void **state)
{
    static const char *const keys[] = {
        "shape: [1, 28, 28], normalize: mnist",
        "shape: [3, 32, 32], normalize: cifar10, augment: [random-crop, horizontal-flip]",
        "shape: [3, 11, 7], augment: [horizontal-flip, {name: random-crop, padding: 6, mode: "
        "edge}]",
        "shape: [2, 9, 13], normalize: {mean: 0.4, std: 0.3}, augment: [{name: random-crop, "
        "padding: 8, mode: reflect}, horizontal-flip, random-crop]",
        "shape: [1, 28, 28], normalize: mnist, resize: {size: [32, 36], mode: pad}, "
        "augment: [random-crop, {name: cutout, size: 9, holes: 3}, cutout]",
        "shape: [3, 20, 24], resize: 13, augment: horizontal-flip",
        "shape: [3, 20, 24], resize: [31, 9], center_crop: [28, 8], normalize: cifar10, "
        "augment: [random-crop, cutout]",
        "shape: [1, 20, 24], center_crop: 16",
        "shape: [3, 9, 31], normalize: cifar10, augment: {name: color-jitter, brightness: 0.4, "
        "contrast: 0.4, saturation: 0.4, hue: 0.1}",
        "shape: [1, 12, 10], augment: [{name: color-jitter, brightness: [0.2, 3], contrast: 1, "
        "saturation: 1, hue: 0.5}, cutout]",
        "shape: [3, 12, 10], resize: {size: [16, 15], mode: pad}, augment: [horizontal-flip, "
        "{name: color-jitter, contrast: 2}, {name: random-crop, padding: 5}, {name: color-jitter, "
        "hue: 0.5, contrast: 0.9, brightness: 0.5}, {name: random-crop, mode: reflect}]",
    };
    co_device *device = open_gpu();

    (void)state;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        check_drawn(keys[i], CO_SPLIT_TRAIN, device, true);
    co_cuda_close(device);
}

/* Enlarged, made smaller, and of shapes of which no box is allowed at the first tries. */
static void images_of_random_boxes_equal_those_of_host(void **state)
{
    static const char *const keys[] = {
        "shape: [3, 32, 32], augment: [random-resized-crop, horizontal-flip, cutout]",
        "shape: [1, 50, 40], resize: 12, augment: [random-resized-crop, random-crop]",
        "shape: [3, 17, 14], resize: 12, augment: [random-resized-crop, {name: color-jitter, "
        "brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1}]",
        "shape: [3, 6, 40], augment: [{name: random-resized-crop, scale: [0.9, 1], ratio: [0.2, "
        "0.3]}]",
    };
    co_device *device = open_gpu();

    (void)state;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        check_drawn(keys[i], CO_SPLIT_TRAIN, device, false);
    co_cuda_close(device);
}

/* Nothing is augmented there, and the frame is that of training. */
static void images_of_test_split_equal_those_of_host(void **state)
{
    static const char *const keys[] = {
        "shape: [1, 28, 28], test_samples: 30, normalize: mnist, augment: [random-crop, cutout]",
        "shape: [3, 20, 24], test_samples: 30, resize: [31, 9], center_crop: [28, 8], "
        "augment: horizontal-flip",
        "shape: [3, 20, 24], test_samples: 30, resize: 13, augment: [random-resized-crop, "
        "{name: color-jitter, hue: 0.1}]",
    };
    co_device *device = open_gpu();

    (void)state;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        check_drawn(keys[i], CO_SPLIT_TEST, device, true);
    co_cuda_close(device);
}

static void images_that_device_cannot_draw_stay_on_host(void **state)
{
    static const char *const keys[][2] = {
        {"shape: [1, 8, 8], resize: 12", "the device has no resize without an augmentation"},
    };
    co_device *device = open_gpu();
    char why[CO_ON_DEVICE_WHY];
    size_t bytes = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        co_dataset *data = open_data(keys[i][0], CO_SPLIT_TRAIN);

        assert_true(co_dataset_stays_on_host(why, &bytes, data, device));
        assert_string_equal(why, keys[i][1]);
        assert_true(co_dataset_stays_on_host(why, &bytes, data, NULL));
        co_dataset_destroy(data);
    }
    co_cuda_close(device);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_drawn_on_device_equal_those_of_host),
        cmocka_unit_test(images_of_random_boxes_equal_those_of_host),
        cmocka_unit_test(images_of_test_split_equal_those_of_host),
        cmocka_unit_test(images_that_device_cannot_draw_stay_on_host),
    };

    open_gpu_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
