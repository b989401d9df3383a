/* test_tar.c - shards give the samples of what they were made of, as do tar files of other
   programs; and what is wrong with one is said with its name. */
#include "folder.h"

#include <cohort/data.h>
#include <sys/stat.h>

#include "core/fs.h"
#include "core/mem.h"
#include "data/data.h"
#include "data/shard_pattern.h"
#include "data/shard_set.h"
#include "data/shard_write.h"
#include "pictures.h"

enum { CLASSES = 3, EACH = 7, SAMPLES = CLASSES * EACH };

static void put(const char *name, const void *bytes, size_t n)
{
    FILE *file = fopen(folder_path(name), "w");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

static void put_picture(const char *name, unsigned seed, bool png)
{
    const picture p = {.width = 20 + (int)seed % 9, .height = 17, .channels = 3, .seed = seed};
    size_t size;
    uint8_t *bytes = png ? picture_png(&size, &p) : picture_jpeg(&size, &p);

    put(name, bytes, size);
    free(bytes);
}

static void make_images(void)
{
    char name[64];

    mkdir(folder_path("images"), 0700);
    for (int split = 0; split < 2; split++) {
        snprintf(name, sizeof(name), "images/%s", split ? "val" : "train");
        mkdir(folder_path(name), 0700);
        for (unsigned c = 0; c < CLASSES; c++) {
            snprintf(name, sizeof(name), "images/%s/class %u", split ? "val" : "train", c);
            mkdir(folder_path(name), 0700);
            for (unsigned i = 0; i < EACH; i++) {
                snprintf(name, sizeof(name), "images/%s/class %u/%u.%s", split ? "val" : "train", c,
                         i, i % 3 ? "jpg" : "png");
                put_picture(name, 100 * c + i + 1000 * (unsigned)split, i % 3 == 0);
            }
        }
    }
}

static co_status tick(void *arg)
{
    ++*(int *)arg;
    return CO_OK;
}

static co_dataset *open_set(const char *value, const char *below, co_split split)
{
    char text[512];
    co_dataset *data;

    snprintf(text, sizeof(text), value, folder_path(below));
    if (co_dataset_open(&data, text, split) != CO_OK)
        fail_msg("%s", co_error_message());
    return data;
}

#define IMAGES "{name: imagefolder, path: %s, resize: 16}"
#define TAR    "{name: tar, path: %s, resize: 16}"

static void write_shards(const char *to, const co_dataset *data, uint32_t shards)
{
    int ticks = 0;
    co_shard_writing writing = {.data = data,
                                .folder = folder_path(to),
                                .prefix = "part",
                                .shards = shards,
                                .tick = tick,
                                .arg = &ticks};

    mkdir(folder_path(to), 0700);
    if (co_shard_write(&writing) != CO_OK)
        fail_msg("%s", co_error_message());
    assert_int_equal(ticks, co_dataset_count(data));
}

static void make_shards(void)
{
    mkdir(folder_path("set"), 0700);
    for (int split = 0; split < 2; split++) {
        co_dataset *data = open_set(IMAGES, "images", (co_split)split);

        write_shards(split ? "set/val" : "set/train", data, 4);
        co_dataset_destroy(data);
    }
}

static int make(void **state)
{
    if (folder_make(state) != 0)
        return -1;
    make_images();
    make_shards();
    return 0;
}

static void expect_same_samples(const co_dataset *a, const co_dataset *b)
{
    co_buffer one = {0}, other = {0};

    assert_int_equal(co_dataset_count(a), co_dataset_count(b));
    assert_int_equal(co_dataset_classes(a), co_dataset_classes(b));
    for (uint64_t i = 0; i < co_dataset_count(a); i++) {
        co_bytes x, y;

        assert_int_equal(co_dataset_stored_sample(&x, a, &one, i), CO_OK);
        assert_int_equal(co_dataset_stored_sample(&y, b, &other, i), CO_OK);
        assert_int_equal(x.n, y.n);
        assert_memory_equal(x.at, y.at, x.n);
        assert_int_equal(co_dataset_label(a, i), co_dataset_label(b, i));
    }
    co_buffer_free(&one);
    co_buffer_free(&other);
}

static void tar_shards_have_samples_of_folder(void **state)
{
    (void)state;
    for (int split = 0; split < 2; split++) {
        co_dataset *images = open_set(IMAGES, "images", (co_split)split);
        co_dataset *tar = open_set(TAR, "set", (co_split)split);

        expect_same_samples(images, tar);
        for (int32_t c = 0; c < CLASSES; c++)
            assert_string_equal(co_dataset_class_name(tar, c), co_dataset_class_name(images, c));
        co_dataset_destroy(images);
        co_dataset_destroy(tar);
    }
}

static void tar_without_index_has_same_samples(void **state)
{
    co_dataset *indexed = open_set(TAR, "set", CO_SPLIT_TEST), *walked;

    (void)state;
    rename(folder_path("set/train/shards.index"), folder_path("train.index"));
    rename(folder_path("set/val/shards.index"), folder_path("val.index"));
    walked = open_set(TAR, "set", CO_SPLIT_TEST);
    expect_same_samples(indexed, walked);
    assert_null(co_dataset_class_name(walked, 0));
    co_dataset_destroy(walked);
    walked =
        open_set("{name: tar, path: %s/set, test: 'val/part-{000000..000003}.tar', resize: 16}",
                 ".", CO_SPLIT_TEST);
    expect_same_samples(indexed, walked);
    co_dataset_destroy(walked);
    co_dataset_destroy(indexed);
    rename(folder_path("train.index"), folder_path("set/train/shards.index"));
    rename(folder_path("val.index"), folder_path("set/val/shards.index"));
}

/* Without loss: pixels are those of the source. */
static void tar_pixels_become_png_files(void **state)
{
    const char *text = "{name: synthetic, shape: [3, 9, 7], samples: 20, classes: 4}";
    float one[3 * 9 * 7], other[3 * 9 * 7];
    co_dataset *source, *tar;

    (void)state;
    assert_int_equal(co_dataset_open(&source, text, CO_SPLIT_TRAIN), CO_OK);
    mkdir(folder_path("pixels"), 0700);
    write_shards("pixels/train", source, 100);
    assert_true(co_fs_exists(folder_path("pixels/train/part-000019.tar")));
    tar = open_set("{name: tar, path: %s}", "pixels", CO_SPLIT_TRAIN);
    assert_int_equal(co_dataset_count(tar), 20);
    for (uint64_t i = 0; i < 20; i++) {
        assert_int_equal(co_dataset_read(source, one, i), CO_OK);
        assert_int_equal(co_dataset_read(tar, other, i), CO_OK);
        assert_memory_equal(one, other, sizeof(one));
        assert_int_equal(co_dataset_label(source, i), co_dataset_label(tar, i));
    }
    co_dataset_destroy(source);
    co_dataset_destroy(tar);
}

/* What tar writes in each of its formats, with names that do not fit into a header. */
static void tar_files_of_gnu_tar_are_read(void **state)
{
    static const char *const formats[] = {"gnu", "pax", "ustar", "v7", "oldgnu"};
    char text[512];

    (void)state;
    folder_run(
        "mkdir -p other/in/sub && cp 'images/train/class 1/1.jpg' other/in/a.jpg && printf '2\\n' "
        ">other/in/a.cls && "
        "cp other/in/a.jpg other/in/sub/b.JPEG && echo '{\"x\": \"y\", \"label\": 1}' "
        ">other/in/sub/b.json && echo text >other/in/sub/b.txt && mkdir -p other/train");
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        co_dataset *tar;

        snprintf(text, sizeof(text),
                 "rm -f other/train/*; if [ %s != v7 ] && [ %s != ustar ]; then long=$(printf "
                 "'%%0120d' 7); cp other/in/a.jpg other/in/sub/$long.jpg; cp other/in/a.cls "
                 "other/in/sub/$long.cls; fi; tar --format=%s --sort=name -cf other/train/x.tar "
                 "-C other ./in; rm -f other/in/sub/0*",
                 formats[i], formats[i], formats[i]);
        folder_run(text);
        tar = open_set(TAR, "other", CO_SPLIT_TRAIN);
        assert_int_equal(co_dataset_count(tar), strstr("v7ustar", formats[i]) ? 2 : 3);
        assert_int_equal(co_dataset_classes(tar), 3);
        assert_int_equal(co_dataset_label(tar, 0), 2);
        assert_int_equal(co_dataset_label(tar, co_dataset_count(tar) - 1), 1);
        co_dataset_destroy(tar);
    }
}

/* What follows the first dot is the kind of a member: a mask beside the image is another. */
static void tar_key_ends_at_first_dot(void **state)
{
    co_dataset *tar;

    (void)state;
    folder_run(
        "mkdir -p dots/in/v1.0 dots/train && for k in 0 1; do "
        "cp \"images/train/class 1/1.jpg\" dots/in/v1.0/$k.jpg && echo $k >dots/in/v1.0/$k.cls && "
        "cp \"images/train/class 1/0.png\" dots/in/v1.0/$k.seg.png; done && "
        "tar --sort=name -cf dots/train/x.tar -C dots/in v1.0");
    tar = open_set(TAR, "dots", CO_SPLIT_TRAIN);
    assert_int_equal(co_dataset_count(tar), 2);
    for (uint64_t i = 0; i < 2; i++)
        assert_int_equal(co_dataset_label(tar, i), i);
    co_dataset_destroy(tar);
}

static void expect_refused(const char *below, co_split split, const char *words)
{
    char text[512];
    co_dataset *data;

    snprintf(text, sizeof(text), TAR, folder_path(below));
    assert_int_equal(co_dataset_open(&data, text, split), CO_E_DATA);
    if (!strstr(co_error_message(), words))
        fail_msg("'%s' does not say '%s'", co_error_message(), words);
}

static void tar_sample_with_missing_part_is_refused(void **state)
{
    static const struct {
        const char *make, *words;
    } cases[] = {
        {"cp ../images/train/*0/1.jpg a.jpg", "sample 'a' has no class"},
        {"echo 1 >a.cls", "sample 'a' has no image"},
        {"cp ../images/train/*0/1.jpg a.jpg; cp a.jpg a.jpeg; echo 1 >a.cls", "has two images"},
        {"cp ../images/train/*0/1.jpg a.jpg; echo cat >a.cls", "'a' has a .cls that is not"},
        {"cp ../images/train/*0/1.jpg a.jpg; echo '{' >a.json", "'a' has a .json that is none"},
        {"cp ../images/train/*0/1.jpg a.jpg; echo '{\"label\": -1}' >a.json", "has no class"},
        {"ln -s a a.jpg; echo 1 >a.cls", "'a.jpg' is a link"},
        {"echo text >readme.txt", "sample 'readme' has no image"},
        {"cp ../images/train/*0/1.jpg a.1.jpg; echo 1 >a.1.cls", "KEY.png, where KEY has no dot"},
        {"echo text >README", "hold no sample"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512];

        snprintf(text, sizeof(text),
                 "rm -rf parts odd && mkdir -p parts odd/train && cd parts && %s && tar -cf "
                 "../odd/train/x.tar *",
                 cases[i].make);
        folder_run(text);
        expect_refused("odd", CO_SPLIT_TRAIN, cases[i].words);
    }
    folder_run("gzip -c set/train/part-000000.tar >odd/train/y.tar");
    expect_refused("odd", CO_SPLIT_TRAIN, "is not a tar file, or a compressed one");
}

/* Cut short anywhere, and with each byte of a header changed but the one after the checksum. */
static void tar_damaged_file_is_noticed(void **state)
{
    size_t size;
    uint8_t *bytes;

    (void)state;
    folder_run("rm -rf odd && mkdir -p odd/train");
    assert_int_equal(
        co_fs_read(&bytes, &size, folder_path("set/val/part-000001.tar"), 1 << 24, CO_E_DATA),
        CO_OK);
    for (size_t cut = 0; cut < size - 10240; cut += 512) {
        put("odd/train/x.tar", bytes, cut);
        expect_refused("odd", CO_SPLIT_TRAIN, "x.tar: cut short");
    }
    for (size_t at = 0; at < 512; at += at == 154 ? 2 : 1) {
        bytes[at] ^= 0x01;
        put("odd/train/x.tar", bytes, size);
        expect_refused("odd", CO_SPLIT_TRAIN, "x.tar: ");
        bytes[at] ^= 0x01;
    }
    co_free(bytes);
}

static void tar_damaged_index_is_refused(void **state)
{
    size_t size;
    uint8_t *bytes;

    (void)state;
    folder_run("rm -rf odd && cp -r set odd");
    assert_int_equal(
        co_fs_read(&bytes, &size, folder_path("set/val/shards.index"), 1 << 20, CO_E_DATA), CO_OK);
    for (size_t at = 0; at < size; at += 3) {
        bytes[at] ^= 0x20;
        put("odd/val/shards.index", bytes, size);
        expect_refused("odd", CO_SPLIT_TEST, "shards.index: ");
        bytes[at] ^= 0x20;
    }
    put("odd/val/shards.index", bytes, size - 1);
    expect_refused("odd", CO_SPLIT_TEST, "shards.index: cut short");
    co_free(bytes);
}

/* The key that is wrong is named: the whole folder, or that of a split. */
static void tar_missing_folder_is_refused(void **state)
{
    (void)state;
    expect_refused("nowhere", CO_SPLIT_TRAIN, "nowhere: no such folder; set data.path");
    folder_run("rm -rf odd && mkdir odd");
    expect_refused("odd", CO_SPLIT_TRAIN, "odd/train: no such folder; name it with data.train");
    expect_refused("odd", CO_SPLIT_TEST, "holds neither val nor test");
}

static void tar_shard_unlike_its_index_is_named(void **state)
{
    (void)state;
    folder_run("rm -rf odd && cp -r set odd && rm odd/train/part-000002.tar");
    expect_refused("odd", CO_SPLIT_TRAIN, "part-000002.tar: No such file");
    folder_run("rm -rf odd && cp -r set odd && truncate -s -512 odd/train/part-000001.tar");
    expect_refused("odd", CO_SPLIT_TRAIN, "part-000001.tar: cut short");
    folder_run("rm -rf odd && cp -r set odd && cp odd/train/part-000001.tar odd/train/new.tar");
    expect_refused("odd", CO_SPLIT_TRAIN, "new.tar: shards.index does not know it");
}

/* Damage to a sample is that sample's; a file that changes ends the run. */
static void tar_changed_shard_is_named(void **state)
{
    co_buffer buffer = {0};
    co_dataset *data;
    co_bytes bytes;

    (void)state;
    folder_run(
        "rm -rf odd && cp -r set odd && printf X | dd of=odd/train/part-000000.tar bs=1 seek=600 "
        "conv=notrunc 2>/dev/null");
    data = open_set(TAR, "odd", CO_SPLIT_TRAIN);
    assert_int_equal(co_dataset_stored_sample(&bytes, data, &buffer, 0), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "part-000000.tar: 000000000.png: its checksum"));
    assert_int_equal(co_dataset_stored_sample(&bytes, data, &buffer, 1), CO_OK);
    folder_run("truncate -s 2048 odd/train/part-000000.tar");
    assert_int_equal(co_dataset_stored_sample(&bytes, data, &buffer, 1), CO_E_IO);
    assert_non_null(strstr(co_error_message(), "part-000000.tar: cut short while in use"));
    folder_run("touch odd/train/part-000003.tar");
    assert_int_equal(co_dataset_stored_sample(&bytes, data, &buffer, SAMPLES - 1), CO_E_IO);
    assert_non_null(strstr(co_error_message(), "part-000003.tar: was changed while in use"));
    co_buffer_free(&buffer);
    co_dataset_destroy(data);
}

static void pattern_range_is_expanded(void **state)
{
    static const char *const wrong[] = {"{1..2",  "{..2}",          "{2..1}", "{1..2}{3..4}",
                                        "{a..b}", "{0..999999999}", "x{1.2}", "}{"};
    char name[CO_SHARD_MAX_NAME];
    co_shard_pattern p;

    (void)state;
    assert_int_equal(co_shard_pattern_parse(&p, "a-{008..011}.tar"), CO_OK);
    assert_int_equal(p.count, 4);
    co_shard_pattern_name(name, &p, 0);
    assert_string_equal(name, "a-008.tar");
    co_shard_pattern_name(name, &p, 3);
    assert_string_equal(name, "a-011.tar");
    assert_int_equal(co_shard_pattern_parse(&p, "{9..10}.tar"), CO_OK);
    co_shard_pattern_name(name, &p, 1);
    assert_string_equal(name, "10.tar");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (co_shard_pattern_parse(&p, wrong[i]) != CO_E_USAGE)
            fail_msg("%s is taken", wrong[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tar_shards_have_samples_of_folder),
        cmocka_unit_test(tar_without_index_has_same_samples),
        cmocka_unit_test(tar_pixels_become_png_files),
        cmocka_unit_test(tar_files_of_gnu_tar_are_read),
        cmocka_unit_test(tar_key_ends_at_first_dot),
        cmocka_unit_test(tar_sample_with_missing_part_is_refused),
        cmocka_unit_test(tar_damaged_file_is_noticed),
        cmocka_unit_test(tar_damaged_index_is_refused),
        cmocka_unit_test(tar_missing_folder_is_refused),
        cmocka_unit_test(tar_shard_unlike_its_index_is_named),
        cmocka_unit_test(tar_changed_shard_is_named),
        cmocka_unit_test(pattern_range_is_expanded),
    };

    return cmocka_run_group_tests_name("tar", tests, make, folder_remove);
}
