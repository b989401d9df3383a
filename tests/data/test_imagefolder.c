/*
 * test_imagefolder.c - folders of images: which files, in which order, with which labels; and
 * errors for unsuitable folders and files.
 */
#include "folder.h"

#include <cohort/data.h>
#include <errno.h>
#include <sys/stat.h>

#include "core/fs.h"
#include "core/mem.h"
#include "data/data.h"
#include "pictures.h"

static void put(const char *name, const void *bytes, size_t size)
{
    char *path = folder_path(name), *slash = strrchr(path, '/');
    FILE *file;

    *slash = '\0';
    assert_int_equal(co_fs_mkdirs(path), CO_OK);
    *slash = '/';
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void put_picture(const char *name, int height, int width, unsigned seed)
{
    const picture p = {.width = width, .height = height, .channels = 3, .seed = seed};
    size_t size;
    uint8_t *bytes = strstr(name, "png") ? picture_png(&size, &p) : picture_jpeg(&size, &p);

    put(name, bytes, size);
    free(bytes);
}

static co_dataset *open_set(const char *more, co_split split)
{
    co_dataset *data = NULL;
    char text[512];

    snprintf(text, sizeof(text), "{name: imagefolder, path: %s%s}", folder, more);
    if (co_dataset_open(&data, text, split) != CO_OK)
        return NULL;
    return data;
}

static void refuse(const char *more, co_split split, const char *name, const char *word)
{
    co_dataset *data = open_set(more, split);

    assert_null(data);
    if (!strstr(co_error_message(), name) || !strstr(co_error_message(), word))
        fail_msg("'%s' does not name '%s' and '%s'", co_error_message(), name, word);
}

static int make(void **state)
{
    if (folder_make(state) != 0)
        return -1;
    put_picture("train/dog/b.JPEG", 20, 30, 1);
    put_picture("train/dog/a.png", 40, 30, 2);
    put_picture("train/cat/z.jpg", 20, 20, 3);
    put("train/cat/readme.txt", "no image", 8);
    put("train/.cache/x.jpg", "", 0);
    put_picture("train/eel/1.jpeg", 10, 10, 4);
    put_picture("val/dog/v.jpg", 16, 16, 5);
    return 0;
}

static void check_name(const co_dataset *data, uint64_t i, const char *expected, int label)
{
    char name[512];

    co_dataset_sample_name(data, name, sizeof(name), i);
    assert_string_equal(name, folder_path(expected));
    assert_int_equal(co_dataset_label(data, i), label);
}

static void imagefolder_order_and_labels_are_sorted(void **state)
{
    co_dataset *data = open_set(", resize: [8, 6]", CO_SPLIT_TRAIN);

    (void)state;
    assert_non_null(data);
    assert_int_equal(co_dataset_count(data), 4);
    assert_int_equal(co_dataset_classes(data), 3);
    check_name(data, 0, "train/cat/z.jpg", 0);
    check_name(data, 1, "train/dog/a.png", 1);
    check_name(data, 2, "train/dog/b.JPEG", 1);
    check_name(data, 3, "train/eel/1.jpeg", 2);
    assert_string_equal(co_dataset_class_name(data, 0), "cat");
    assert_string_equal(co_dataset_class_name(data, 2), "eel");
    assert_int_equal(co_dataset_shape(data)->dim[0], 3);
    assert_int_equal(co_dataset_shape(data)->dim[1], 8);
    assert_int_equal(co_dataset_shape(data)->dim[2], 6);
    co_dataset_destroy(data);
}

/* The test split has the training split's labels, although it has only one class. */
static void imagefolder_test_labels_are_those_of_training(void **state)
{
    co_dataset *data = open_set(", resize: 8", CO_SPLIT_TEST);

    (void)state;
    assert_non_null(data);
    assert_int_equal(co_dataset_count(data), 1);
    assert_int_equal(co_dataset_classes(data), 3);
    check_name(data, 0, "val/dog/v.jpg", 1);
    co_dataset_destroy(data);
}

static void imagefolder_pixels_equal_decoded_file(void **state)
{
    const picture p = {.width = 30, .height = 40, .channels = 3, .seed = 2};
    static float out[3 * 40 * 30];
    co_dataset *data = open_set(", center_crop: [40, 30]", CO_SPLIT_TRAIN);

    (void)state;
    assert_non_null(data);
    assert_int_equal(co_dataset_read(data, out, 1), CO_OK);
    for (int i = 0; i < 3600; i++)
        assert_float_equal(out[i], picture_pixel(&p, i / 1200, i % 1200 / 30, i % 30) / 255.0f,
                           1e-6);
    co_dataset_destroy(data);
    data = open_set(", channels: 1, resize: 8", CO_SPLIT_TRAIN);
    assert_non_null(data);
    assert_int_equal(co_dataset_shape(data)->dim[0], 1);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(co_dataset_read(data, out, i), CO_OK);
    co_dataset_destroy(data);
}

static void expect_read_error(uint64_t i, const char *more, const char *name, const char *word)
{
    co_dataset *data = open_set(more, CO_SPLIT_TRAIN);
    static float out[3 * 64 * 64];

    assert_non_null(data);
    assert_int_equal(co_dataset_read(data, out, i), CO_E_DATA);
    if (!strstr(co_error_message(), name) || !strstr(co_error_message(), word))
        fail_msg("'%s' does not name '%s' and '%s'", co_error_message(), name, word);
    co_dataset_destroy(data);
}

static void imagefolder_bad_file_is_named(void **state)
{
    const picture p = {.width = 64, .height = 64, .channels = 3};
    size_t size;
    uint8_t *bytes = picture_jpeg(&size, &p);

    (void)state;
    put("train/cat/z.jpg", bytes, size / 2);
    expect_read_error(0, ", resize: 8", "train/cat/z.jpg: ", "cut short");
    put("train/cat/z.jpg", "<html>404", 9);
    expect_read_error(0, ", resize: 8", "train/cat/z.jpg: ", "neither JPEG nor PNG");
    put("train/cat/z.jpg", "", 0);
    expect_read_error(0, ", resize: 8", "train/cat/z.jpg: ", "too few");
    unlink(folder_path("train/cat/z.jpg"));
    assert_int_equal(mkfifo(folder_path("train/cat/z.jpg"), 0600), 0);
    expect_read_error(0, ", resize: 8", "train/cat/z.jpg: ", "not a regular file");
    unlink(folder_path("train/cat/z.jpg"));
    assert_int_equal(symlink("nowhere", folder_path("train/cat/z.jpg")), 0);
    expect_read_error(0, ", resize: 8", "train/cat/z.jpg: ", strerror(ENOENT));
    unlink(folder_path("train/cat/z.jpg"));
    put_picture("train/cat/z.jpg", 20, 20, 3);
    free(bytes);
}

static void imagefolder_different_sizes_are_refused(void **state)
{
    co_dataset *data = open_set("", CO_SPLIT_TRAIN);
    static float out[3 * 64 * 64];

    (void)state;
    if (data) { /* found when opening, or at the first image that differs */
        assert_int_equal(co_dataset_read(data, out, 1), CO_E_DATA);
        co_dataset_destroy(data);
    }
    assert_non_null(strstr(co_error_message(), "resize"));
    assert_non_null(strstr(co_error_message(), "train/dog/a.png"));
}

/* Without a size of its own the data set has that of the first image that can be read. */
static void imagefolder_damaged_first_image_is_skipped(void **state)
{
    co_dataset *data;

    (void)state;
    put("same/cat/1.jpg", "", 0);
    put("same/cat/2.jpg", "<html>404", 9);
    refuse(", train: same, on_bad_sample: skip", CO_SPLIT_TRAIN, "same/cat/2.jpg", "neither JPEG");
    put_picture("same/cat/3.jpg", 20, 30, 1);
    refuse(", train: same", CO_SPLIT_TRAIN, "same/cat/1.jpg", "too few");
    data = open_set(", train: same, on_bad_sample: skip", CO_SPLIT_TRAIN);
    assert_non_null(data);
    assert_int_equal(co_dataset_shape(data)->dim[1], 20);
    assert_int_equal(co_dataset_shape(data)->dim[2], 30);
    co_dataset_destroy(data);
}

static void imagefolder_bad_folder_is_refused(void **state)
{
    (void)state;
    refuse(", resize: 8, train: other", CO_SPLIT_TRAIN, "/other", "data.train");
    refuse(", resize: 8, test: other", CO_SPLIT_TEST, "/other", "data.test");
    refuse(", channels: 2, resize: 8", CO_SPLIT_TRAIN, "channels", "1 or 3");
    assert_int_equal(mkdir(folder_path("train/fox"), 0700), 0);
    refuse(", resize: 8", CO_SPLIT_TRAIN, "train/fox", "without images");
    assert_int_equal(mkdir(folder_path("train/fox/more"), 0700), 0);
    refuse(", resize: 8", CO_SPLIT_TRAIN, "train/fox/more", "folder within");
    rmdir(folder_path("train/fox/more"));
    rmdir(folder_path("train/fox"));
    put_picture("val/gnu/1.jpg", 8, 8, 0);
    refuse(", resize: 8", CO_SPLIT_TEST, "val/gnu", "does not have");
    unlink(folder_path("val/gnu/1.jpg"));
    rmdir(folder_path("val/gnu"));
    assert_int_equal(mkdir(folder_path("none"), 0700), 0);
    refuse(", resize: 8, train: none", CO_SPLIT_TRAIN, "none", "no folder");
    refuse(", test: none", CO_SPLIT_TEST, "none", "no folder");
    /* a loop of links is ignored like any file name */
    assert_int_equal(symlink("loop", folder_path("train/loop")), 0);
    assert_int_equal(symlink("../train", folder_path("train/up")), 0);
    refuse(", resize: 8", CO_SPLIT_TRAIN, "train/up", "folder within");
    unlink(folder_path("train/up"));
    unlink(folder_path("train/loop"));
}

static void imagefolder_failed_allocation_is_an_error(void **state)
{
    static float out[3 * 8 * 8];

    (void)state;
    for (uint64_t k = 1;; k++) {
        co_dataset *data;
        bool done = false;

        co_mem_fail_at(k);
        data = open_set(", resize: 8", CO_SPLIT_TRAIN);
        if (data)
            done = co_dataset_read(data, out, 1) == CO_OK;
        co_mem_fail_at(0);
        co_dataset_destroy(data);
        if (done)
            break;
        assert_true(k < 500);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(imagefolder_order_and_labels_are_sorted),
        cmocka_unit_test(imagefolder_test_labels_are_those_of_training),
        cmocka_unit_test(imagefolder_pixels_equal_decoded_file),
        cmocka_unit_test(imagefolder_bad_file_is_named),
        cmocka_unit_test(imagefolder_different_sizes_are_refused),
        cmocka_unit_test(imagefolder_damaged_first_image_is_skipped),
        cmocka_unit_test(imagefolder_bad_folder_is_refused),
        cmocka_unit_test(imagefolder_failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, make, folder_remove);
}
