/* test_arguments.c - values that a foreign data set returns, and arguments that a program
   passes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "data/dataset_internal.h"

#define COUNT 97

static const char config[] =
    "{name: synthetic, shape: [1, 6, 5], samples: 97, classes: 5, on_bad_sample: skip}";

static const co_dataset_ops *whole;
static int32_t wrong;

static int32_t label_of(const void *self, uint64_t i)
{
    return i == 41 ? wrong : whole->label(self, i);
}

static co_status read_short(const void *self, co_bytes *out, co_buffer *buffer, uint64_t i)
{
    CO_TRY(whole->read(self, out, buffer, i));
    out->n -= i == 41;
    return CO_OK;
}

static co_dataset *open_data(co_dataset_ops *ops)
{
    co_dataset *data;

    assert_int_equal(co_dataset_open(&data, config, CO_SPLIT_TRAIN), CO_OK);
    whole = data->ops;
    *ops = *whole;
    data->ops = ops;
    return data;
}

static void assert_says(co_status st, co_status want, const char *message)
{
    assert_int_equal(st, want);
    if (!strstr(co_error_message(), message))
        fail_msg("'%s' is not in: %s", message, co_error_message());
}

static co_status read_epoch(const co_dataset *data, int threads)
{
    const co_sampler_options sampling = {.count = COUNT, .batch = 24, .ranks = 1};
    co_loader_options loading = {.dataset = data, .threads = threads};
    co_status st = CO_OK;
    co_batch batch;
    co_loader *loader;

    assert_int_equal(co_sampler_create(&loading.sampler, &sampling), CO_OK);
    assert_int_equal(co_loader_create(&loader, &loading), CO_OK);
    for (int i = 0; i < 5 && st == CO_OK; i++)
        st = co_loader_next(&batch, loader);
    co_loader_destroy(loader);
    co_sampler_destroy(loading.sampler);
    return st;
}

/* Not replaced by another sample, because the data set is wrong, not an image. */
static void dataset_label_beyond_classes_ends_reading(void **state)
{
    static const int32_t labels[] = {-1, 5, INT32_MAX, INT32_MIN};

    (void)state;
    for (int k = 0; k < 8; k++) {
        co_dataset_ops ops;
        co_dataset *data = open_data(&ops);
        char want[96];

        wrong = labels[k / 2];
        ops.label = label_of;
        snprintf(want, sizeof(want),
                 "sample 41 of synthetic: label %d; those of this data set are "
                 "0 to 4",
                 (int)wrong);
        assert_says(read_epoch(data, k % 2), CO_E_DATA, want);
        co_dataset_destroy(data);
    }
}

static void partition_label_beyond_classes_is_refused(void **state)
{
    static const char *const partitions[] = {"{kind: labels, labels: [[0, 1, 2, 3, 4], []]}",
                                             "{kind: dirichlet, alpha: 1}"};
    co_dataset_ops ops;
    co_dataset *data = open_data(&ops);

    (void)state;
    wrong = 100000;
    ops.label = label_of;
    for (int k = 0; k < 2; k++) {
        const co_sampler_options options = {
            .count = COUNT, .batch = 24, .ranks = 2, .partition = partitions[k], .dataset = data};
        co_sampler *sampler;

        assert_says(co_sampler_create(&sampler, &options), CO_E_DATA,
                    "sample 41 of synthetic: label");
    }
    co_dataset_destroy(data);
}

static void dataset_sample_of_wrong_size_is_refused(void **state)
{
    co_dataset_ops ops;
    co_dataset *data = open_data(&ops);
    float out[30];

    (void)state;
    ops.read = read_short;
    assert_int_equal(co_dataset_read(data, out, 40), CO_OK);
    assert_says(co_dataset_read(data, out, 41), CO_E_DATA,
                "sample 41 of synthetic: 29 bytes; a sample has 30");
    co_dataset_destroy(data);
}

static void dataset_missing_sample_or_rank_is_refused(void **state)
{
    co_sampler_options sampling = {.count = COUNT, .batch = 24, .ranks = 2};
    co_loader_options loading = {.rank = 2};
    co_dataset_ops ops;
    co_dataset *data = open_data(&ops);
    co_loader *loader;
    float out[30];

    (void)state;
    assert_says(co_dataset_read(data, out, COUNT), CO_E_USAGE,
                "there is no sample 97; the data set has 97");
    assert_int_equal(co_sampler_create(&loading.sampler, &sampling), CO_OK);
    loading.dataset = data;
    for (int k = 0; k < 4; k++) {
        loading.rank = (int[]){2, -1, 1, INT32_MAX}[k];
        loading.shards = k == 2 ? 2 : 0;
        assert_says(co_loader_create(&loader, &loading), CO_E_USAGE,
                    "the sampler's ranks are 0 to 1");
    }
    co_sampler_destroy(loading.sampler);
    sampling.count++;
    assert_int_equal(co_sampler_create(&loading.sampler, &sampling), CO_OK);
    loading.rank = loading.shards = 0;
    assert_says(co_loader_create(&loader, &loading), CO_E_USAGE,
                "the sampler is for 98 samples, the data set has 97");
    co_sampler_destroy(loading.sampler);
    sampling.dataset = data;
    sampling.partition = "{kind: dirichlet, alpha: 1}";
    assert_says(co_sampler_create(&loading.sampler, &sampling), CO_E_USAGE,
                "98 samples; the data set has 97");
    assert_says(co_dataset_open(&data, NULL, CO_SPLIT_TRAIN), CO_E_USAGE, "config text is missing");
    co_dataset_destroy(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dataset_label_beyond_classes_ends_reading),
        cmocka_unit_test(partition_label_beyond_classes_is_refused),
        cmocka_unit_test(dataset_sample_of_wrong_size_is_refused),
        cmocka_unit_test(dataset_missing_sample_or_rank_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
