/* test_idx.c - IDX files: valid ones, and one clear error for each kind of damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/mem.h"
#include "data/files.h"
#include "data/idx.h"

static const uint32_t image_dims[3] = {3, 4, 5}, label_dims[1] = {10};

static uint8_t byte_of(size_t i)
{
    return (uint8_t)(i * 37);
}

static size_t images(uint8_t *out)
{
    return files_idx(out, 3, image_dims, byte_of);
}

static void assert_images(const co_idx *idx)
{
    assert_int_equal(idx->ndim, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(idx->dim[i], image_dims[i]);
    for (size_t i = 0; i < 60; i++)
        assert_int_equal(idx->data[i], byte_of(i));
}

static void idx_plain_file_is_read(void **state)
{
    uint8_t bytes[256];
    co_idx idx;

    (void)state;
    files_write("images", bytes, images(bytes));
    assert_int_equal(co_idx_open(&idx, files_path("images"), 3), CO_OK);
    assert_images(&idx);
    co_idx_close(&idx);
}

static void idx_gzip_file_of_any_name_is_read(void **state)
{
    uint8_t bytes[256], packed[400];
    co_idx idx;

    (void)state;
    files_write("images", packed, files_gzip(packed, bytes, images(bytes)));
    assert_int_equal(co_idx_open(&idx, files_path("images"), 3), CO_OK);
    assert_images(&idx);
    co_idx_close(&idx);
}

static void assert_refused(const uint8_t *bytes, size_t size, int ndim, const char *words)
{
    co_idx idx;

    files_write("bad", bytes, size);
    assert_int_equal(co_idx_open(&idx, files_path("bad"), ndim), CO_E_DATA);
    if (!strstr(co_error_message(), words) || !strstr(co_error_message(), "/bad: "))
        fail_msg("'%s' does not say '%s'", co_error_message(), words);
    assert_null(strchr(co_error_message(), '\n'));
    assert_null(idx.data);
}

/* A header in hexadecimal, and the number of bytes after it. */
static void idx_damaged_file_is_refused(void **state)
{
    static const struct {
        const char *header;
        size_t body;
        int ndim;
        const char *words;
    } cases[] = {
        {"00", 0, 1, "cut short: 1 bytes are too few"},
        {"000008", 0, 1, "cut short: 3 bytes are too few"},
        {"00000801", 0, 1, "cut short within its IDX header"},
        {"00000801000000", 0, 1, "cut short within its IDX header"},
        {"0000080300000001000000010000", 0, 3, "cut short within its IDX header"},
        {"010008010000000a", 10, 1, "not an IDX file: it begins with 01 00 08 01, expected 00 00"},
        {"3c68746d6c3e", 40, 3, "not an IDX file: it begins with 3c 68 74 6d"},
        {"000009010000000a", 10, 1, "type 0x09, expected 0x08 (unsigned bytes)"},
        {"00000d010000000a", 40, 1, "type 0x0d"},
        {"000008010000000a", 10, 3, "1 dimensions, expected 3; are image and label files mixed"},
        {"00000803000000030000000400000005", 60, 1, "3 dimensions, expected 1"},
        {"000008000000000a", 10, 1, "0 dimensions, expected 1"},
        {"0000080100000000", 0, 1, "empty: dimension 0 of the IDX header is 0"},
        {"00000803000000030000000000000005", 0, 3, "empty: dimension 1 of"},
        {"000008010000000a", 9, 1, "cut short: its header says [10] = 10 bytes, 9 follow"},
        {"000008010000000a", 11, 1, "too long: its header says [10] = 10 bytes, 11 follow"},
        {"00000803000000030000000400000005", 59, 3, "[3][4][5] = 60 bytes, 59 follow"},
        {"00000803ffffffff0000000400000005", 60, 3, "cut short: its header says [4294967295]"},
        {"00000803ffffffffffffffffffffffff", 60, 3, "asks for more bytes than any file has"},
        {"1f8b", 0, 3, "gzip data that is cut short"},
        {"1f8b0800000000000003", 7, 3, "gzip data that is cut short"},
        {"1f8b0800000000000003", 30, 3, "gzip data that is damaged or cut short"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t bytes[128] = {0};
        size_t size = strlen(cases[i].header) / 2;

        for (size_t k = 0; k < size; k++) {
            unsigned byte;

            assert_int_equal(sscanf(cases[i].header + 2 * k, "%2x", &byte), 1);
            bytes[k] = (uint8_t)byte;
        }
        assert_refused(bytes, size + cases[i].body, cases[i].ndim, cases[i].words);
    }
}

static void idx_path_of_no_file_is_refused(void **state)
{
    co_idx idx;

    (void)state;
    assert_int_equal(co_idx_open(&idx, files_path("missing"), 1), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "missing: No such file"));
    assert_int_equal(mkdir(files_path("folder"), 0700), 0);
    assert_int_equal(co_idx_open(&idx, files_path("folder"), 1), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "is a folder"));
    assert_int_equal(mkfifo(files_path("fifo"), 0600), 0);
    assert_int_equal(co_idx_open(&idx, files_path("fifo"), 1), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "not a regular file"));
    files_write("nothing", "", 0);
    assert_int_equal(co_idx_open(&idx, files_path("nothing"), 1), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "is empty"));
}

static void idx_truncated_gzip_is_refused(void **state)
{
    uint8_t bytes[256], packed[400];
    size_t size = files_gzip(packed, bytes, images(bytes));

    (void)state;
    for (size_t cut = 2; cut < size; cut++)
        assert_refused(packed, cut, 3, "gzip data that is");
}

/* A flipped bit is accepted only where it does not matter: time, system and padding. */
static void idx_gzip_with_flipped_bit_gives_no_false_data(void **state)
{
    uint8_t bytes[256], packed[400];
    size_t size = files_gzip(packed, bytes, images(bytes));
    size_t accepted = 0;

    (void)state;
    for (size_t bit = 0; bit < size * 8; bit++) {
        co_idx idx;

        packed[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (co_idx_parse(&idx, packed, size, 3, "packed") == CO_OK) {
            assert_images(&idx);
            accepted++;
            co_idx_close(&idx);
        }
        packed[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_true(accepted < 100);
}

/* Of a file in pieces the last one's size is at its end, which may be more than the first has. */
static void idx_gzip_in_pieces_is_refused(void **state)
{
    uint8_t bytes[256], packed[1000];
    const size_t size = images(bytes);
    size_t first = files_gzip(packed, bytes, size / 4);

    (void)state;
    first += files_gzip(packed + first, bytes + size / 4, size - size / 4);
    assert_refused(packed, first, 3, "or in several pieces");
}

/* The size at the end of a gzip file is untrusted; memory is allocated only for plausible sizes. */
static void idx_gzip_with_false_size_is_refused(void **state)
{
    static const uint8_t claims[][4] = {
        {0xff, 0xff, 0xff, 0xff}, {0, 0, 0, 0}, {75, 0, 0, 0}, {77, 0, 0, 0}, {0, 1, 0, 0},
        {0, 0, 0, 0x7f}};
    uint8_t bytes[256], packed[400];
    size_t size = files_gzip(packed, bytes, images(bytes));

    (void)state;
    for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
        memcpy(packed + size - 4, claims[i], 4);
        assert_refused(packed, size, 3, "gzip data that is damaged or cut short");
    }
    co_mem_fail_at(0);
    memcpy(packed + size - 4, claims[0], 4);
    assert_refused(packed, size, 3, "damaged");
    assert_int_equal(co_mem_count(), 0);
}

/* The last bytes of a file that is cut short are any: half of the time more than is unpacked. */
static void idx_truncated_large_gzip_is_refused_as_such(void **state)
{
    const size_t size = (size_t)4 << 20;
    uint8_t *packed = co_calloc(size, 1);

    (void)state;
    assert_non_null(packed);
    memcpy(packed, "\x1f\x8b\x08", 3);
    packed[size - 1] = 0xc0;
    assert_refused(packed, size, 3, "cut short, or unpacks to more than 2147483648 bytes");
    co_free(packed);
}

static void idx_bytes_after_gzip_are_refused(void **state)
{
    uint8_t bytes[256], packed[400];
    size_t size = files_gzip(packed, bytes, images(bytes));

    (void)state;
    /* a tail that repeats the true size, so that the claim is correct */
    memcpy(packed + size, packed + size - 4, 4);
    assert_refused(packed, size + 4, 3, "too long: 4 bytes follow the gzip data");
    memset(packed + size, 'x', 4);
    assert_refused(packed, size + 4, 3, "gzip data that is damaged");
}

static void idx_gzip_content_is_checked(void **state)
{
    uint8_t bytes[256], packed[400];
    size_t size = images(bytes);

    (void)state;
    assert_refused(packed, files_gzip(packed, bytes, size - 1), 3, "60 bytes, 59 follow");
    assert_refused(packed, files_gzip(packed, bytes, size + 1), 3, "60 bytes, 61 follow");
    assert_refused(packed, files_gzip(packed, bytes, 3), 3, "too few for an IDX header");
    assert_refused(packed, files_gzip(packed, bytes, 0), 3, "is empty");
    size = files_idx(bytes, 1, label_dims, byte_of);
    assert_refused(packed, files_gzip(packed, bytes, size), 3, "1 dimensions, expected 3");
}

static void idx_failed_allocation_is_an_error(void **state)
{
    uint8_t bytes[256], packed[400];
    size_t size = files_gzip(packed, bytes, images(bytes));
    co_idx idx;

    (void)state;
    co_mem_fail_at(1);
    assert_int_equal(co_idx_parse(&idx, packed, size, 3, "packed"), CO_E_NOMEM);
    co_mem_fail_at(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idx_plain_file_is_read),
        cmocka_unit_test(idx_gzip_file_of_any_name_is_read),
        cmocka_unit_test(idx_damaged_file_is_refused),
        cmocka_unit_test(idx_path_of_no_file_is_refused),
        cmocka_unit_test(idx_truncated_gzip_is_refused),
        cmocka_unit_test(idx_gzip_with_flipped_bit_gives_no_false_data),
        cmocka_unit_test(idx_gzip_in_pieces_is_refused),
        cmocka_unit_test(idx_gzip_with_false_size_is_refused),
        cmocka_unit_test(idx_truncated_large_gzip_is_refused_as_such),
        cmocka_unit_test(idx_bytes_after_gzip_are_refused),
        cmocka_unit_test(idx_gzip_content_is_checked),
        cmocka_unit_test(idx_failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
