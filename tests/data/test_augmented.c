/* test_augmented.c - augmentation of a data set: what it depends on, when it is off, bad
   configs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "bits.h"
#include "data/data.h"

#define CLASSES 5

static co_dataset *open_set(const char *keys, co_split split)
{
    char text[512];
    co_dataset *data = NULL;

    snprintf(text, sizeof(text), "{name: synthetic, shape: [3, 8, 8], samples: 60, classes: %d%s}",
             CLASSES, keys);
    if (co_dataset_open(&data, text, split) != CO_OK)
        fail_msg("%s: %s", text, co_error_message());
    return data;
}

#define ALL                                                                                        \
    ", normalize: {mean: 0.4, std: 0.2}, augment: [horizontal-flip, {name: random-crop, padding: " \
    "2}, {name: color-jitter, brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1}, {name: " \
    "cutout, size: 3}]"
#define FLOATS 192 /* (3, 8, 8) */

/* Collect every sample of an epoch over all ranks. */
static void read_epoch(float (*out)[FLOATS], const co_dataset *data, int ranks, uint64_t batch,
                       int threads, uint64_t epoch, const char *partition)
{
    for (int rank = 0; rank < ranks; rank++) {
        const co_sampler_options sampling = {
            .count = 60, .batch = batch, .ranks = ranks, .seed = 3, .partition = partition};
        co_loader_options loading = {
            .dataset = data, .rank = rank, .threads = threads, .first_epoch = epoch, .seed = 11};
        co_sampler *sampler;
        co_loader *loader;
        co_batch b;

        assert_int_equal(co_sampler_create(&sampler, &sampling), CO_OK);
        loading.sampler = sampler;
        assert_int_equal(co_loader_create(&loader, &loading), CO_OK);
        for (uint64_t step = 0; step < co_sampler_steps(sampler); step++) {
            assert_int_equal(co_loader_next(&b, loader), CO_OK);
            for (uint64_t i = 0; i < b.count; i++)
                memcpy(out[b.sample[i]], (const float *)b.field[0].data + i * FLOATS, sizeof(*out));
        }
        co_loader_destroy(loader);
        co_sampler_destroy(sampler);
    }
}

static void augmented_sample_is_same_for_any_ranks_and_threads(void **state)
{
    static const struct {
        int ranks, threads;
        uint64_t batch;
        const char *partition;
    } cases[] = {{1, 3, 7, NULL},
                 {2, 0, 12, NULL},
                 {3, 2, 60, NULL},
                 {3, 1, 9, "{kind: random, ratios: [0.7, 0.2, 0.1]}"}};
    static float want[60][FLOATS], got[60][FLOATS], other[60][FLOATS];
    co_dataset *data = open_set(ALL, CO_SPLIT_TRAIN);

    (void)state;
    read_epoch(want, data, 1, 10, 0, 5, NULL);
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        memset(got, 0, sizeof(got));
        read_epoch(got, data, cases[k].ranks, cases[k].batch, cases[k].threads, 5,
                   cases[k].partition);
        assert_memory_equal(got, want, sizeof(want));
    }
    read_epoch(other, data, 1, 10, 0, 6, NULL);
    for (size_t i = 0; i < 60; i++)
        assert_memory_not_equal(other[i], want[i], sizeof(*want));
    co_dataset_destroy(data);
}

static void augmented_test_split_is_left_alone(void **state)
{
    static const co_augment_place place = {1, 2, 3};
    static const co_split splits[] = {CO_SPLIT_TEST, CO_SPLIT_TRAIN};
    co_data_scratch scratch = {0};

    (void)state;
    for (size_t k = 0; k < 2; k++) {
        co_dataset *with = open_set(ALL, splits[k]);
        co_dataset *without = open_set(", normalize: {mean: 0.4, std: 0.2}", splits[k]);
        float a[FLOATS], b[FLOATS];

        assert_int_equal(co_dataset_read(with, a, 3), CO_OK);
        assert_int_equal(co_dataset_read(without, b, 3), CO_OK);
        assert_memory_equal(a, b, sizeof(a));
        assert_int_equal(co_dataset_draw(with, a, 3, &place, &scratch), CO_OK);
        assert_int_equal(bits_are_same(a, b, sizeof(a)), splits[k] == CO_SPLIT_TEST);
        co_dataset_destroy(without);
        co_dataset_destroy(with);
    }
    co_data_scratch_free(&scratch);
}

static void normalize_imagenet_has_its_constants(void **state)
{
    co_dataset *named = open_set(", normalize: imagenet", CO_SPLIT_TRAIN);
    co_dataset *given = open_set(", normalize: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, "
                                 "0.225]}",
                                 CO_SPLIT_TRAIN);
    float a[FLOATS], b[FLOATS];

    (void)state;
    assert_int_equal(co_dataset_read(named, a, 3), CO_OK);
    assert_int_equal(co_dataset_read(given, b, 3), CO_OK);
    assert_memory_equal(a, b, sizeof(a));
    co_dataset_destroy(given);
    co_dataset_destroy(named);
}

static void augment_bad_config_is_refused(void **state)
{
    static const struct {
        const char *keys, *words;
    } cases[] = {
        {"augment: horizontal-flop", "unknown augmentation 'horizontal-flop'; did you mean "
                                     "'horizontal-flip'?"},
        {"augment: [{p: 1}]", "augment: expected a name"},
        {"augment: {name: horizontal-flip, p: 2}", "expected a number from 0 to 1, got '2'"},
        {"augment: [cutout, horizontal-flip]",
         "augment: 'horizontal-flip' cannot come after 'cutout'; put it before"},
        {"augment: [horizontal-flip, random-resized-crop]", "cannot come after"},
        {"augment: [random-resized-crop, random-resized-crop]", "keep one of them"},
        {"augment: {name: random-resized-crop, scale: 0.5}", "key 'scale': expected [min"},
        {"augment: {name: random-resized-crop, ratio: [2, 1]}", "key 'ratio': expected [min"},
        {"augment: {name: random-crop, padding: 28}", "a padding of 28 is no less than the images"},
        {"augment: {name: color-jitter, hue: 0.6}", "from -0.5 to 0.5"},
        {"augment: {name: color-jitter, contrast: [2, 1]}", "key 'contrast': expected a number or"},
        {"augment: {name: color-jitter, hue: -0.1}", "key 'hue': expected a number or"},
        {"shape: [2, 8, 8], augment: color-jitter", "for images of 1 or 3 channels, these have 2"},
        {"normalize: image-net", "unknown normalize 'image-net'; did you mean 'imagenet'?"},
        {"normalize: cifar10",
         "mean has 3 numbers and std 3, and samples have 1 channel: one number each"},
        {"on_bad_sample: ignore", "one of error, skip"},
        {"center_crop: [1, 2, 3]", "center_crop: expected a size or [height, width]"},
        {"center_crop: 29", "center_crop: 29x29 does not fit into images of 28x28"},
        {"resize: 20, center_crop: 24", "center_crop: 24x24 does not fit into images resized to"},
        {"resize: {size: 32, mode: pad}, center_crop: 24", "resize: mode: pad is for images of"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        co_dataset *data = NULL;
        char text[256];

        snprintf(text, sizeof(text), "{name: synthetic, %s}", cases[i].keys);
        assert_int_equal(co_dataset_open(&data, text, CO_SPLIT_TRAIN), CO_E_USAGE);
        assert_null(data);
        if (!strstr(co_error_message(), cases[i].words))
            fail_msg("'%s' does not say '%s'", co_error_message(), cases[i].words);
        assert_int_equal(co_dataset_open(&data, text, CO_SPLIT_TEST), CO_E_USAGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(augmented_sample_is_same_for_any_ranks_and_threads),
        cmocka_unit_test(augmented_test_split_is_left_alone),
        cmocka_unit_test(normalize_imagenet_has_its_constants),
        cmocka_unit_test(augment_bad_config_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
