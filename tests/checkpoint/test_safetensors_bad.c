/*
 * test_safetensors_bad.c - damaged or inconsistent files are rejected with a message that says why,
 * whichever byte is wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cohort/safetensors.h>

/* A file with this header and `data` bytes after it, in a block of exactly its size, so that the
   address sanitizer catches reads past the end. */
static uint8_t *make_file(size_t *size, const char *header, size_t data)
{
    size_t n = strlen(header);
    uint8_t *bytes = malloc(8 + n + data);

    assert_non_null(bytes);
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)n >> (8 * i));
    for (size_t i = 0; i < n; i++)
        bytes[8 + i] = (uint8_t)header[i];
    memset(bytes + 8 + n, 7, data);
    *size = 8 + n + data;
    return bytes;
}

static co_status parse_header(co_safetensors **out, const char *header, size_t data)
{
    size_t size;
    uint8_t *bytes = make_file(&size, header, data);
    co_status st = co_safetensors_parse(out, bytes, size, "t.st");

    free(bytes);
    return st;
}

#define ENTRY(dtype, shape, place)                                                                 \
    "{\"w\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" place "}}"
#define SMALL(name, place)                                                                         \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" place "}"

static const struct {
    const char *header;
    size_t data; /* bytes after the header */
    const char *message;
} bad[] = {
    /* no header */
    {"", 0, "t.st: the header is not valid JSON at byte"},
    {"{", 0, "not valid JSON"},
    {"{}x", 0, "not valid JSON"},
    {"[]", 0, "not a JSON object"},
    {" {}", 0, "not a JSON object"},
    {"{\"w\":\"\xff\"}", 0, "not valid JSON"},
    {"{\"w\\u0000x\":1}", 0, "not valid JSON"},
    /* entries of the wrong type */
    {"{\"w\":1}", 0, "t.st: tensor 'w': its entry is not an object"},
    {"{\"w\":{}}", 0, "'dtype' is not a text"},
    {"{\"w\":{\"dtype\":5}}", 0, "'dtype' is not a text"},
    {ENTRY("F8_E4M3", "[4]", "[0,4]"), 4, "dtype F8_E4M3 is not supported, only F32"},
    {ENTRY("f32", "[1]", "[0,4]"), 4, "dtype f32 is not supported"},
    {ENTRY("F32", "4", "[0,4]"), 4, "'shape' is not a list"},
    {ENTRY("F32", "null", "[0,4]"), 4, "'shape' is not a list"},
    {ENTRY("U8", "[1,1,1,1,1,4]", "[0,4]"), 4, "'shape' is not a list of at most 5"},
    {ENTRY("F32", "[1.0]", "[0,4]"), 4, "'shape' holds something else"},
    {ENTRY("F32", "[\"1\"]", "[0,4]"), 4, "'shape' holds something else"},
    {ENTRY("F32", "[-1]", "[0,4]"), 4, "'shape' holds something else"},
    {ENTRY("F32", "[99999999999999999999]", "[0,4]"), 4, "not valid JSON"},
    {ENTRY("F32", "[1]", "[0]"), 4, "'data_offsets' is not a list of two"},
    {ENTRY("F32", "[1]", "[0,4,8]"), 4, "'data_offsets' is not a list of two"},
    {ENTRY("F32", "[1]", "{}"), 4, "'data_offsets' is not a list of two"},
    {ENTRY("F32", "[1]", "[-4,0]"), 4, "'data_offsets' holds something else"},
    {ENTRY("F32", "[1]", "[0,true]"), 4, "'data_offsets' holds something else"},
    {"{\"w\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
     "duplicate object key"},
    /* wrong sizes */
    {ENTRY("F32", "[2]", "[0,4]"), 4, "has 4 bytes, but its type and shape need 8"},
    {ENTRY("F64", "[]", "[0,4]"), 4, "has 4 bytes, but its type and shape need 8"},
    {ENTRY("F32", "[0]", "[0,4]"), 4, "has 4 bytes, but its type and shape need 0"},
    {ENTRY("BF16", "[1]", "[0,4]"), 4, "has 4 bytes, but its type and shape need 2"},
    {ENTRY("F16", "[4]", "[0,4]"), 4, "has 4 bytes, but its type and shape need 8"},
    {ENTRY("F32", "[4294967296,4294967296]", "[0,0]"), 0, "too large for any machine"},
    {ENTRY("F32", "[4611686018427387904,4]", "[0,0]"), 0, "too large for any machine"},
    {ENTRY("F32", "[4294967296,4294967296,0]", "[0,0]"), 0, "too large for any machine"},
    /* wrong offsets */
    {ENTRY("F32", "[2]", "[0,8]"), 7, "is at bytes 0 to 8 of 7; the file is cut short"},
    {ENTRY("U8", "[4]", "[4,0]"), 4, "is at bytes 4 to 0"},
    {ENTRY("U8", "[1]", "[9223372036854775806,9223372036854775807]"), 4, "cut short"},
    {ENTRY("U8", "[4]", "[1,5]"), 5, "has bytes in front of it that belong to none"},
    {ENTRY("U8", "[4]", "[0,4]"), 6, "2 bytes at the end belong to no tensor"},
    {"{}", 3, "3 bytes at the end belong to no tensor"},
    {"{" SMALL("a", "[0,4]") "," SMALL("b", "[2,6]") "}", 6, "tensor 'b' overlaps another one"},
    {"{" SMALL("a", "[0,4]") "," SMALL("b", "[0,4]") "}", 4, "overlaps another one"},
    {"{" SMALL("a", "[0,4]") "," SMALL("b", "[5,9]") "}", 9, "'b' has bytes in front of it"},
    {"{" SMALL("a", "[0,4]") "," SMALL("a", "[4,8]") "}", 8, "duplicate object key"},
    {"{" SMALL("a\\nb", "[0,4]") "}", 4, "holds a control character"},
    /* metadata */
    {"{\"__metadata__\":[]}", 0, "'__metadata__' is not an object"},
    {"{\"__metadata__\":{\"epoch\":3}}", 0, "'__metadata__': 'epoch' is not a text"},
};

static void safetensors_false_header_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        co_safetensors *file = NULL;
        co_status st = parse_header(&file, bad[i].header, bad[i].data);

        if (st != CO_E_DATA || !strstr(co_error_message(), bad[i].message))
            fail_msg("%s: status %d, message: %s", bad[i].header, (int)st, co_error_message());
        assert_null(file);
        assert_null(strchr(co_error_message(), '\n'));
    }
}

static void safetensors_unusual_valid_file_is_read(void **state)
{
    static const struct {
        const char *header;
        size_t data;
    } good[] = {
        {"{}", 0},
        {"{}   ", 0},
        {"{ \"__metadata__\" : {} }", 0},
        {ENTRY("F32", "[0,5]", "[0,0]"), 0},
        {ENTRY("F32", "[]", "[0,4]"), 4},
        /* file order unlike header order; an empty tensor in between; an unknown member */
        {"{" SMALL("b", "[4,8]") "," SMALL("a", "[0,4]") ",\"e\":{\"dtype\":\"F64\",\"shape\":[0],"
                                                         "\"data_offsets\":[4,4],\"unit\":\"m\"}}",
         8},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        co_safetensors *file = NULL;

        if (parse_header(&file, good[i].header, good[i].data) != CO_OK)
            fail_msg("%s: %s", good[i].header, co_error_message());
        co_safetensors_close(file);
    }
}

static void safetensors_huge_header_length_is_refused(void **state)
{
    static const struct {
        uint8_t bytes[8];
        size_t size;
        const char *message;
    } cases[] = {
        {{0}, 0, "shorter than any"},
        {{2, 0, 0, 0, 0, 0, 0}, 7, "shorter than any"},
        {{2, 0, 0, 0, 0, 0, 0, 0}, 8, "the header has 2 bytes but only 0 are there"},
        {{0, 0, 0, 1, 0, 0, 0, 0}, 8, "the header has 16777216 bytes but only 0"},
        {{1, 0, 0, 1, 0, 0, 0, 0}, 8, "is it a safetensors file?"},
        {{255, 255, 255, 255, 255, 255, 255, 255}, 8, "18446744073709551615 bytes (limit"},
        {{'P', 'K', 3, 4, 0, 0, 0, 0}, 8, "is a file of torch.save; convert it"},
        {{0x80, 2, 0x8a, '\n', 'l', 0xfc, 0x9c, 0x46}, 8, "is a file of torch.save"},
        {{'n', 'o', 't', ' ', 'o', 'n', 'e', '\n'}, 8, "is it a safetensors file?"},
    };
    co_safetensors *file = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(co_safetensors_parse(&file, cases[i].bytes, cases[i].size, "t.st"),
                         CO_E_DATA);
        if (!strstr(co_error_message(), cases[i].message))
            fail_msg("case %zu: %s", i, co_error_message());
    }
}

/* Every truncated file, and every file with one bit flipped, gives an error or tensors inside the
   file. */
static void safetensors_damage_anywhere_is_safe(void **state)
{
    static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"}," SMALL(
        "a", "[0,4]") ","
                      "\"b\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[4,12]}}";
    size_t size;
    uint8_t *bytes = make_file(&size, header, 12);

    (void)state;
    for (size_t cut = 0; cut < size; cut++) {
        co_safetensors *file = NULL;
        uint8_t *part = malloc(cut ? cut : 1);

        memcpy(part, bytes, cut);
        assert_int_equal(co_safetensors_parse(&file, part, cut, "t.st"), CO_E_DATA);
        free(part);
    }
    for (size_t bit = 0; bit < size * 8; bit++) {
        co_safetensors *file = NULL;

        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (co_safetensors_parse(&file, bytes, size, "t.st") == CO_OK)
            for (size_t i = 0; i < co_safetensors_count(file); i++) {
                const co_named_tensor *tensor = co_safetensors_tensor(file, i);
                const uint8_t *at = tensor->data;

                assert_true(at >= bytes && at + tensor->bytes <= bytes + size);
            }
        co_safetensors_close(file);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(bytes);
}

static void safetensors_path_of_no_file_is_refused(void **state)
{
    char dir[] = "/tmp/cohort-safetensors-XXXXXX", path[64];
    co_safetensors *file = NULL;
    FILE *empty;

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(co_safetensors_open(&file, dir), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "is a folder, expected a safetensors file"));
    snprintf(path, sizeof(path), "%s/x", dir);
    assert_int_equal(co_safetensors_open(&file, path), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "No such file"));
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(co_safetensors_open(&file, path), CO_E_DATA); /* without waiting */
    assert_non_null(strstr(co_error_message(), "not a regular file"));
    assert_int_equal(unlink(path), 0);
    empty = fopen(path, "w");
    assert_non_null(empty);
    fclose(empty);
    assert_int_equal(co_safetensors_open(&file, path), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "is empty"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
    assert_null(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(safetensors_false_header_is_refused),
        cmocka_unit_test(safetensors_unusual_valid_file_is_read),
        cmocka_unit_test(safetensors_huge_header_length_is_refused),
        cmocka_unit_test(safetensors_damage_anywhere_is_safe),
        cmocka_unit_test(safetensors_path_of_no_file_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
