/* test_dataset.c - from a config to the floats that a network gets; uses the real sets if
   present. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/mem.h"
#include "data/data.h"
#include "data/files.h"

#define HEIGHT ((size_t)3)
#define WIDTH  ((size_t)4)
#define TRAIN  12
#define TEST   5

static uint8_t pixel_of(size_t i)
{
    return (uint8_t)((7 * i * i + 3 * i) % 256);
}

static uint8_t label_of(size_t i)
{
    return (uint8_t)(i % 10);
}

static uint8_t label_10_last(size_t i)
{
    return i + 1 == TRAIN ? 10 : label_of(i);
}

static void write_images(const char *name, uint32_t n)
{
    const uint32_t dims[3] = {n, HEIGHT, WIDTH};
    uint8_t bytes[16 + TRAIN * HEIGHT * WIDTH];

    files_write(name, bytes, files_idx(bytes, 3, dims, pixel_of));
}

static void write_labels(const char *name, uint32_t n, uint8_t (*fill)(size_t i))
{
    uint8_t bytes[8 + TRAIN];

    files_write(name, bytes, files_idx(bytes, 1, &n, fill));
}

/* Write a small set in MNIST's format to the group's folder. */
static int write_set(void **state)
{
    (void)state;
    write_images("train-images-idx3-ubyte", TRAIN);
    write_labels("train-labels-idx1-ubyte", TRAIN, label_of);
    write_images("t10k-images-idx3-ubyte", TEST);
    write_labels("t10k-labels-idx1-ubyte", TEST, label_of);
    return 0;
}

static const char *config_of(const char *keys)
{
    static char text[1024];

    snprintf(text, sizeof(text), "{name: mnist, path: \"%s\"%s}", files_path("."), keys);
    return text;
}

static co_dataset *open_set(const char *config, co_split split)
{
    co_dataset *data = NULL;

    if (co_dataset_open(&data, config, split) != CO_OK)
        fail_msg("%s: %s", config, co_error_message());
    return data;
}

static void dataset_both_splits_are_read(void **state)
{
    static const co_split splits[] = {CO_SPLIT_TRAIN, CO_SPLIT_TEST};
    static const uint64_t counts[] = {TRAIN, TEST};

    (void)state;
    for (size_t k = 0; k < 2; k++) {
        co_dataset *data = open_set(config_of(""), splits[k]);
        float sample[HEIGHT * WIDTH];

        assert_string_equal(co_dataset_name(data), "mnist");
        assert_int_equal(co_dataset_count(data), counts[k]);
        assert_int_equal(co_dataset_classes(data), 10);
        assert_true(co_shape_equal(co_dataset_shape(data), &(co_shape){3, {1, HEIGHT, WIDTH}}));
        for (uint64_t i = 0; i < counts[k]; i++) {
            assert_int_equal(co_dataset_read(data, sample, i), CO_OK);
            assert_int_equal(co_dataset_label(data, i), (int)(i % 10));
            for (size_t p = 0; p < HEIGHT * WIDTH; p++)
                assert_true(sample[p] == (float)pixel_of(i * HEIGHT * WIDTH + p) / 255.0f);
        }
        co_dataset_destroy(data);
    }
}

static void normalize_one_value_subtracts_and_divides(void **state)
{
    co_dataset *data = open_set(config_of(", normalize: {mean: 0.1307, std: 0.3081}"), 0);
    float sample[HEIGHT * WIDTH];

    (void)state;
    assert_int_equal(co_dataset_read(data, sample, 2), CO_OK);
    for (size_t p = 0; p < HEIGHT * WIDTH; p++) {
        float x = (float)pixel_of(2 * HEIGHT * WIDTH + p) / 255.0f;

        assert_true(sample[p] == (x - 0.1307f) / 0.3081f);
    }
    co_dataset_destroy(data);
}

static void normalize_per_channel_subtracts_and_divides(void **state)
{
    static const char plain[] = "{name: synthetic, shape: [3, 5, 6]}";
    static const char scaled[] = "{name: synthetic, shape: [3, 5, 6], normalize: {mean: [0.1, "
                                 "0.2, 0.3], std: [1, 2, 4]}}";
    co_dataset *a = open_set(plain, CO_SPLIT_TRAIN), *b = open_set(scaled, CO_SPLIT_TRAIN);
    float x[90], y[90];

    (void)state;
    assert_int_equal(co_dataset_read(a, x, 7), CO_OK);
    assert_int_equal(co_dataset_read(b, y, 7), CO_OK);
    for (size_t p = 0; p < 90; p++) {
        const float mean[] = {0.1f, 0.2f, 0.3f}, std[] = {1, 2, 4};

        assert_true(y[p] == (x[p] - mean[p / 30]) / std[p / 30]);
    }
    co_dataset_destroy(b);
    co_dataset_destroy(a);
}

/* From PyTorch: F.interpolate(x, (5, 6), mode="bilinear", align_corners=False) of sample 0, and
   (2, 2). */
static const float torch_5x6[] = {0.0f,       0.01960784f, 0.05490196f, 0.1176471f, 0.2078432f,
                                  0.282353f,  0.1945098f,  0.2580392f,  0.2849673f, 0.1385621f,
                                  0.2203922f, 0.3388236f,  0.4862745f,  0.6156863f, 0.6300653f,
                                  0.1699346f, 0.2392157f,  0.4235294f,  0.7027451f, 0.5968627f,
                                  0.4983006f, 0.5275818f,  0.4839216f,  0.4329412f, 0.8470588f,
                                  0.5843138f, 0.4104576f,  0.7660131f,  0.6470588f, 0.4392157f};

static void resize_bilinear_equals_pytorch(void **state)
{
    co_dataset *data = open_set(config_of(", resize: [5, 6]"), CO_SPLIT_TRAIN);
    float sample[30];

    (void)state;
    assert_true(co_shape_equal(co_dataset_shape(data), &(co_shape){3, {1, 5, 6}}));
    assert_true(co_shape_equal(&co_dataset_stored(data)->shape, &(co_shape){3, {1, 3, 4}}));
    assert_int_equal(co_dataset_read(data, sample, 0), CO_OK);
    for (size_t p = 0; p < 30; p++)
        assert_true(fabsf(sample[p] - torch_5x6[p]) < 2e-7f);
    co_dataset_destroy(data);
}

static void resize_to_the_same_size_changes_nothing(void **state)
{
    co_dataset *plain = open_set(config_of(""), CO_SPLIT_TRAIN);
    co_dataset *same = open_set(config_of(", resize: {size: [3, 4], mode: bilinear}"), 0);
    float x[HEIGHT * WIDTH], y[HEIGHT * WIDTH];

    (void)state;
    assert_int_equal(co_dataset_read(plain, x, 3), CO_OK);
    assert_int_equal(co_dataset_read(same, y, 3), CO_OK);
    assert_memory_equal(x, y, sizeof(x));
    co_dataset_destroy(same);
    co_dataset_destroy(plain);
}

static void resize_pad_adds_zeros(void **state)
{
    co_dataset *data =
        open_set(config_of(", resize: {size: 7, mode: pad}, normalize: {mean: 0.5, std: 0.5}"), 0);
    float sample[49];

    (void)state;
    assert_true(co_shape_equal(co_dataset_shape(data), &(co_shape){3, {1, 7, 7}}));
    assert_int_equal(co_dataset_read(data, sample, 1), CO_OK);
    for (size_t y = 0; y < 7; y++)
        for (size_t x = 0; x < 7; x++) {
            bool inside = y >= 2 && y < 5 && x >= 1 && x < 5;
            uint8_t byte = inside ? pixel_of(12 + (y - 2) * WIDTH + x - 1) : 0;

            assert_true(sample[y * 7 + x] == ((float)byte / 255.0f - 0.5f) / 0.5f);
        }
    co_dataset_destroy(data);
}

static void dataset_bad_config_is_refused(void **state)
{
    static const struct {
        const char *config;
        co_status status;
        const char *words;
    } cases[] = {
        {"mnst", CO_E_USAGE, "unknown data set 'mnst'; did you mean 'mnist'?"},
        {"{path: here}", CO_E_USAGE, "expected a name"},
        {"mnist", CO_E_DATA, "`cohort data get mnist` fetches it"},
        {"{name: mnist, path: /nowhere}", CO_E_DATA, "/nowhere: No such file"},
        {"{name: mnist, path: /dev/null}", CO_E_DATA, "/dev/null: is a file; data.path is the"},
        {"{name: fashion-mnist, path: /dev}", CO_E_DATA,
         "/dev: holds no train-images-idx3-ubyte or train-images-idx3-ubyte.gz of fashion-mnist"},
        {"{name: mnist, pth: x}", CO_E_USAGE, "did you mean 'path'"},
        {"{name: synthetic, path: /tmp}", CO_E_USAGE, "takes no path"},
        {"{name: synthetic, shape: [28, 28]}", CO_E_USAGE, "[channels, height, width], got 2"},
        {"{name: synthetic, shape: [0, 2, 2]}", CO_E_USAGE, "shape"},
        {"{name: synthetic, shape: [4096, 4096, 4096]}", CO_E_DATA, "too large"},
        {"{name: synthetic, classes: 0}", CO_E_USAGE, "classes"},
        {"{name: synthetic, samples: -1}", CO_E_USAGE, "samples"},
        {"{name: synthetic, normalize: 3}", CO_E_USAGE, "normalize"},
        {"{name: synthetic, normalize: {std: 0}}", CO_E_USAGE, "std"},
        {"{name: synthetic, normalize: {mean: [0, 0]}}", CO_E_USAGE,
         "mean has 2 numbers and std 1, and samples have 1 channel"},
        {"{name: synthetic, normalize: {men: 0}}", CO_E_USAGE, "did you mean 'mean'"},
        {"{name: synthetic, resize: 0}", CO_E_USAGE, "resize"},
        {"{name: synthetic, resize: [1, 2, 3]}", CO_E_USAGE, "[height, width]"},
        {"{name: synthetic, resize: []}", CO_E_USAGE, "[height, width]"},
        {"{name: synthetic, resize: {mode: pad}}", CO_E_USAGE, "size"},
        {"{name: synthetic, resize: {size: 32, mode: crop}}", CO_E_USAGE, "bilinear"},
        {"{name: synthetic, resize: {size: 20, mode: pad}}", CO_E_USAGE, "cannot pad 28x28"},
        {"{name: synthetic, shape: [300, 8, 8], resize: 16384}", CO_E_DATA, "too large"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        co_dataset *data = NULL;

        assert_int_equal(co_dataset_open(&data, cases[i].config, CO_SPLIT_TRAIN), cases[i].status);
        assert_null(data);
        if (!strstr(co_error_message(), cases[i].words))
            fail_msg("'%s' does not say '%s'", co_error_message(), cases[i].words);
    }
}

static void assert_set_refused(const char *words)
{
    co_dataset *data = NULL;

    assert_int_equal(co_dataset_open(&data, config_of(""), CO_SPLIT_TRAIN), CO_E_DATA);
    if (!strstr(co_error_message(), words))
        fail_msg("'%s' does not say '%s'", co_error_message(), words);
    write_set(NULL);
}

static void dataset_inconsistent_files_are_refused(void **state)
{
    (void)state;
    write_labels("train-labels-idx1-ubyte", TRAIN - 1, label_of);
    assert_set_refused("train-labels-idx1-ubyte: 11 labels for the 12 images of ");
    write_labels("train-labels-idx1-ubyte", TRAIN, label_10_last);
    assert_set_refused("train-labels-idx1-ubyte: sample 11 has label 10, mnist has labels 0 to 9");
    write_images("train-labels-idx1-ubyte", TRAIN);
    assert_set_refused("train-labels-idx1-ubyte: IDX data of 3 dimensions, expected 1");
    write_labels("train-images-idx3-ubyte", TRAIN, label_of);
    assert_set_refused("train-images-idx3-ubyte: IDX data of 1 dimensions, expected 3");
    files_remove("train-labels-idx1-ubyte");
    assert_set_refused("holds no train-labels-idx1-ubyte or train-labels-idx1-ubyte.gz of mnist");
}

static void dataset_other_file_names_are_found(void **state)
{
    static const char *const names[] = {"train-images.idx3-ubyte", "train-images-idx3-ubyte.gz",
                                        "train-images.idx3-ubyte.gz"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char from[512];
        co_dataset *data;

        snprintf(from, sizeof(from), "%s", files_path("train-images-idx3-ubyte"));
        assert_int_equal(rename(from, files_path(names[i])), 0);
        data = open_set(config_of(""), CO_SPLIT_TRAIN);
        assert_int_equal(co_dataset_count(data), TRAIN);
        co_dataset_destroy(data);
        files_remove(names[i]);
        write_set(NULL);
    }
}

static uint8_t label_up_to_3(size_t i)
{
    return (uint8_t)(i % 4);
}

static co_status open_idx(co_dataset **out, const char *keys, co_split split)
{
    char text[1024];

    snprintf(text, sizeof(text), "{name: idx, path: \"%s\"%s}", files_path("."), keys);
    return co_dataset_open(out, text, split);
}

static void idx_takes_any_file_names(void **state)
{
    const uint32_t n = TRAIN;
    uint8_t bytes[8 + TRAIN], packed[200];
    co_dataset *data = NULL;

    (void)state;
    files_write("kinds.gz", packed,
                files_gzip(packed, bytes, files_idx(bytes, 1, &n, label_up_to_3)));
    assert_int_equal(open_idx(&data, ", labels: kinds", CO_SPLIT_TRAIN), CO_OK);
    assert_int_equal(co_dataset_count(data), TRAIN);
    assert_int_equal(co_dataset_classes(data), 4);
    assert_int_equal(co_dataset_label(data, 7), 3);
    co_dataset_destroy(data);
    assert_int_equal(open_idx(&data, ", labels: kinds, classes: 26", CO_SPLIT_TEST), CO_OK);
    assert_int_equal(co_dataset_count(data), TEST);
    assert_int_equal(co_dataset_classes(data), 26);
    co_dataset_destroy(data);
    assert_int_equal(open_idx(&data, ", labels: kinds, classes: 3", CO_SPLIT_TRAIN), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "kinds.gz: sample 3 has label 3"));
    assert_int_equal(open_idx(&data, ", test_labels: none", CO_SPLIT_TEST), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "none: No such file"));
    assert_int_equal(co_dataset_open(&data, "idx", CO_SPLIT_TRAIN), CO_E_USAGE);
    files_remove("kinds.gz");
}

/* A test split without the highest label is opened alone when a run is evaluated. */
static void idx_classes_are_those_of_training(void **state)
{
    co_dataset *data = NULL;

    (void)state;
    write_set(NULL);
    assert_int_equal(open_idx(&data, "", CO_SPLIT_TEST), CO_OK);
    assert_int_equal(co_dataset_classes(data), 10);
    co_dataset_destroy(data);
    assert_int_equal(open_idx(&data, ", labels: none", CO_SPLIT_TEST), CO_OK);
    assert_int_equal(co_dataset_classes(data), TEST); /* nothing else is known */
    co_dataset_destroy(data);
    write_labels("few", TRAIN, label_up_to_3);
    assert_int_equal(open_idx(&data, ", labels: few", CO_SPLIT_TEST), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "t10k-labels-idx1-ubyte: sample 4 has label 4"));
    files_remove("few");
}

static void synthetic_same_keys_give_same_samples(void **state)
{
    static const char *const configs[] = {"synthetic", "{name: synthetic, seed: 1234}",
                                          "{name: synthetic, seed: 5}"};
    float sample[4][784];

    (void)state;
    for (size_t k = 0; k < 4; k++) {
        co_dataset *data = open_set(configs[k % 3], k < 3 ? CO_SPLIT_TRAIN : CO_SPLIT_TEST);

        assert_int_equal(co_dataset_count(data), k < 3 ? 512 : 128);
        assert_int_equal(co_dataset_read(data, sample[k], 13), CO_OK);
        assert_int_equal(co_dataset_label(data, 13), 3);
        co_dataset_destroy(data);
    }
    assert_memory_equal(sample[0], sample[1], sizeof(sample[0]));
    assert_memory_not_equal(sample[0], sample[2], sizeof(sample[0]));
    assert_memory_not_equal(sample[0], sample[3], sizeof(sample[0]));
}

/* For each class, its mean over the training split is the nearest to its test samples. */
static void synthetic_nearest_mean_is_own_class(void **state)
{
    enum { SIZE = 3 * 16 * 16 };
    static const char config[] = "{name: synthetic, shape: [3, 16, 16], classes: 7, samples: 210}";
    static float mean[7][SIZE], sample[SIZE];
    co_dataset *train = open_set(config, CO_SPLIT_TRAIN), *test = open_set(config, CO_SPLIT_TEST);
    double all = 0;

    (void)state;
    for (uint64_t i = 0; i < 210; i++) {
        assert_int_equal(co_dataset_read(train, sample, i), CO_OK);
        for (size_t p = 0; p < SIZE; p++) {
            mean[co_dataset_label(train, i)][p] += sample[p] / 30;
            all += (double)sample[p] / (210 * SIZE);
        }
    }
    assert_true(all > 0.4 && all < 0.6);
    for (uint64_t i = 0; i < co_dataset_count(test); i++) {
        float nearest = INFINITY;
        int best = -1;

        assert_int_equal(co_dataset_read(test, sample, i), CO_OK);
        for (int c = 0; c < 7; c++) {
            float distance = 0;

            for (size_t p = 0; p < SIZE; p++)
                distance += (sample[p] - mean[c][p]) * (sample[p] - mean[c][p]);
            if (distance < nearest) {
                nearest = distance;
                best = c;
            }
        }
        assert_int_equal(best, co_dataset_label(test, i));
    }
    co_dataset_destroy(test);
    co_dataset_destroy(train);
}

/* Checksums of (i + 1) * byte i, modulo 2^64, computed with Python from the raw files. */
static void check_real(const char *config, co_split split, uint64_t count, uint64_t image_sum,
                       uint64_t label_sum)
{
    co_dataset *data = open_set(config, split);
    uint64_t images = 0, labels = 0;
    float sample[784];

    assert_int_equal(co_dataset_count(data), count);
    assert_true(co_shape_equal(co_dataset_shape(data), &(co_shape){3, {1, 28, 28}}));
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(co_dataset_read(data, sample, i), CO_OK);
        labels += (i + 1) * (uint64_t)co_dataset_label(data, i);
        for (uint64_t p = 0; p < 784; p++)
            images += (i * 784 + p + 1) * (uint64_t)lrintf(sample[p] * 255.0f);
    }
    assert_true(images == image_sum);
    assert_true(labels == label_sum);
    co_dataset_destroy(data);
}

static void fashion_mnist_has_its_checksums(void **state)
{
    (void)state;
    if (access("/usr/share/datasets/fashion-mnist", R_OK) != 0) {
        print_message("skipped: Fashion-MNIST (dataset-fashion-mnist) is not installed\n");
        skip();
    }
    check_real("fashion-mnist", CO_SPLIT_TRAIN, 60000, 80794196444447784u, 8087486427u);
    check_real("fashion-mnist", CO_SPLIT_TEST, 10000, 2247812563106913u, 225777341u);
}

static void mnist_has_its_checksums(void **state)
{
    const char *path = files_real("mnist");
    char config[1200];

    (void)state;
    if (!path) {
        print_message("skipped: no MNIST in $COHORT_DATA or ../shared/data\n");
        skip();
    }
    snprintf(config, sizeof(config), "{name: mnist, path: \"%s\"}", path);
    check_real(config, CO_SPLIT_TRAIN, 60000, 36724509922664457u, 8023005948u);
    check_real(config, CO_SPLIT_TEST, 10000, 1079692235568559u, 221901817u);
}

static void dataset_failed_allocation_is_an_error(void **state)
{
    char config[1024];
    co_status st = CO_E_NOMEM;
    co_dataset *data = NULL;
    uint64_t k = 0;

    (void)state;
    snprintf(config, sizeof(config), "%s", config_of(", resize: 9, normalize: {mean: 1}"));
    while (st == CO_E_NOMEM) {
        co_mem_fail_at(++k);
        st = co_dataset_open(&data, config, CO_SPLIT_TRAIN);
    }
    co_mem_fail_at(0);
    assert_int_equal(st, CO_OK);
    assert_true(k > 6);
    co_dataset_destroy(data);
    co_dataset_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(dataset_both_splits_are_read, write_set),
        cmocka_unit_test(normalize_one_value_subtracts_and_divides),
        cmocka_unit_test(normalize_per_channel_subtracts_and_divides),
        cmocka_unit_test(resize_bilinear_equals_pytorch),
        cmocka_unit_test(resize_to_the_same_size_changes_nothing),
        cmocka_unit_test(resize_pad_adds_zeros),
        cmocka_unit_test(dataset_bad_config_is_refused),
        cmocka_unit_test(dataset_inconsistent_files_are_refused),
        cmocka_unit_test(dataset_other_file_names_are_found),
        cmocka_unit_test(idx_takes_any_file_names),
        cmocka_unit_test(idx_classes_are_those_of_training),
        cmocka_unit_test(synthetic_same_keys_give_same_samples),
        cmocka_unit_test(synthetic_nearest_mean_is_own_class),
        cmocka_unit_test(fashion_mnist_has_its_checksums),
        cmocka_unit_test(mnist_has_its_checksums),
        cmocka_unit_test(dataset_failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
