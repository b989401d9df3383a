/* test_safetensors.c - files read back as written; a file appears complete or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cohort/safetensors.h>

#include "core/mem.h"
#include "folder.h"

static int remove_strictly(void **state)
{
    (void)state;
    return folder_remove_with("w.safetensors");
}

static const float weight[6] = {1.5f, -2, 0, 3.25f, 1e-40f, -0.0f};
static const double real[1] = {0.1};
static const int32_t label[3] = {-1, 0, INT32_MAX};
static const int64_t steps[2] = {INT64_MIN, 7};
static const uint8_t byte[5] = {0, 1, 2, 254, 255};
/* Names out of order, one tensor empty, one a scalar, one name that JSON escapes, one in UTF-8. */
static const co_named_tensor all[] = {
    {"conv.weight", CO_F32, {4, {2, 1, 1, 3}}, weight, sizeof(weight)},
    {"a \"quoted\"\\name", CO_U8, {1, {5}}, byte, sizeof(byte)},
    {"conv.bias", CO_F64, {0, {0}}, real, sizeof(real)},
    {"z\xc3\xa4hler", CO_I64, {2, {2, 1}}, steps, sizeof(steps)},
    {"empty", CO_F32, {2, {3, 0}}, NULL, 0},
    {"label", CO_I32, {1, {3}}, label, sizeof(label)},
};
static const size_t n_all = sizeof(all) / sizeof(all[0]);

static void assert_tensor(const co_named_tensor *got, const co_named_tensor *want)
{
    assert_non_null(got);
    assert_string_equal(got->name, want->name);
    assert_int_equal(got->dtype, want->dtype);
    assert_true(co_shape_equal(&got->shape, &want->shape));
    assert_int_equal(got->bytes, want->bytes);
    if (want->bytes)
        assert_memory_equal(got->data, want->data, want->bytes);
    assert_int_equal((uintptr_t)got->data % co_dtype_size(got->dtype), 0);
}

static void safetensors_written_file_reads_back(void **state)
{
    const char *const metadata[] = {"format", "pt", "note", "two\nlines", NULL};
    co_safetensors *file;

    (void)state;
    assert_int_equal(co_safetensors_write(folder_path("w.safetensors"), all, n_all, metadata),
                     CO_OK);
    assert_int_equal(co_safetensors_open(&file, folder_path("w.safetensors")), CO_OK);
    assert_int_equal(co_safetensors_count(file), n_all);
    for (size_t i = 0; i < n_all; i++)
        assert_tensor(co_safetensors_find(file, all[i].name), &all[i]);
    for (size_t i = 1; i < n_all; i++)
        assert_true(strcmp(co_safetensors_tensor(file, i - 1)->name,
                           co_safetensors_tensor(file, i)->name) < 0);
    assert_null(co_safetensors_tensor(file, n_all));
    assert_null(co_safetensors_find(file, "conv"));
    assert_null(co_safetensors_find(file, "__metadata__"));
    assert_string_equal(co_safetensors_metadata(file, "format"), "pt");
    assert_string_equal(co_safetensors_metadata(file, "note"), "two\nlines");
    assert_null(co_safetensors_metadata(file, "conv.bias"));
    co_safetensors_close(file);
    assert_int_equal(folder_count(), 1);
}

/* IEEE 754 by hand: signs, limits of the range, subnormals, infinities and NaN. */
static const struct {
    uint16_t half;
    uint32_t wide;
} f16[] = {
    {0x0000, 0x00000000},                       /* 0 */
    {0x8000, 0x80000000},                       /* -0 */
    {0x3c00, 0x3f800000},                       /* 1 */
    {0xc100, 0xc0200000},                       /* -2.5 */
    {0x7bff, 0x477fe000},                       /* 65504, the largest */
    {0x0400, 0x38800000},                       /* 2^-14, the smallest normal number */
    {0x03ff, 0x387fc000},                       /* the largest subnormal */
    {0x0001, 0x33800000},                       /* 2^-24 */
    {0x8201, 0xb8004000},                       /* -513 * 2^-24 */
    {0x7c00, 0x7f800000},                       /* infinity */
    {0xfc00, 0xff800000}, {0x7e01, 0x7fc02000}, /* NaN */
};

static const struct {
    uint16_t half;
    uint32_t wide;
} bf16[] = {
    {0x3f80, 0x3f800000},
    {0xc020, 0xc0200000},
    {0x0001, 0x00010000},
    {0x7fc1, 0x7fc10000},
};

#define N_F16  (sizeof(f16) / sizeof(f16[0]))
#define N_BF16 (sizeof(bf16) / sizeof(bf16[0]))

static void safetensors_half_precision_reads_as_fp32(void **state)
{
    /* The first tensor's byte puts the halves at odd addresses. */
    static const char header[] =
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
        "\"b\":{\"dtype\":\"BF16\",\"shape\":[2,2],\"data_offsets\":[1,9]},"
        "\"c\":{\"dtype\":\"F16\",\"shape\":[12],\"data_offsets\":[9,33]},"
        "\"d\":{\"dtype\":\"F16\",\"shape\":[0],\"data_offsets\":[33,33]}}";
    const size_t length = sizeof(header) - 1;
    const co_named_tensor *tensor;
    uint8_t bytes[512] = {(uint8_t)length, (uint8_t)(length >> 8)};
    co_safetensors *file;

    (void)state;
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < N_BF16; i++)
        memcpy(bytes + 8 + length + 1 + 2 * i, &bf16[i].half, 2);
    for (size_t i = 0; i < N_F16; i++)
        memcpy(bytes + 8 + length + 9 + 2 * i, &f16[i].half, 2);
    assert_int_equal(co_safetensors_parse(&file, bytes, 8 + length + 33, "t.st"), CO_OK);
    tensor = co_safetensors_tensor(file, 1);
    assert_int_equal(tensor->dtype, CO_F32);
    assert_int_equal(tensor->bytes, 4 * N_BF16);
    assert_string_equal(co_safetensors_stored(file, 1), "BF16");
    for (size_t i = 0; i < N_BF16; i++)
        assert_memory_equal((const float *)tensor->data + i, &bf16[i].wide, 4);
    tensor = co_safetensors_find(file, "c");
    assert_int_equal(tensor->bytes, 4 * N_F16);
    assert_string_equal(co_safetensors_stored(file, 2), "F16");
    for (size_t i = 0; i < N_F16; i++)
        assert_memory_equal((const float *)tensor->data + i, &f16[i].wide, 4);
    assert_int_equal(co_safetensors_find(file, "d")->bytes, 0);
    assert_string_equal(co_safetensors_stored(file, 0), "U8");
    assert_null(co_safetensors_stored(file, 4));
    co_safetensors_close(file);
}

static void safetensors_any_order_gives_same_bytes(void **state)
{
    co_named_tensor turned[sizeof(all) / sizeof(all[0])];
    char *first = malloc(4096), *second = malloc(4096);
    size_t n;
    FILE *file;

    (void)state;
    for (size_t i = 0; i < n_all; i++)
        turned[i] = all[n_all - 1 - i];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            co_safetensors_write(folder_path("w.safetensors"), i ? turned : all, n_all, NULL),
            CO_OK);
        file = fopen(folder_path("w.safetensors"), "rb");
        n = fread(i ? second : first, 1, 4096, file);
        fclose(file);
    }
    assert_memory_equal(first, second, n);
    free(first);
    free(second);
}

static void safetensors_without_tensors_reads_back(void **state)
{
    co_safetensors *file;

    (void)state;
    assert_int_equal(co_safetensors_write(folder_path("w.safetensors"), NULL, 0, NULL), CO_OK);
    assert_int_equal(co_safetensors_open(&file, folder_path("w.safetensors")), CO_OK);
    assert_int_equal(co_safetensors_count(file), 0);
    assert_null(co_safetensors_find(file, "x"));
    assert_null(co_safetensors_metadata(file, "format"));
    co_safetensors_close(file);
    co_safetensors_close(NULL);
}

/* A caller's mistake is refused before a file is created. */
static void safetensors_inconsistent_tensor_is_not_written(void **state)
{
    static const struct {
        co_named_tensor tensor;
        const char *message;
    } cases[] = {
        {{"w", CO_F32, {1, {5}}, weight, sizeof(weight)}, "do not fit"},
        {{"w", CO_F32, {2, {-2, -3}}, weight, sizeof(weight)}, "do not fit"},
        {{"w", CO_F32, {2, {INT64_MAX, 16}}, weight, sizeof(weight)}, "do not fit"},
        {{"w", CO_F32, {CO_MAX_DIMS + 1, {6, 1, 1, 1, 1}}, weight, sizeof(weight)}, "do not fit"},
        {{"w", CO_DTYPE_COUNT, {1, {6}}, weight, sizeof(weight)}, "do not fit"},
        {{"__metadata__", CO_F32, {1, {6}}, weight, sizeof(weight)}, "cannot have the name"},
        {{"a\nb", CO_F32, {1, {6}}, weight, sizeof(weight)}, "holds a control character"},
        {{"", CO_F32, {1, {6}}, weight, sizeof(weight)}, "has no name"},
        {{"twin", CO_F32, {1, {6}}, weight, sizeof(weight)}, "'twin'"},
        {{"\xff", CO_F32, {1, {6}}, weight, sizeof(weight)}, "UTF-8"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const co_named_tensor both[] = {cases[i].tensor,
                                        {"twin", CO_F32, {1, {6}}, weight, sizeof(weight)}};

        assert_int_equal(co_safetensors_write(folder_path("w.safetensors"), both, 2, NULL),
                         CO_E_USAGE);
        assert_non_null(strstr(co_error_message(), cases[i].message));
        assert_int_equal(folder_count(), 0);
    }
}

static void limit_file_size(rlim_t bytes)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* The disk becomes full within the header, after it, or within a tensor. */
static void safetensors_full_disk_keeps_old_file(void **state)
{
    static float large[5000];
    const co_named_tensor old[] = {{"old", CO_F32, {1, {6}}, weight, sizeof(weight)}};
    const co_named_tensor tensors[] = {{"large", CO_F32, {1, {5000}}, large, sizeof(large)}};
    co_safetensors *file;

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    for (int exists = 0; exists < 2; exists++) {
        if (exists)
            assert_int_equal(co_safetensors_write(folder_path("w.safetensors"), old, 1, NULL),
                             CO_OK);
        for (rlim_t room = 0; room < 20000; room = room * 3 + 1) {
            co_status st;

            limit_file_size(room);
            st = co_safetensors_write(folder_path("w.safetensors"), tensors, 1, NULL);
            limit_file_size(RLIM_INFINITY);
            assert_int_equal(st, CO_E_IO);
            assert_non_null(strstr(co_error_message(), "w.safetensors: cannot write: File too"));
            assert_int_equal(folder_count(), exists);
        }
    }
    assert_int_equal(co_safetensors_open(&file, folder_path("w.safetensors")), CO_OK);
    assert_tensor(co_safetensors_find(file, "old"), &old[0]);
    co_safetensors_close(file);
}

static void safetensors_unwritable_path_is_refused(void **state)
{
    (void)state;
    assert_int_equal(co_safetensors_write(folder_path("none/w.safetensors"), all, n_all, NULL),
                     CO_E_IO);
    assert_non_null(strstr(co_error_message(), "No such file or directory"));
    assert_int_equal(mkdir(folder_path("w.safetensors"), 0777), 0);
    assert_int_equal(co_safetensors_write(folder_path("w.safetensors"), all, n_all, NULL), CO_E_IO);
    assert_non_null(strstr(co_error_message(), "w.safetensors"));
    assert_int_equal(folder_count(), 1);
    assert_int_equal(rmdir(folder_path("w.safetensors")), 0);
}

/* The k-th allocation fails, for every k: an error, without leaks. */
static void safetensors_failed_allocation_is_an_error(void **state)
{
    const char *const metadata[] = {"format", "pt", NULL};
    co_status st = CO_E_NOMEM;
    co_safetensors *file = NULL;
    uint64_t k;

    (void)state;
    for (k = 1; st != CO_OK && k < 1000; k++) {
        co_mem_fail_at(k);
        st = co_safetensors_write(folder_path("w.safetensors"), all, n_all, metadata);
        co_mem_fail_at(0);
        assert_true(st == CO_OK || st == CO_E_NOMEM || st == CO_E_IO);
    }
    assert_int_equal(st, CO_OK);
    assert_true(k > 3);
    st = CO_E_NOMEM;
    for (k = 1; st != CO_OK && k < 1000; k++) {
        co_mem_fail_at(k);
        st = co_safetensors_open(&file, folder_path("w.safetensors"));
        co_mem_fail_at(0);
        assert_true(st == CO_OK || st == CO_E_NOMEM);
    }
    assert_int_equal(st, CO_OK);
    assert_true(k > 3);
    assert_tensor(co_safetensors_find(file, all[0].name), &all[0]);
    co_safetensors_close(file);
}

#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, folder_make, remove_strictly)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(safetensors_half_precision_reads_as_fp32),
        IN_DIR(safetensors_written_file_reads_back),
        IN_DIR(safetensors_any_order_gives_same_bytes),
        IN_DIR(safetensors_without_tensors_reads_back),
        IN_DIR(safetensors_inconsistent_tensor_is_not_written),
        IN_DIR(safetensors_full_disk_keeps_old_file),
        IN_DIR(safetensors_unwritable_path_is_refused),
        IN_DIR(safetensors_failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
