/* test_pack.c - a packed file returns its contents, and every kind of damage is detected. */
#include "folder.h"

#include <cohort/data.h>

#include "core/fs.h"
#include "core/mem.h"
#include "data/data.h"
#include "data/pack_convert.h"
#include "data/pack_format.h"
#include "data/shard_write.h"
#include "image/encode.h"
#include "pictures.h"

enum { TRAIN = 40, TEST = 7, BYTES = 3 * 4 * 5, CLASSES = 3 };

static uint8_t byte_of(int split, uint64_t i, size_t k)
{
    return (uint8_t)(i * 31 + k * 7 + (split ? 100 : 0));
}

static void write_raw(const char *path)
{
    static const char *const names[CLASSES] = {"cat", "", "a longer name"};
    const co_pack_head head = {.channels = 3, .height = 4, .width = 5, .classes = CLASSES};
    co_pack_writer *writer;
    uint8_t bytes[BYTES];
    const co_bytes record = {bytes, BYTES};
    uint64_t size;

    assert_int_equal(co_pack_writer_open(&writer, path, &head, names), CO_OK);
    for (int split = 0; split < 2; split++)
        for (uint32_t i = 0; i < (split ? TEST : TRAIN); i++) {
            for (size_t k = 0; k < BYTES; k++)
                bytes[k] = byte_of(split, i, k);
            assert_int_equal(co_pack_writer_add(writer, (co_split)split, i % CLASSES, &record),
                             CO_OK);
        }
    assert_int_equal(co_pack_writer_commit(&size, writer), CO_OK);
}

static int make(void **state)
{
    if (folder_make(state) != 0)
        return -1;
    write_raw(folder_path("raw.pack"));
    return 0;
}

static void pack_written_file_reads_back(void **state)
{
    co_pack pack;

    (void)state;
    assert_int_equal(folder_count(), 1); /* no other file was left behind */
    assert_int_equal(co_pack_open(&pack, folder_path("raw.pack")), CO_OK);
    assert_false(pack.head.encoded);
    assert_int_equal(pack.head.count[0], TRAIN);
    assert_int_equal(pack.head.count[1], TEST);
    assert_string_equal(pack.class_name[0], "cat");
    assert_string_equal(pack.class_name[1], "");
    assert_string_equal(pack.class_name[2], "a longer name");
    for (int twice = 0; twice < 2; twice++)
        for (int split = 0; split < 2; split++)
            for (uint64_t i = 0; i < pack.head.count[split]; i++) {
                co_bytes record;

                assert_int_equal(co_pack_record(&record, &pack, (co_split)split, i), CO_OK);
                assert_int_equal(record.n, BYTES);
                for (size_t k = 0; k < BYTES; k++)
                    assert_int_equal(record.at[k], byte_of(split, i, k));
                assert_int_equal(co_pack_entry_at(&pack, (co_split)split, i).label, i % CLASSES);
            }
    co_pack_close(&pack);
}

static void pack_opened_as_data_set_has_same_samples(void **state)
{
    char text[256];
    float sample[BYTES];
    co_dataset *data;

    (void)state;
    snprintf(text, sizeof(text), "{name: pack, path: %s}", folder_path("raw.pack"));
    assert_int_equal(co_dataset_open(&data, text, CO_SPLIT_TEST), CO_OK);
    assert_int_equal(co_dataset_count(data), TEST);
    assert_int_equal(co_dataset_classes(data), CLASSES);
    assert_int_equal(co_dataset_label(data, 5), 2);
    assert_string_equal(co_dataset_class_name(data, 2), "a longer name");
    assert_int_equal(co_dataset_read(data, sample, 5), CO_OK);
    for (size_t k = 0; k < BYTES; k++)
        assert_float_equal(sample[k], byte_of(1, 5, k) / 255.0f, 1e-7);
    co_dataset_destroy(data);
}

static uint8_t *load(size_t *size, const char *name)
{
    uint8_t *bytes;

    assert_int_equal(co_fs_read(&bytes, size, folder_path(name), 1 << 20, CO_E_DATA), CO_OK);
    return bytes;
}

static bool has_bad_record(const co_pack *pack)
{
    co_bytes record;

    for (uint64_t i = 0; i < TRAIN; i++)
        if (co_pack_record(&record, pack, CO_SPLIT_TRAIN, i) == CO_E_DATA)
            return true;
    for (uint64_t i = 0; i < TEST; i++)
        if (co_pack_record(&record, pack, CO_SPLIT_TEST, i) == CO_E_DATA)
            return true;
    return false;
}

/* Every byte matters: a flipped one is detected when opening or when its record is read. */
static void pack_flipped_byte_is_noticed(void **state)
{
    size_t size;
    uint8_t *bytes = load(&size, "raw.pack");

    (void)state;
    for (size_t at = 0; at < size; at++) {
        bool noticed;
        co_pack pack;

        bytes[at] ^= 0x04;
        noticed = co_pack_parse(&pack, bytes, size, "flipped") == CO_E_DATA;
        if (!noticed) {
            noticed = has_bad_record(&pack);
            co_pack_close(&pack);
        }
        if (!noticed)
            fail_msg("byte %zu of %zu may be anything", at, size);
        assert_non_null(strstr(co_error_message(), "flipped: "));
        bytes[at] ^= 0x04;
    }
    co_free(bytes);
}

static void refuse(const uint8_t *bytes, size_t size, const char *word)
{
    co_pack pack;

    assert_int_equal(co_pack_parse(&pack, bytes, size, "data.pack"), CO_E_DATA);
    if (!strstr(co_error_message(), "data.pack: ") || !strstr(co_error_message(), word))
        fail_msg("'%s' does not say '%s'", co_error_message(), word);
}

static void pack_damaged_file_is_refused(void **state)
{
    size_t size;
    uint8_t *bytes = load(&size, "raw.pack"), *longer = co_calloc(size + 1, 1);

    (void)state;
    for (size_t n = 0; n < size; n++)
        refuse(bytes, n, n < 128 ? "not a packed data set" : "cut short");
    memcpy(longer, bytes, size);
    refuse(longer, size + 1, "too long");
    bytes[8] = 2;
    refuse(bytes, size, "version 2");
    bytes[8] = 1;
    bytes[20] ^= 1;
    refuse(bytes, size, "checksum of its header");
    bytes[20] ^= 1;
    bytes[size - 3] ^= 1;
    refuse(bytes, size, "checksum of its index");
    co_free(longer);
    co_free(bytes);
}

static void expect_open_error(const char *text, const char *word)
{
    co_dataset *data;

    assert_int_not_equal(co_dataset_open(&data, text, CO_SPLIT_TRAIN), CO_OK);
    if (!strstr(co_error_message(), word))
        fail_msg("'%s' does not say '%s'", co_error_message(), word);
}

static void pack_bad_path_is_refused(void **state)
{
    char text[256];

    (void)state;
    expect_open_error("pack", "data.path");
    expect_open_error("{name: pack, path: /nowhere/x.pack}", "/nowhere/x.pack");
    snprintf(text, sizeof(text), "{name: pack, path: %s}", folder);
    expect_open_error(text, "/train: no such folder; name it with data.train");
}

static void pack_missing_split_is_refused(void **state)
{
    const co_pack_head head = {.channels = 1, .height = 1, .width = 2, .classes = 1};
    const co_bytes record = {(const uint8_t *)"ab", 2};
    co_pack_writer *writer;
    char text[256];
    uint64_t size;

    (void)state;
    assert_int_equal(co_pack_writer_open(&writer, folder_path("one.pack"), &head, NULL), CO_OK);
    assert_int_equal(co_pack_writer_add(writer, CO_SPLIT_TEST, 0, &record), CO_OK);
    assert_int_equal(co_pack_writer_commit(&size, writer), CO_OK);
    snprintf(text, sizeof(text), "{name: pack, path: %s}", folder_path("one.pack"));
    expect_open_error(text, "no training split");
    unlink(folder_path("one.pack"));
}

static void pack_discarded_writer_leaves_no_file(void **state)
{
    const co_pack_head head = {.channels = 1, .height = 1, .width = 2, .classes = 1};
    const int before = folder_count();
    co_pack_writer *writer;

    (void)state;
    assert_int_equal(co_pack_writer_open(&writer, folder_path("none.pack"), &head, NULL), CO_OK);
    co_pack_writer_discard(writer);
    assert_int_equal(folder_count(), before);
}

/* --- shards --- */

static co_dataset *open_pack(const char *name, co_split split)
{
    char text[256];
    co_dataset *data;

    snprintf(text, sizeof(text), "{name: pack, path: %s}", folder_path(name));
    if (co_dataset_open(&data, text, split) != CO_OK)
        fail_msg("%s", co_error_message());
    return data;
}

static co_status tick(void *arg)
{
    (void)arg;
    return CO_OK;
}

static void make_shards(void)
{
    folder_run("rm -rf shards && mkdir -p shards/train shards/val");
    for (int split = 0; split < 2; split++) {
        co_dataset *data = open_pack("raw.pack", (co_split)split);
        co_shard_writing writing = {.data = data,
                                    .folder = folder_path(split ? "shards/val" : "shards/train"),
                                    .prefix = "part",
                                    .shards = 3,
                                    .packed = true,
                                    .split = (co_split)split,
                                    .tick = tick};

        if (co_shard_write(&writing) != CO_OK)
            fail_msg("%s", co_error_message());
        co_dataset_destroy(data);
    }
}

static void pack_shards_have_records_of_one_file(void **state)
{
    co_buffer one = {0}, other = {0};
    co_pack shard;

    (void)state;
    make_shards();
    for (int split = 0; split < 2; split++) {
        co_dataset *file = open_pack("raw.pack", (co_split)split);
        co_dataset *shards = open_pack("shards", (co_split)split);

        assert_int_equal(co_dataset_count(shards), split ? TEST : TRAIN);
        assert_string_equal(co_dataset_class_name(shards, 2), "a longer name");
        for (uint64_t i = 0; i < co_dataset_count(file); i++) {
            co_bytes x, y;

            assert_int_equal(co_dataset_stored_sample(&x, file, &one, i), CO_OK);
            assert_int_equal(co_dataset_stored_sample(&y, shards, &other, i), CO_OK);
            assert_int_equal(x.n, y.n);
            assert_memory_equal(x.at, y.at, x.n);
            assert_int_equal(co_dataset_label(file, i), co_dataset_label(shards, i));
        }
        co_dataset_destroy(file);
        co_dataset_destroy(shards);
    }
    assert_int_equal(co_pack_open(&shard, folder_path("shards/val/part-000000.pack")), CO_OK);
    assert_int_equal(shard.head.count[CO_SPLIT_TEST], 3); /* a packed file of its own */
    co_pack_close(&shard);
    co_buffer_free(&one);
    co_buffer_free(&other);
}

static void pack_shard_unlike_its_index_is_named(void **state)
{
    char text[256];

    (void)state;
    make_shards();
    snprintf(text, sizeof(text), "{name: pack, path: %s}", folder_path("shards"));
    folder_run("cp shards/train/part-000001.pack shards/train/new.pack");
    expect_open_error(text, "new.pack: shards.index does not know it");
    folder_run("rm shards/train/new.pack && truncate -s -1 shards/train/part-000001.pack");
    expect_open_error(text, "part-000001.pack: cut short");
    folder_run("rm shards/train/part-000001.pack");
    expect_open_error(text, "part-000001.pack: No such file");
    folder_run("rm shards/train/shards.index");
    expect_open_error(text, "shards.index: is not there; `cohort data pack --shards` writes it");
    snprintf(text, sizeof(text), "{name: pack, path: %s, train: x}", folder_path("raw.pack"));
    expect_open_error(text, "raw.pack is one file");
}

/* Also one whose samples have been read before: it is an error, and no signal. */
static void pack_shard_changed_in_use_is_named(void **state)
{
    co_buffer buffer = {0};
    co_dataset *data;
    co_bytes bytes;

    (void)state;
    make_shards();
    folder_run(
        "printf X | dd of=shards/train/part-000000.pack bs=1 seek=200 conv=notrunc 2>/dev/null");
    data = open_pack("shards", CO_SPLIT_TRAIN);
    assert_int_equal(co_dataset_stored_sample(&bytes, data, &buffer, 1), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "part-000000.pack: sample 1: its checksum"));
    assert_int_equal(co_dataset_stored_sample(&bytes, data, &buffer, 3), CO_OK);
    folder_run("truncate -s 128 shards/train/part-000000.pack");
    assert_int_equal(co_dataset_stored_sample(&bytes, data, &buffer, 3), CO_E_IO);
    assert_non_null(strstr(co_error_message(), "part-000000.pack: cut short while in use"));
    assert_int_equal(co_dataset_stored_sample(&bytes, data, &buffer, TRAIN - 1), CO_OK);
    folder_run("touch shards/train/part-000002.pack");
    assert_int_equal(co_dataset_stored_sample(&bytes, data, &buffer, TRAIN - 1), CO_E_IO);
    assert_non_null(strstr(co_error_message(), "part-000002.pack: was changed while in use"));
    co_buffer_free(&buffer);
    co_dataset_destroy(data);
}

/* --- image files --- */

static void put_picture(const char *name, int height, int width, int channels)
{
    const picture p = {.width = width, .height = height, .channels = channels};
    char *path = folder_path(name), *slash = strrchr(path, '/');
    size_t size;
    uint8_t *bytes = picture_jpeg(&size, &p);
    FILE *file;

    *slash = '\0';
    assert_int_equal(co_fs_mkdirs(path), CO_OK);
    *slash = '/';
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
    free(bytes);
}

static co_dataset *open_pictures(void)
{
    co_dataset *data;
    char text[256];

    put_picture("set/train/a/1.jpg", 40, 100, 3);
    put_picture("set/train/a/2.jpg", 20, 30, 3);
    put_picture("set/train/b/1.jpg", 90, 50, 1);
    snprintf(text, sizeof(text), "{name: imagefolder, path: %s, resize: 8}", folder_path("set"));
    assert_int_equal(co_dataset_open(&data, text, CO_SPLIT_TRAIN), CO_OK);
    return data;
}

static void pack_resized_jpegs_are_smaller(void **state)
{
    static const uint32_t expected[3][3] = {{20, 50, 3}, {20, 30, 3}, {50, 28, 1}};
    const co_pack_options options = {.resize = 50, .quality = 80};
    co_pack_converter converter = {0};
    co_dataset *data = open_pictures();
    co_pack_head head;

    (void)state;
    assert_int_equal(co_pack_converter_open(&converter, &head, data, &options), CO_OK);
    assert_true(head.encoded);
    for (uint64_t i = 0; i < 3; i++) {
        co_image_info image;
        co_bytes record, stored;
        co_buffer buffer = {0};

        assert_int_equal(co_pack_convert(&record, &converter, i), CO_OK);
        assert_int_equal(co_image_probe(&image, record.at, record.n, "record"), CO_OK);
        assert_int_equal(image.height, expected[i][0]);
        assert_int_equal(image.width, expected[i][1]);
        assert_int_equal(image.channels, expected[i][2]);
        assert_int_equal(co_dataset_stored_sample(&stored, data, &buffer, i), CO_OK);
        if (i == 1) { /* small enough to be stored unchanged */
            assert_int_equal(record.n, stored.n);
            assert_memory_equal(record.at, stored.at, stored.n);
        }
        co_buffer_free(&buffer);
    }
    co_pack_converter_close(&converter);
    co_dataset_destroy(data);
}

static void pack_pixels_equal_decoded_images(void **state)
{
    const co_pack_options options = {.decode = 8};
    co_pack_converter converter = {0};
    co_dataset *data = open_pictures();
    co_pack_head head;

    (void)state;
    assert_int_equal(co_pack_converter_open(&converter, &head, data, &options), CO_OK);
    assert_false(head.encoded);
    assert_int_equal(head.height, 8);
    for (uint64_t i = 0; i < 3; i++) { /* equals `resize: 8` of the files */
        float sample[3 * 8 * 8];
        co_bytes record;

        assert_int_equal(co_pack_convert(&record, &converter, i), CO_OK);
        assert_int_equal(record.n, 3 * 8 * 8);
        assert_int_equal(co_dataset_read(data, sample, i), CO_OK);
        for (size_t k = 0; k < 3 * 8 * 8; k++)
            assert_float_equal(sample[k], record.at[k] / 255.0f, 1e-6);
    }
    co_pack_converter_close(&converter);
    co_dataset_destroy(data);
}

static void pack_failed_allocation_is_an_error(void **state)
{
    const co_pack_options options = {.resize = 50, .quality = 80};
    co_dataset *data = open_pictures();

    (void)state;
    for (uint64_t k = 1;; k++) {
        co_pack_converter converter = {0};
        co_pack_writer *writer = NULL;
        co_pack pack = {.map = NULL};
        co_pack_head head;
        co_bytes record;
        uint64_t size;
        co_status st;

        co_mem_fail_at(k);
        st = co_pack_converter_open(&converter, &head, data, &options);
        if (st == CO_OK)
            st = co_pack_convert(&record, &converter, 0);
        if (st == CO_OK)
            st = co_pack_writer_open(&writer, folder_path("mem.pack"), &head, NULL);
        if (st == CO_OK)
            st = co_pack_writer_add(writer, CO_SPLIT_TRAIN, 0, &record);
        if (st == CO_OK) {
            st = co_pack_writer_commit(&size, writer);
            writer = NULL;
        }
        if (st == CO_OK)
            st = co_pack_open(&pack, folder_path("mem.pack"));
        co_mem_fail_at(0);
        co_pack_close(&pack);
        co_pack_writer_discard(writer);
        co_pack_converter_close(&converter);
        if (st == CO_OK)
            break;
        assert_true(k < 200);
    }
    co_dataset_destroy(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pack_written_file_reads_back),
        cmocka_unit_test(pack_opened_as_data_set_has_same_samples),
        cmocka_unit_test(pack_flipped_byte_is_noticed),
        cmocka_unit_test(pack_damaged_file_is_refused),
        cmocka_unit_test(pack_bad_path_is_refused),
        cmocka_unit_test(pack_missing_split_is_refused),
        cmocka_unit_test(pack_discarded_writer_leaves_no_file),
        cmocka_unit_test(pack_shards_have_records_of_one_file),
        cmocka_unit_test(pack_shard_unlike_its_index_is_named),
        cmocka_unit_test(pack_shard_changed_in_use_is_named),
        cmocka_unit_test(pack_resized_jpegs_are_smaller),
        cmocka_unit_test(pack_pixels_equal_decoded_images),
        cmocka_unit_test(pack_failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, make, folder_remove);
}
