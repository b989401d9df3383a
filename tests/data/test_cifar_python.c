/*
 * test_cifar_python.c - CIFAR's version for Python: pickles in the form of the published files; any
 * other pickle is rejected.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "folder.h"

#include "core/mem.h"
#include "data/cifar.h"
#include "data/data.h"
#include "data/files.h"
#include "data/pickles.h"

static void write_file(const char *name, const uint8_t *from, size_t n)
{
    FILE *file = fopen(folder_path(name), "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(from, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void save(const char *name, pickle_writer w)
{
    write_file(name, w.at, w.n);
    free(w.at);
}

static co_dataset *open_set(const char *name, const char *keys, co_split split)
{
    co_dataset *data = NULL;
    char text[256];

    snprintf(text, sizeof(text), "{name: %s, path: \"%s\"%s}", name, folder, keys);
    if (co_dataset_open(&data, text, split) != CO_OK)
        fail_msg("%s", co_error_message());
    return data;
}

static void assert_samples(const char *name, const char *keys, co_split split, size_t first,
                           size_t n, size_t classes)
{
    co_dataset *data = open_set(name, keys, split);
    float sample[CO_CIFAR_IMAGE];

    assert_int_equal(co_dataset_count(data), n);
    assert_int_equal(co_dataset_classes(data), classes);
    for (size_t k = 0; k < n; k++) {
        assert_int_equal(co_dataset_label(data, k), (first + k) % classes);
        assert_int_equal(co_dataset_read(data, sample, k), CO_OK);
        for (size_t i = 0; i < CO_CIFAR_IMAGE; i++)
            assert_true(sample[i] == (float)pickle_pixel(first + k, i) / 255.0f);
    }
    co_dataset_destroy(data);
}

static void cifar_pickles_are_read_in_order(void **state)
{
    pickle_writer packed = {.at = malloc(PICKLE_ROOM)}, w = pickle_cifar10(40, 2, false);

    (void)state;
    assert_non_null(packed.at);
    packed.n = files_gzip(packed.at, w.at, w.n);
    free(w.at);
    save("data_batch_4", pickle_cifar10(7, 4, false));
    save("data_batch_2", pickle_cifar10(4, 3, false));
    save("data_batch_1", pickle_cifar10(3, 1, false));
    save("test_batch.gz", packed);
    assert_samples("cifar10", "", CO_SPLIT_TRAIN, 3, 8, 10);
    assert_samples("cifar10", "", CO_SPLIT_TEST, 40, 2, 10);
    assert_samples("cifar10", ", train: data_batch_4", CO_SPLIT_TRAIN, 7, 4, 10);
}

static void cifar_pickles_folder_of_archive_is_found(void **state)
{
    (void)state;
    assert_int_equal(mkdir(folder_path("cifar-100-python"), 0700), 0);
    save("cifar-100-python/train", pickle_cifar100(95, 9));
    save("cifar-100-python/test", pickle_cifar100(18, 2));
    assert_samples("cifar100", "", CO_SPLIT_TRAIN, 95, 9, 100);
    assert_samples("cifar100", ", labels: coarse", CO_SPLIT_TRAIN, 95, 9, 20);
    assert_samples("cifar100", "", CO_SPLIT_TEST, 18, 2, 100);
}

static void cifar_pickle_in_fortran_order_is_transposed(void **state)
{
    (void)state;
    save("data_batch_1", pickle_cifar10(11, 5, true));
    assert_samples("cifar10", "", CO_SPLIT_TRAIN, 11, 5, 10);
}

/* Lists are written in batches of 1000, and the memo has more than 255 entries. */
static void cifar_pickle_long_lists_are_read(void **state)
{
    enum { N = 2500 };
    pickle_writer w = pickle_begin();
    co_cifar cifar;

    (void)state;
    w.at = realloc(w.at, PICKLE_ROOM);
    pickle_string(&w, "filenames");
    pickle_list(&w, 0, N, pickle_file);
    pickle_string(&w, "labels");
    pickle_list(&w, 0, N, pickle_label);
    pickle_string(&w, "data");
    pickle_array(&w, 0, 1, false); /* too few; noticed at the end */
    PICKLE_TEXT(&w, "u.");
    assert_int_equal(co_cifar_parse(&cifar, w.at, w.n, &co_cifar10_layout, "x"), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "x: 1 images and 2500 of 'labels'"));
    free(w.at);
}

/* In the same folder or next to it, because readers share the binary file's pages. */
static void cifar_binary_files_are_preferred(void **state)
{
    uint8_t record[1 + CO_CIFAR_IMAGE];

    (void)state;
    record[0] = 5;
    for (size_t i = 0; i < CO_CIFAR_IMAGE; i++)
        record[1 + i] = pickle_pixel(25, i);
    save("data_batch_1", pickle_cifar10(1, 3, false));
    assert_samples("cifar10", "", CO_SPLIT_TRAIN, 1, 3, 10);
    assert_int_equal(mkdir(folder_path("cifar-10-batches-bin"), 0700), 0);
    write_file("cifar-10-batches-bin/data_batch_3.bin", record, sizeof(record));
    assert_samples("cifar10", "", CO_SPLIT_TRAIN, 25, 1, 10);
}

static void cifar_pickle_class_names_are_those_of_meta(void **state)
{
    pickle_writer w = pickle_begin();
    co_dataset *data;

    (void)state;
    save("test_batch", pickle_cifar10(0, 1, false));
    pickle_string(&w, "num_cases_per_batch");
    pickle_number(&w, 10000);
    pickle_string(&w, "label_names");
    pickle_list(&w, 0, 10, pickle_class);
    pickle_string(&w, "num_vis");
    pickle_number(&w, 3072);
    PICKLE_TEXT(&w, "u.");
    save("batches.meta", w);
    data = open_set("cifar10", "", CO_SPLIT_TEST);
    assert_string_equal(co_dataset_class_name(data, 0), "class 0");
    assert_string_equal(co_dataset_class_name(data, 9), "class 9");
    co_dataset_destroy(data);
    write_file("batches.meta", (const uint8_t *)"cos\nsystem\n", 11); /* ignored */
    data = open_set("cifar10", "", CO_SPLIT_TEST);
    assert_null(co_dataset_class_name(data, 0));
    co_dataset_destroy(data);
}

static void assert_refused(const uint8_t *at, size_t n, const char *words)
{
    uint8_t *copy = malloc(n ? n : 1); /* exact size, so that reads past its end are detected */
    co_cifar cifar;

    assert_non_null(copy);
    memcpy(copy, at, n);
    if (co_cifar_parse(&cifar, copy, n, &co_cifar10_layout, "file") != CO_E_DATA)
        fail_msg("%zu bytes are taken, not refused by '%s'", n, words);
    if (!strstr(co_error_message(), words) || strncmp(co_error_message(), "file: ", 6) != 0)
        fail_msg("'%s' does not say '%s'", co_error_message(), words);
    free(copy);
}

static void cifar_pickle_of_other_content_is_refused(void **state)
{
    static const struct {
        const char *at;
        size_t n;
        const char *words;
    } cases[] = {
#define CASE(literal, words) {literal, sizeof(literal) - 1, words}
        CASE(PICKLE "cos\nsystem\n(U\4true\x85R.", "names something that is no array of numpy"),
        CASE(PICKLE "cnumpy.core.multiarray\nscalar\n.", "names something"),
        CASE(PICKLE "cbuiltins\neval\n.", "names something"),
        CASE("\x80\x03}.", "no pickle of protocol 2"),
        CASE("\x80\x04\x95\0\0\0\0\0\0\0\0}.", "no pickle of protocol 2"),
        CASE("\x80", "cut short"),
        CASE(PICKLE, "cut short"),
        CASE(PICKLE "}", "cut short"),
        CASE(PICKLE "X\1\0\0\0a.", "an opcode 0x58"),
        CASE(PICKLE "i", "an opcode 0x69"),
        CASE(PICKLE "P1\n", "an opcode 0x50"),
        CASE(PICKLE "}(}u.", "a second dictionary"),
        CASE(PICKLE "}.x", "more bytes after the end"),
        CASE(PICKLE "].", "not one dictionary"),
        CASE(PICKLE ".", "not one dictionary"),
        CASE(PICKLE "}.", "no array 'data'"),
        CASE(PICKLE "}U\4dataK\1s.", "no array 'data'"),
        CASE(PICKLE "}K\1K\1s.", "a key that is no string"),
        CASE(PICKLE "s", "too few values"),
        CASE(PICKLE "a", "too few values"),
        CASE(PICKLE "K\1K\1a", "a list that is not there"),
        CASE(PICKLE "e", "values without a mark"),
        CASE(PICKLE "(e", "a list that is not there"),
        CASE(PICKLE "K\1(e", "a list that is not there"),
        CASE(PICKLE "(u", "a dictionary that is not there"),
        CASE(PICKLE "}(K\1u", "a dictionary that is not there"),
        CASE(PICKLE "\x85", "a tuple of too few values"),
        CASE(PICKLE "(\x85", "a tuple of too few values"),
        CASE(PICKLE "(NNNNNNNNNt", "too large a tuple"),
        CASE(PICKLE "q\1", "nothing to keep"),
        CASE(PICKLE "Nr\xff\xff\xff\xff", "too many values"),
        CASE(PICKLE "h\1", "uses what was never kept"),
        CASE(PICKLE "Nj\0\0\0\1", "uses what was never kept"),
        CASE(PICKLE "U\5abc", "cut short"),
        CASE(PICKLE "T\xff\xff\xff\xff", "cut short"),
        CASE(PICKLE "R", "calls something"),
        CASE(PICKLE "U\1aN\x85R", "calls something"),
        CASE(PICKLE "cnumpy\ndtype\nU\2u2\x85R", "not of uint8"),
        CASE(PICKLE "cnumpy\nndarray\nU\2u1\x85R", "not of uint8"),
        CASE(PICKLE "cnumpy\ndtype\n)R", "not of uint8"),
        CASE(PICKLE "b", "a state without an object"),
        CASE(PICKLE "N)b", "the state of something"),
        CASE(PICKLE "cnumpy\ndtype\nU\2u1\x85RK\3U\1>\x86"
                    "b",
             "the state of something"),
#undef CASE
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_refused((const uint8_t *)cases[i].at, cases[i].n, cases[i].words);
}

static size_t find(const pickle_writer *w, const char *what, size_t n)
{
    for (size_t i = 0; i + n <= w->n; i++)
        if (memcmp(w->at + i, what, n) == 0)
            return i;
    fail();
    return 0;
}

static void cifar_pickle_of_uneven_arrays_is_refused(void **state)
{
    pickle_writer w = pickle_cifar10(0, 2, false);
    const size_t rows = find(&w, "K\2M\0\x0c", 5), labels = find(&w, "(K\0K\1e", 6);

    (void)state;
    w.at[rows + 1] = 3;
    assert_refused(w.at, w.n, "more or fewer bytes than its shape says");
    w.at[rows + 1] = 0;
    assert_refused(w.at, w.n, "not rows of uint8");
    w.at[rows + 1] = 2;
    w.at[labels + 2] = 10;
    assert_refused(w.at, w.n, "record 0 has label 10, cifar10 has 0 to 9");
    w.at[labels + 1] = 'U'; /* the rest is another pickle */
    assert_refused(w.at, w.n, "");
    free(w.at);
    w = pickle_cifar100(0, 2);
    assert_refused(w.at, w.n, "2 images and 0 of 'labels'");
    free(w.at);
}

/* Every prefix and every changed byte results in an error or in valid samples. */
static void cifar_pickle_damage_anywhere_is_safe(void **state)
{
    pickle_writer w = pickle_cifar10(0, 1, false);
    const size_t pixels = find(&w, "\x89T", 2) + 6;

    (void)state;
    for (size_t n = 0; n<w.n; n += n> pixels && n + 3000 < pixels + CO_CIFAR_IMAGE ? 997 : 1)
        assert_refused(w.at, n, "");
    for (size_t i = 0; i < w.n; i++) {
        const uint8_t was = w.at[i];

        if (i > pixels && i < pixels + CO_CIFAR_IMAGE - 2)
            continue;
        for (unsigned change = 1; change < 256; change += 2) {
            co_cifar cifar;

            w.at[i] = (uint8_t)(was ^ change);
            if (co_cifar_parse(&cifar, w.at, w.n, &co_cifar10_layout, "x") == CO_OK) {
                assert_int_equal(cifar.count, 1);
                assert_true(cifar.label[0] < 10);
                co_cifar_close(&cifar);
            }
        }
        w.at[i] = was;
    }
    free(w.at);
}

/* A few bytes that claim more than there is memory for. */
static void cifar_pickle_memory_is_bounded(void **state)
{
    enum { N = 1 << 21 };
    uint8_t *at = malloc(N + 2);

    (void)state;
    assert_non_null(at);
    at[0] = (uint8_t)PICKLE[0];
    at[1] = (uint8_t)PICKLE[1];
    memset(at + 2, 'N', N);
    assert_refused(at, N + 2, "too many values");
    memset(at + 2, '(', N);
    assert_refused(at, N + 2, "too many values");
    memset(at + 2, ']', N);
    assert_refused(at, N + 2, "too many lists");
    memset(at + 2, ')', N);
    assert_refused(at, N + 2, "too many");
    free(at);
}

static void cifar_pickle_failed_allocation_is_an_error(void **state)
{
    pickle_writer w = pickle_cifar10(0, 2, true);
    co_status st = CO_E_NOMEM;
    uint64_t k = 0;
    co_cifar cifar;

    (void)state;
    while (st == CO_E_NOMEM) {
        co_mem_fail_at(++k);
        st = co_cifar_parse(&cifar, w.at, w.n, &co_cifar10_layout, "x");
    }
    co_mem_fail_at(0);
    assert_int_equal(st, CO_OK);
    assert_true(k > 4);
    co_cifar_close(&cifar);
    free(w.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_remove)
        TEST(cifar_pickles_are_read_in_order),
        TEST(cifar_pickles_folder_of_archive_is_found),
        TEST(cifar_pickle_in_fortran_order_is_transposed),
        TEST(cifar_pickle_long_lists_are_read),
        TEST(cifar_binary_files_are_preferred),
        TEST(cifar_pickle_class_names_are_those_of_meta),
        TEST(cifar_pickle_of_other_content_is_refused),
        TEST(cifar_pickle_of_uneven_arrays_is_refused),
        TEST(cifar_pickle_damage_anywhere_is_safe),
        TEST(cifar_pickle_memory_is_bounded),
        TEST(cifar_pickle_failed_allocation_is_an_error),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
