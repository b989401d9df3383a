/* test_cifar.c - CIFAR's binary files: valid ones in every layout, and each kind of damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/mem.h"
#include "data/cifar.h"
#include "data/data.h"
#include "data/files.h"
#include "folder.h"

#define MOST 4 /* records per file */

static uint8_t pixel_of(size_t record, size_t i)
{
    return (uint8_t)(record * 31 + i * i % 253);
}

/* Records first .. first + n - 1 of a set with `labels` labels: coarse is record % 20, fine (or the
   only one) record % classes. */
static size_t records(uint8_t *out, size_t first, size_t n, size_t labels)
{
    uint8_t *at = out;

    for (size_t r = first; r < first + n; r++) {
        if (labels == 2)
            *at++ = (uint8_t)(r % 20);
        *at++ = (uint8_t)(r % (labels == 2 ? 100 : 10));
        for (size_t i = 0; i < CO_CIFAR_IMAGE; i++)
            *at++ = pixel_of(r, i);
    }
    return (size_t)(at - out);
}

static void put(const char *name, const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(folder_path(name), "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Write a file of records; compressed if its name ends in .gz. */
static void put_records(const char *name, size_t first, size_t n, size_t labels)
{
    static uint8_t bytes[MOST * (CO_CIFAR_IMAGE + 2)], packed[sizeof(bytes) + 100];
    const size_t size = records(bytes, first, n, labels);
    const bool gzip = strcmp(name + strlen(name) - 3, ".gz") == 0;

    put(name, gzip ? packed : bytes, gzip ? files_gzip(packed, bytes, size) : size);
}

static const char *config_of(const char *name, const char *keys)
{
    static char text[1024];

    snprintf(text, sizeof(text), "{name: %s, path: \"%s\"%s}", name, folder, keys);
    return text;
}

static co_dataset *open_set(const char *name, const char *keys, co_split split)
{
    co_dataset *data = NULL;

    if (co_dataset_open(&data, config_of(name, keys), split) != CO_OK)
        fail_msg("%s", co_error_message());
    return data;
}

/* Checks that the set consists of records first .. first + n - 1 in order. */
static void assert_records(const char *name, const char *keys, co_split split, size_t first,
                           size_t n, int classes)
{
    co_dataset *data = open_set(name, keys, split);
    float sample[CO_CIFAR_IMAGE];

    assert_int_equal(co_dataset_count(data), n);
    assert_int_equal(co_dataset_classes(data), classes);
    assert_true(co_shape_equal(co_dataset_shape(data), &(co_shape){3, {3, 32, 32}}));
    for (size_t k = 0; k < n; k++) {
        assert_int_equal(co_dataset_label(data, k), (first + k) % (size_t)classes);
        assert_int_equal(co_dataset_read(data, sample, k), CO_OK);
        for (size_t i = 0; i < CO_CIFAR_IMAGE; i++)
            assert_true(sample[i] == (float)pixel_of(first + k, i) / 255.0f);
    }
    co_dataset_destroy(data);
}

static void cifar_some_batches_are_read_in_order(void **state)
{
    (void)state;
    put_records("data_batch_4.bin.gz", 7, 4, 1);
    put_records("data_batch_2.bin", 4, 3, 1);
    put_records("test_batch.bin", 20, 2, 1);
    assert_records("cifar10", "", CO_SPLIT_TRAIN, 4, 7, 10);
    assert_records("cifar10", "", CO_SPLIT_TEST, 20, 2, 10);
    put_records("data_batch_1.bin", 3, 1, 1);
    assert_records("cifar10", "", CO_SPLIT_TRAIN, 3, 8, 10);
}

static void cifar_folder_of_archive_is_found(void **state)
{
    (void)state;
    assert_int_equal(mkdir(folder_path("cifar-100-binary"), 0700), 0);
    put_records("cifar-100-binary/train.bin", 95, 4, 2);
    put_records("cifar-100-binary/test.bin.gz", 18, 3, 2);
    assert_records("cifar100", "", CO_SPLIT_TRAIN, 95, 4, 100);
    assert_records("cifar100", "", CO_SPLIT_TEST, 18, 3, 100);
    assert_records("cifar100", ", labels: fine", CO_SPLIT_TEST, 18, 3, 100);
    assert_records("cifar100", ", labels: coarse", CO_SPLIT_TRAIN, 95, 4, 20);
}

static void cifar_named_files_are_read(void **state)
{
    (void)state;
    put_records("data_batch_1.bin", 0, 1, 1);
    put_records("mine.gz", 4, 2, 1);
    put_records("other", 8, 3, 1);
    assert_records("cifar10", ", train: mine, test: other", CO_SPLIT_TRAIN, 4, 2, 10);
    assert_records("cifar10", ", train: mine.gz", CO_SPLIT_TRAIN, 4, 2, 10);
    assert_records("cifar10", ", train: mine, test: other", CO_SPLIT_TEST, 8, 3, 10);
    assert_records("cifar10", ", test: other", CO_SPLIT_TRAIN, 0, 1, 10);
}

static void cifar_class_names_are_those_of_meta_file(void **state)
{
    static const char ten[] = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj k\n\n";
    co_dataset *data;

    (void)state;
    put_records("test_batch.bin", 0, 1, 1);
    data = open_set("cifar10", "", CO_SPLIT_TEST);
    assert_null(co_dataset_class_name(data, 9));
    co_dataset_destroy(data);
    put("batches.meta.txt", (const uint8_t *)ten, sizeof(ten) - 1);
    data = open_set("cifar10", "", CO_SPLIT_TEST);
    assert_string_equal(co_dataset_class_name(data, 0), "a");
    assert_string_equal(co_dataset_class_name(data, 9), "j k");
    co_dataset_destroy(data);
    put("batches.meta.txt", (const uint8_t *)ten, 6); /* three names: of another set */
    data = open_set("cifar10", "", CO_SPLIT_TEST);
    assert_null(co_dataset_class_name(data, 0));
    co_dataset_destroy(data);
}

static void assert_refused(const char *name, const char *keys, const char *words)
{
    co_dataset *data = NULL;

    assert_int_equal(co_dataset_open(&data, config_of(name, keys), CO_SPLIT_TRAIN), CO_E_DATA);
    assert_null(data);
    if (!strstr(co_error_message(), words) || !strstr(co_error_message(), folder))
        fail_msg("'%s' does not say '%s'", co_error_message(), words);
}

static void cifar_partial_record_is_refused(void **state)
{
    static uint8_t bytes[2 * (CO_CIFAR_IMAGE + 2)], packed[sizeof(bytes) + 100];
    const size_t size = records(bytes, 0, 2, 1), two = 2 * (CO_CIFAR_IMAGE + 2);
    const size_t gzip = files_gzip(packed, bytes, size);

    (void)state;
    put("data_batch_3.bin", bytes, size - 1);
    assert_refused("cifar10", "",
                   "data_batch_3.bin: 6145 bytes are no whole number of cifar10's records of 3073");
    put("data_batch_3.bin", bytes, size + 1);
    assert_refused("cifar10", "", "data_batch_3.bin: 6147 bytes are no whole number");
    put("data_batch_3.bin", bytes, 1);
    assert_refused("cifar10", "", "fetch it again");
    put("data_batch_3.bin", bytes, 0);
    assert_refused("cifar10", "", "data_batch_3.bin: is empty");
    put("data_batch_3.bin", packed, gzip - 3);
    assert_refused("cifar10", "", "data_batch_3.bin: gzip data that is damaged or cut short");
    put("train.bin", bytes, size);
    assert_refused("cifar100", "", "train.bin: 6146 bytes are no whole number of cifar100's");
    assert_int_equal(records(bytes, 0, 2, 2), two);
    put("data_batch_3.bin", bytes, two);
    assert_refused("cifar10", "", "no file of cifar-10-binary.tar.gz");
}

static void cifar_label_beyond_classes_is_refused(void **state)
{
    static uint8_t bytes[2 * (CO_CIFAR_IMAGE + 2)];
    size_t size = records(bytes, 0, 2, 1);

    (void)state;
    bytes[CO_CIFAR_IMAGE + 1] = 10;
    put("data_batch_1.bin", bytes, size);
    assert_refused("cifar10", "",
                   "data_batch_1.bin: record 1 has label 10, cifar10 has 0 to 9; is it a file of");
    size = records(bytes, 0, 2, 2);
    bytes[CO_CIFAR_IMAGE + 2] = 20;
    put("train.bin", bytes, size);
    assert_refused("cifar100", "", "train.bin: record 1 has coarse label 20, cifar100 has 0 to 19");
    assert_refused("cifar100", ", labels: fine", "record 1 has coarse label 20");
    bytes[CO_CIFAR_IMAGE + 2] = 19;
    bytes[1] = 100;
    put("train.bin", bytes, size);
    assert_refused("cifar100", ", labels: coarse", "record 0 has fine label 100");
}

static void cifar_missing_files_are_refused(void **state)
{
    (void)state;
    assert_refused("cifar10", "",
                   "holds no data_batch_1.bin to data_batch_5.bin, plain or .gz; data.path is the");
    assert_refused("cifar10", "", "or cifar-10-batches-py of cifar-10-python.tar.gz");
    assert_refused("cifar100", "", "holds no train.bin, plain or .gz");
    assert_refused("cifar10", ", train: none", "none: No such file");
}

static void cifar_missing_path_is_refused(void **state)
{
    co_dataset *data = NULL;

    (void)state;
    assert_int_equal(co_dataset_open(&data, "cifar10", CO_SPLIT_TRAIN), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "`cohort data get cifar10` fetches it"));
    assert_int_equal(co_dataset_open(&data, "{name: cifar10, path: /nowhere}", 0), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "/nowhere: No such file or directory; data.path"));
    assert_int_equal(co_dataset_open(&data, "{name: cifar100, labels: all}", 0), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "one of coarse, fine"));
}

/* Checksums of (i + 1) * byte i, modulo 2^64, computed with numpy from the raw files. */
static void check_real(const char *keys, co_split split, uint64_t count, uint64_t image_sum,
                       uint64_t label_sum)
{
    const char *path = files_real("cifar10");
    uint64_t images = 0, labels = 0;
    static float sample[CO_CIFAR_IMAGE];
    co_dataset *data;
    char config[1200];

    if (!path) {
        print_message("skipped: no CIFAR-10 in $COHORT_DATA or ../shared/data\n");
        skip();
    }
    snprintf(config, sizeof(config), "{name: cifar10, path: \"%s\"%s}", path, keys);
    assert_int_equal(co_dataset_open(&data, config, split), CO_OK);
    assert_int_equal(co_dataset_count(data), count);
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(co_dataset_read(data, sample, i), CO_OK);
        labels += (i + 1) * (uint64_t)co_dataset_label(data, i);
        for (uint64_t p = 0; p < CO_CIFAR_IMAGE; p++)
            images += (i * CO_CIFAR_IMAGE + p + 1) * (uint64_t)lrintf(sample[p] * 255.0f);
    }
    assert_true(images == image_sum);
    assert_true(labels == label_sum);
    co_dataset_destroy(data);
}

static void cifar_real_set_has_its_checksums(void **state)
{
    (void)state;
    check_real("", CO_SPLIT_TRAIN, 20000, 228276140693813198u, 899281512u);
    check_real("", CO_SPLIT_TEST, 10000, 57158176490195209u, 224936223u);
}

static void cifar_exact_part_has_its_checksums(void **state)
{
    static const char keys[] = ", train: exact/train_first4000_exact.bin, "
                               "test: exact/test_first1000_exact.bin.gz";

    (void)state;
    check_real(keys, CO_SPLIT_TRAIN, 4000, 9092484099016977u, 36513691u);
    check_real(keys, CO_SPLIT_TEST, 1000, 571419714241576u, 2271605u);
}

static void cifar_failed_allocation_is_an_error(void **state)
{
    co_dataset *data = NULL;
    co_status st = CO_E_NOMEM;
    uint64_t k = 0;

    (void)state;
    put_records("data_batch_2.bin", 4, 3, 1);
    put_records("data_batch_5.bin.gz", 4, 3, 1);
    put("batches.meta.txt", (const uint8_t *)"a\n", 2);
    while (st == CO_E_NOMEM) {
        co_mem_fail_at(++k);
        st = co_dataset_open(&data, config_of("cifar10", ""), CO_SPLIT_TRAIN);
    }
    co_mem_fail_at(0);
    assert_int_equal(st, CO_OK);
    assert_true(k > 6);
    assert_int_equal(co_dataset_count(data), 6);
    co_dataset_destroy(data);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_make, folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(cifar_some_batches_are_read_in_order),
        IN_FOLDER(cifar_folder_of_archive_is_found),
        IN_FOLDER(cifar_named_files_are_read),
        IN_FOLDER(cifar_class_names_are_those_of_meta_file),
        IN_FOLDER(cifar_partial_record_is_refused),
        IN_FOLDER(cifar_label_beyond_classes_is_refused),
        IN_FOLDER(cifar_missing_files_are_refused),
        cmocka_unit_test(cifar_missing_path_is_refused),
        cmocka_unit_test(cifar_real_set_has_its_checksums),
        cmocka_unit_test(cifar_exact_part_has_its_checksums),
        IN_FOLDER(cifar_failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
