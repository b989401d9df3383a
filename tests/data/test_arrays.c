/* test_arrays.c - NPY files, and data sets of arrays: contents and errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cohort/safetensors.h>

#include "data/data.h"
#include "data/npy.h"
#include "files.h"

/* Build an NPY file of version 1; returns its size. */
static size_t npy_make(uint8_t *out, const char *header, const void *bytes, size_t size)
{
    static const uint8_t begin[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    const size_t n = strlen(header);

    memcpy(out, begin, sizeof(begin));
    out[8] = (uint8_t)n;
    out[9] = (uint8_t)(n >> 8);
    for (size_t i = 0; i < n; i++)
        out[10 + i] = (uint8_t)header[i];
    memcpy(out + 10 + n, bytes, size);
    return 10 + n + size;
}

static void npy_write(const char *name, const char *header, const void *bytes, size_t size)
{
    uint8_t file[1024];

    files_write(name, file, npy_make(file, header, bytes, size));
}

static void npy_types_and_shapes_of_numpy_are_read(void **state)
{
    static const struct {
        const char *header;
        co_dtype dtype;
        co_shape shape;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", CO_F32, {2, {2, 3}}},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }\n", CO_F64, {1, {3}}},
        {"{'shape': (6,), 'fortran_order': True, 'descr': '<i4'}", CO_I32, {1, {6}}},
        {"{ \"descr\" : \"<i8\", 'fortran_order':False,'shape':( 1 ,3 , )}", CO_I64, {2, {1, 3}}},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3, 2, 2, 1), }",
         CO_U8,
         {5, {2, 3, 2, 2, 1}}},
        {"{'descr': '|b1', 'fortran_order': False, 'shape': (24,), }", CO_U8, {1, {24}}},
    };
    const uint8_t bytes[24] = {1, 2, 3};
    uint8_t file[256];
    co_npy npy;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const size_t n = npy_make(file, cases[i].header, bytes, sizeof(bytes));

        if (co_npy_parse(&npy, file, n, "x.npy") != CO_OK)
            fail_msg("%s: %s", cases[i].header, co_error_message());
        assert_int_equal(npy.dtype, cases[i].dtype);
        assert_true(co_shape_equal(&npy.shape, &cases[i].shape));
        assert_memory_equal(npy.data, bytes, sizeof(bytes));
        co_npy_close(&npy);
    }
}

static void npy_unsupported_file_is_refused(void **state)
{
    static const struct {
        const char *header, *message;
    } cases[] = {
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (6,), }", "astype('<f4')"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (6,), }", "elements of type '|O'"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", "ascontiguousarray"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "one number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3), }", "empty: its shape is (0"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (7,), }", "cut short"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }", "too long"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
         "more bytes than any file has"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
         "not a dict"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 6), }", "not a dict"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (6,)", "not a dict"},
        {"{'descr': '<f4', 'shape': (6,), }", "not a dict"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (6,), }", "not a dict"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,), }", "not a dict"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (6,), 'more': 1}", "not a dict"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-6,), }", "not a dict"},
    };
    const uint8_t bytes[24] = {0};
    uint8_t file[256];
    co_npy npy;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const size_t n = npy_make(file, cases[i].header, bytes, sizeof(bytes));

        assert_int_equal(co_npy_parse(&npy, file, n, "x.npy"), CO_E_DATA);
        if (!strstr(co_error_message(), cases[i].message) ||
            strncmp(co_error_message(), "x.npy: ", 7) != 0)
            fail_msg("'%s' is not in: %s", cases[i].message, co_error_message());
    }
    for (size_t n = 1; n < 70; n++) { /* truncated anywhere */
        (void)npy_make(file, "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }", bytes,
                       24);
        assert_int_equal(co_npy_parse(&npy, file, n, "x.npy"), CO_E_DATA);
    }
}

#define HEADER(type, shape) "{'descr': '" type "', 'fortran_order': False, 'shape': " shape ", }"

static void write_split(const char *split, const void *input, const double *target,
                        const int64_t *label)
{
    char name[64];

    snprintf(name, sizeof(name), "%s.input.npy", split);
    npy_write(name, HEADER("<i4", "(3, 2)"), input, 24);
    snprintf(name, sizeof(name), "%s.target.npy", split);
    npy_write(name, HEADER("<f8", "(3,)"), target, 24);
    snprintf(name, sizeof(name), "%s.label.npy", split);
    npy_write(name, HEADER("<i8", "(3, 1)"), label, 24);
}

static co_status open_arrays(co_dataset **out, const char *name, const char *more)
{
    char config[512];

    snprintf(config, sizeof(config), "{name: arrays, path: %s%s}", files_path(name), more);
    return co_dataset_open(out, config, CO_SPLIT_TRAIN);
}

static void arrays_folder_gives_fields(void **state)
{
    const int32_t input[6] = {1, -2, 3, 4, 5, 1 << 20};
    const double target[3] = {0.5, 1e300, -3};
    const int64_t label[3] = {0, 2, 1};
    const co_field *field;
    co_dataset *data;
    float pair[2], value;
    int32_t class;

    (void)state;
    write_split("train", input, target, label);
    npy_write("train.weight.npy", HEADER("|u1", "(3, 2)"), "abcdef", 6);
    assert_int_equal(open_arrays(&data, "", ""), CO_OK);
    field = co_dataset_fields(data);
    assert_string_equal(field[0].name, "input");
    assert_string_equal(field[1].name, "label");
    assert_string_equal(field[2].name, "target");
    assert_string_equal(field[3].name, "weight");
    assert_null(field[4].name);
    assert_int_equal(field[3].dtype, CO_U8);
    assert_int_equal(co_dataset_count(data), 3);
    assert_int_equal(co_dataset_classes(data), 3);
    assert_int_equal(co_dataset_label(data, 1), 2);
    assert_int_equal(co_dataset_read(data, pair, 2), CO_OK);
    assert_true(pair[0] == 5 && pair[1] == 1 << 20);
    assert_int_equal(co_dataset_read_field(data, &class, 1, 2), CO_OK);
    assert_int_equal(class, 1);
    assert_int_equal(co_dataset_read_field(data, &value, 2, 1), CO_OK);
    assert_true(isinf(value));
    assert_int_equal(co_dataset_read_field(data, &value, 2, 0), CO_OK);
    assert_true(value == 0.5f);
    assert_int_equal(co_dataset_read_field(data, &value, 4, 0), CO_E_USAGE);
    assert_int_equal(co_dataset_read_field(data, &value, 2, 3), CO_E_USAGE);
    co_dataset_destroy(data);
    files_remove("train.weight.npy");
}

static void assert_refused(const char *name, const char *more, const char *message)
{
    co_dataset *data;

    assert_int_not_equal(open_arrays(&data, name, more), CO_OK);
    if (!strstr(co_error_message(), message))
        fail_msg("'%s' is not in: %s", message, co_error_message());
}

static void arrays_inconsistent_fields_are_refused(void **state)
{
    const int32_t input[6] = {0};
    const double target[3] = {0};
    int64_t label[3] = {0, 2, 1};

    (void)state;
    write_split("train", input, target, label);
    assert_refused("", ", normalize: imagenet", "normalize is for images");
    assert_refused("", ", classes: 2", "label 1 of train.label is 2; labels are 0 to 1");
    assert_refused("missing", "", "no such folder");
    label[2] = -1;
    write_split("train", input, target, label);
    assert_refused("", "", "label 2 of train.label is -1");
    npy_write("train.label.npy", HEADER("<f8", "(3,)"), target, 24);
    assert_refused("", "", "belong into the field `target`");
    npy_write("train.label.npy", HEADER("<i4", "(3, 2)"), input, 24);
    assert_refused("", "", "something else than one whole number");
    npy_write("train.label.npy", HEADER("|u1", "(2,)"), "\1\0", 2);
    assert_refused("", "", "the array train.label has 2 samples, but train.input has 3");
    files_remove("train.label.npy");
    files_remove("train.target.npy");
    assert_refused("", "", "neither train.label nor train.target");
    files_remove("train.input.npy");
    assert_refused("", "", "no array train.input");
}

static void arrays_safetensors_file_gives_fields(void **state)
{
    const float input[4] = {1, 2, 3, 4}, target[2] = {5, 6};
    const co_named_tensor tensors[] = {
        {"train.input", CO_F32, {3, {2, 1, 2}}, input, sizeof(input)},
        {"train.target", CO_F32, {1, {2}}, target, sizeof(target)},
        {"test.input", CO_F32, {3, {2, 1, 2}}, input, sizeof(input)},
    };
    const co_sampler_options sampling = {
        .count = 2, .batch = 2, .ranks = 1, .partition = "{kind: dirichlet, alpha: 1}"};
    co_sampler_options labels = sampling;
    co_sampler *sampler;
    co_dataset *data;
    float out[2];

    (void)state;
    assert_int_equal(co_safetensors_write(files_path("all.safetensors"), tensors, 3, NULL), CO_OK);
    assert_int_equal(open_arrays(&data, "all.safetensors", ""), CO_OK);
    assert_int_equal(co_dataset_shape(data)->ndim, 2);
    assert_int_equal(co_dataset_classes(data), 1);
    assert_int_equal(co_dataset_label(data, 0), 0);
    assert_int_equal(co_dataset_read(data, out, 1), CO_OK);
    assert_true(out[0] == 3 && out[1] == 4);
    labels.dataset = data;
    assert_int_equal(co_sampler_create(&sampler, &labels), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "have no label"));
    co_dataset_destroy(data);
    files_remove("all.safetensors");
}

static void assert_test_classes(const char *name, int64_t classes)
{
    char config[512];
    co_dataset *data;

    snprintf(config, sizeof(config), "{name: arrays, path: %s}", files_path(name));
    if (co_dataset_open(&data, config, CO_SPLIT_TEST) != CO_OK)
        fail_msg("%s", co_error_message());
    assert_int_equal(co_dataset_classes(data), classes);
    co_dataset_destroy(data);
}

/* A test split without the highest label is opened alone when a run is evaluated. */
static void arrays_classes_are_those_of_training(void **state)
{
    const int32_t input[6] = {0};
    const double target[3] = {0};
    const int64_t train[3] = {0, 2, 1}, test[3] = {0, 1, 0}, more[3] = {0, 3, 1};
    const co_named_tensor tensors[] = {
        {"train.label", CO_I64, {1, {3}}, train, sizeof(train)},
        {"test.input", CO_I32, {2, {3, 2}}, input, sizeof(input)},
        {"test.label", CO_I64, {1, {3}}, test, sizeof(test)},
    };
    co_dataset *data;
    char config[512];

    (void)state;
    write_split("train", input, target, train);
    write_split("test", input, target, test);
    assert_test_classes("", 3);
    write_split("test", input, target, more);
    snprintf(config, sizeof(config), "{name: arrays, path: %s}", files_path(""));
    assert_int_equal(co_dataset_open(&data, config, CO_SPLIT_TEST), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "label 1 of test.label is 3; labels are 0 to 2"));
    files_remove("train.label.npy");
    assert_test_classes("", 4); /* nothing else is known */
    assert_int_equal(co_safetensors_write(files_path("all.safetensors"), tensors, 3, NULL), CO_OK);
    assert_test_classes("all.safetensors", 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(npy_types_and_shapes_of_numpy_are_read),
        cmocka_unit_test(npy_unsupported_file_is_refused),
        cmocka_unit_test(arrays_folder_gives_fields),
        cmocka_unit_test(arrays_inconsistent_fields_are_refused),
        cmocka_unit_test(arrays_safetensors_file_gives_fields),
        cmocka_unit_test(arrays_classes_are_those_of_training),
    };

    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
