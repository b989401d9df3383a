/* test_text.c - data set "text": vocabulary, windows of both splits, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "data/data.h"
#include "files.h"

#define CONTEXT 4

static co_status open_text(co_dataset **out, const char *path, const char *more, co_split split)
{
    char config[1024];

    snprintf(config, sizeof(config), "{name: text, path: %s, %s}", path, more);
    return co_dataset_open(out, config, split);
}

static co_dataset *must_open(const char *path, const char *more, co_split split)
{
    co_dataset *data;

    if (open_text(&data, path, more, split) != CO_OK)
        fail_msg("%s", co_error_message());
    return data;
}

static void assert_refused(const char *name, const char *more, co_status want, const char *message)
{
    co_dataset *data;

    assert_int_equal(open_text(&data, files_path(name), more, CO_SPLIT_TRAIN), want);
    if (!strstr(co_error_message(), message))
        fail_msg("'%s' is not in: %s", message, co_error_message());
}

static void read_window(const co_dataset *data, int32_t *input, int32_t *label, uint64_t i)
{
    assert_int_equal(co_dataset_read_field(data, input, 0, i), CO_OK);
    assert_int_equal(co_dataset_read_field(data, label, 1, i), CO_OK);
}

static void text_characters_are_numbered_by_code_point(void **state)
{
    static const char text[] = "b\xc3\xa9\n\xf0\x9f\x98\x80"
                               "ab"; /* b é \n 😀 a b */
    static const int32_t want[] = {2, 3, 0, 4, 1, 2};
    const co_field *field;
    co_dataset *data;
    int32_t input[5], label[5];

    (void)state;
    files_write("small.txt", text, sizeof(text) - 1);
    data = must_open(files_path("small.txt"), "context: 5, test_fraction: 0", CO_SPLIT_TRAIN);
    field = co_dataset_fields(data);
    assert_string_equal(field[0].name, CO_FIELD_INPUT);
    assert_string_equal(field[1].name, CO_FIELD_LABEL);
    assert_null(field[2].name);
    assert_true(field[0].dtype == CO_I32 && field[1].dtype == CO_I32);
    assert_true(co_shape_equal(&field[0].shape, &(co_shape){1, {5}}));
    assert_int_equal(co_dataset_classes(data), 5);
    assert_int_equal(co_dataset_count(data), 1);
    assert_true(co_dataset_bytes_per_token(data) == 10.0 / 6);
    read_window(data, input, label, 0);
    assert_memory_equal(input, want, sizeof(input));
    assert_memory_equal(label, want + 1, sizeof(label));
    co_dataset_destroy(data);
}

static void text_bytes_take_any_file(void **state)
{
    static const uint8_t text[] = {0xff, 0, 0xc3, 'a', 0x80, 'b'};
    co_dataset *data;
    int32_t input[5], label[5];

    (void)state;
    files_write("bytes.txt", text, sizeof(text));
    data = must_open(files_path("bytes.txt"), "context: 5, test_fraction: 0, tokenizer: bytes",
                     CO_SPLIT_TRAIN);
    assert_int_equal(co_dataset_classes(data), 256);
    assert_true(co_dataset_bytes_per_token(data) == 1);
    read_window(data, input, label, 0);
    for (int t = 0; t < 5; t++)
        assert_true(input[t] == text[t] && label[t] == text[t + 1]);
    co_dataset_destroy(data);
}

/* A file of `count` bytes, each of which says where it is. */
static void write_places(size_t count)
{
    uint8_t text[200];

    for (size_t i = 0; i < count; i++)
        text[i] = (uint8_t)i;
    files_write("places.txt", text, count);
}

static void text_test_split_predicts_each_token_once(void **state)
{
    (void)state;
    for (int count = 50; count < 60; count++) {
        const int cut = (int)(count * 0.8), first = cut + 1;
        int seen[60] = {0};
        co_dataset *data;

        write_places((size_t)count);
        data = must_open(files_path("places.txt"),
                         "context: 4, tokenizer: bytes, test_fraction: 0.2", CO_SPLIT_TEST);
        for (uint64_t i = 0; i < co_dataset_count(data); i++) {
            int32_t input[CONTEXT], label[CONTEXT];

            read_window(data, input, label, i);
            for (int t = 0; t < CONTEXT; t++) {
                assert_int_in_range(input[t], cut, count - 2);
                if (label[t] == -1)
                    continue;
                assert_int_equal(label[t], input[t] + 1);
                seen[label[t]]++;
            }
        }
        for (int i = 0; i < count; i++)
            assert_int_equal(seen[i], i >= first);
        co_dataset_destroy(data);
    }
}

/* The first token of each window of an epoch, in the order in which `ranks` ranks take them. */
static size_t take_epoch(int32_t *first, uint32_t *sample, const co_dataset *data, int ranks,
                         uint64_t seed, uint64_t epoch, uint64_t first_step)
{
    const co_sampler_options sampling = {
        .count = co_dataset_count(data), .batch = 6, .ranks = ranks, .seed = seed};
    size_t n = 0;

    for (int rank = 0; rank < ranks; rank++) {
        co_loader_options loading = {.dataset = data,
                                     .rank = rank,
                                     .threads = rank,
                                     .seed = seed,
                                     .first_epoch = epoch,
                                     .first_step = first_step};
        co_sampler *sampler;
        co_loader *loader;
        uint64_t steps;

        assert_int_equal(co_sampler_create(&sampler, &sampling), CO_OK);
        loading.sampler = sampler;
        assert_int_equal(co_loader_create(&loader, &loading), CO_OK);
        steps = co_sampler_steps(sampler);
        for (uint64_t step = first_step; step < steps; step++) {
            const int32_t *input, *label;
            co_batch batch;

            assert_int_equal(co_loader_next(&batch, loader), CO_OK);
            assert_true(batch.epoch == epoch && batch.step == step);
            input = batch.field[0].data;
            label = batch.field[1].data;
            for (uint64_t k = 0; k < batch.count; k++, n++) {
                sample[n] = batch.sample[k];
                first[n] = input[k * CONTEXT];
                for (int t = 0; t < CONTEXT; t++)
                    assert_true(input[k * CONTEXT + (uint64_t)t] == first[n] + t &&
                                label[k * CONTEXT + (uint64_t)t] == first[n] + t + 1);
            }
        }
        co_loader_destroy(loader);
        co_sampler_destroy(sampler);
    }
    return n;
}

static void text_training_windows_follow_seed_and_epoch_alone(void **state)
{
    int32_t first[4][200], offset[20] = {0};
    uint32_t sample[4][200];
    int different = 0;
    co_dataset *data;

    (void)state;
    write_places(200);
    data = must_open(files_path("places.txt"), "context: 4, tokenizer: bytes, test_fraction: 0",
                     CO_SPLIT_TRAIN);
    for (uint64_t epoch = 0; epoch < 20; epoch++) {
        const size_t n = take_epoch(first[0], sample[0], data, 1, 7, epoch, 0);

        assert_int_equal(n, (200 - CONTEXT) / CONTEXT);
        offset[epoch] = first[0][0] - (int32_t)sample[0][0] * CONTEXT;
        assert_int_in_range(offset[epoch], 0, CONTEXT - 1);
        for (size_t i = 0; i < n; i++) /* one offset for all */
            assert_int_equal(first[0][i], offset[epoch] + (int32_t)sample[0][i] * CONTEXT);
        different += offset[epoch] != offset[0];
        assert_int_equal(take_epoch(first[1], sample[1], data, 3, 7, epoch, 0), n);
        for (size_t i = 0; i < n; i++) /* the same on 3 ranks, though not in this order */
            assert_int_equal(first[1][i], offset[epoch] + (int32_t)sample[1][i] * CONTEXT);
        assert_int_equal(take_epoch(first[2], sample[2], data, 1, 7, epoch, 3), n - 18);
        assert_memory_equal(first[2], first[0] + 18, (n - 18) * sizeof(first[0][0]));
    }
    assert_true(different > 5);
    (void)take_epoch(first[3], sample[3], data, 1, 8, 0, 0);
    assert_memory_not_equal(first[3], first[0], 48 * sizeof(first[0][0]));
    co_dataset_destroy(data);
}

static void text_short_file_gives_all_its_windows(void **state)
{
    static const struct {
        size_t count;
        uint64_t windows;
    } cases[] = {{5, 1}, {7, 1}, {8, 1}, {11, 1}, {12, 2}, {15, 2}, {16, 3}};

    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        int32_t first[200];
        uint32_t sample[200];
        co_dataset *data;

        write_places(cases[c].count);
        data = must_open(files_path("places.txt"), "context: 4, tokenizer: bytes, test_fraction: 0",
                         CO_SPLIT_TRAIN);
        assert_int_equal(co_dataset_count(data), cases[c].windows);
        for (uint64_t epoch = 0; epoch < 20; epoch++) {
            const size_t n = take_epoch(first, sample, data, 1, 1, epoch, 0);

            for (size_t i = 0; i < n; i++)
                assert_int_in_range(first[i], 0, cases[c].count - CONTEXT - 1);
        }
        co_dataset_destroy(data);
    }
}

static void text_unusable_file_or_key_is_refused(void **state)
{
    (void)state;
    files_write("bad.txt", "one\ntwo \xc3(\n", 12);
    assert_refused("bad.txt", "context: 2", CO_E_DATA,
                   "bad.txt: line 2, byte 8: 0xc3 is not UTF-8; `tokenizer: bytes`");
    files_write("bad.txt", "one\ntwo \xe2\x82", 10);
    assert_refused("bad.txt", "context: 2", CO_E_DATA, "line 2, byte 8: 0xe2 is not UTF-8");
    write_places(100);
    assert_refused("places.txt", "context: 90", CO_E_DATA,
                   "places.txt: 90 tokens in the training split; a window of context 90 needs 91");
    assert_refused("places.txt", "context: 0", CO_E_USAGE, "context");
    assert_refused("places.txt", "test_fraction: 0.1", CO_E_USAGE, "context");
    assert_refused("places.txt", "context: 4, normalize: mnist", CO_E_USAGE, "is for images");
    assert_refused("none.txt", "context: 4", CO_E_DATA, "none.txt");
    files_write("empty.txt", "", 0);
    assert_refused("empty.txt", "context: 4", CO_E_DATA, "is empty");
}

static void text_shakespeare_has_nanogpt_tokens(void **state)
{
    static const int32_t want[] = {18, 47, 56, 57, 58, 1, 15, 47, 58, 47, 64, 43, 52};
    const char *folder = files_real("text");
    char path[512];
    co_dataset *train, *test;
    int32_t input[64], label[64];

    (void)state;
    if (!folder) {
        printf("skipped: no shared/data/text\n");
        skip();
    }
    snprintf(path, sizeof(path), "%s/tinyshakespeare.txt", folder);
    train = must_open(path, "context: 64", CO_SPLIT_TRAIN);
    test = must_open(path, "context: 64", CO_SPLIT_TEST);
    assert_int_equal(co_dataset_classes(train), 65);
    assert_int_equal(co_dataset_classes(test), 65);
    assert_int_equal(co_dataset_count(train), (1003854 - 64) / 64);
    assert_int_equal(co_dataset_count(test), (111540 - 1 + 63) / 64);
    read_window(train, input, label, 0);
    assert_memory_equal(input, want, sizeof(want));
    co_dataset_destroy(train);
    co_dataset_destroy(test);
}

static void synthetic_tokens_follow_rule_mostly(void **state)
{
    static const char config[] =
        "{name: synthetic-tokens, context: 50, vocabulary: 11, samples: 40}";
    co_dataset *data;
    int32_t input[50], label[50], other[50];
    int followed = 0;

    (void)state;
    assert_int_equal(co_dataset_open(&data, config, CO_SPLIT_TRAIN), CO_OK);
    assert_int_equal(co_dataset_count(data), 40);
    assert_int_equal(co_dataset_classes(data), 11);
    read_window(data, other, label, 39);
    for (uint64_t i = 0; i < 40; i++) {
        read_window(data, input, label, i);
        assert_memory_equal(input + 1, label, 49 * sizeof(*input));
        for (int t = 0; t < 50; t++) {
            assert_int_in_range(input[t], 0, 10);
            followed += label[t] == (input[t] * 7 + 3) % 11;
        }
        assert_true((i == 39) == (memcmp(input, other, sizeof(input)) == 0));
    }
    assert_int_in_range(followed, 2000 * 3 / 4 - 50, 2000 * 9 / 10);
    co_dataset_destroy(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synthetic_tokens_follow_rule_mostly),
        cmocka_unit_test(text_characters_are_numbered_by_code_point),
        cmocka_unit_test(text_bytes_take_any_file),
        cmocka_unit_test(text_test_split_predicts_each_token_once),
        cmocka_unit_test(text_training_windows_follow_seed_and_epoch_alone),
        cmocka_unit_test(text_short_file_gives_all_its_windows),
        cmocka_unit_test(text_unusable_file_or_key_is_refused),
        cmocka_unit_test(text_shakespeare_has_nanogpt_tokens),
    };

    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
