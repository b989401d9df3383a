/* test_loader.c - the loader gives the sampler's batches, in order, however many threads read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "core/clock.h"
#include "core/mem.h"
#include "data/data.h"

#define COUNT 97
#define SIZE  ((size_t)30) /* (1, 6, 5) */

static const int threads[] = {0, 1, 3};

typedef struct feed {
    co_dataset *data;
    co_sampler *sampler;
    co_loader *loader;
} feed;

static co_sampler_options sampling(int ranks, const char *partition)
{
    return (co_sampler_options){
        .count = COUNT, .batch = 24, .ranks = ranks, .seed = 3, .partition = partition};
}

static void feed_open(feed *f, const char *config, co_sampler_options options,
                      co_loader_options loading)
{
    assert_int_equal(co_dataset_open(&f->data, config, CO_SPLIT_TRAIN), CO_OK);
    assert_int_equal(co_sampler_create(&f->sampler, &options), CO_OK);
    loading.dataset = f->data;
    loading.sampler = f->sampler;
    if (co_loader_create(&f->loader, &loading) != CO_OK)
        fail_msg("%s", co_error_message());
}

static void feed_close(feed *f)
{
    co_loader_destroy(f->loader);
    co_sampler_destroy(f->sampler);
    co_dataset_destroy(f->data);
}

static const char config[] = "{name: synthetic, shape: [1, 6, 5], samples: 97}";

static void assert_batch(const co_batch *batch, const co_dataset *data, co_sampler *reference,
                         int rank)
{
    uint32_t sample[24];
    float want[SIZE];

    assert_int_equal(batch->count, co_sampler_local(reference, batch->step, rank));
    assert_int_equal(batch->global, co_sampler_global(reference, batch->step));
    assert_int_equal(co_sampler_indices(reference, sample, batch->epoch, batch->step, rank), CO_OK);
    assert_memory_equal(batch->sample, sample, batch->count * sizeof(*sample));
    for (uint64_t i = 0; i < batch->count; i++) {
        assert_int_equal(co_dataset_read(data, want, sample[i]), CO_OK);
        assert_memory_equal(batch->input + i * SIZE, want, sizeof(want));
        assert_int_equal(batch->label[i], co_dataset_label(data, sample[i]));
    }
}

/* Three epochs, every rank, with and without parts, from the start and from the middle. */
static void batches_come_in_the_plans_order(void **state)
{
    static const char *const partitions[] = {NULL, "{kind: random, ratios: [0.7, 0.28, 0.02]}"};

    (void)state;
    for (int k = 0; k < 36; k++) {
        const co_sampler_options options = sampling(3, partitions[k / 18]);
        const uint64_t first_step = k / 9 % 2 ? 3 : 0;
        const int rank = k % 3;
        co_sampler *reference;
        feed f;

        feed_open(&f, config, options,
                  (co_loader_options){.rank = rank,
                                      .threads = threads[k / 3 % 3],
                                      .depth = 1 + k % 5,
                                      .first_epoch = first_step ? 7 : 0,
                                      .first_step = first_step});
        assert_int_equal(co_sampler_create(&reference, &options), CO_OK);
        for (uint64_t n = first_step; n < 15; n++) {
            co_batch batch;

            assert_int_equal(co_loader_next(&batch, f.loader), CO_OK);
            assert_int_equal(batch.epoch, (first_step ? 7 : 0) + n / 5);
            assert_int_equal(batch.step, n % 5);
            assert_batch(&batch, f.data, reference, rank);
        }
        co_sampler_destroy(reference);
        feed_close(&f);
    }
}

/* A batch stays whole while the next ones are read ahead. */
static void a_batch_is_not_overwritten_while_borrowed(void **state)
{
    (void)state;
    for (int depth = 1; depth <= 3; depth++) {
        co_batch batch;
        float first[24 * SIZE];
        feed f;

        feed_open(&f, config, sampling(1, NULL), (co_loader_options){.threads = 3, .depth = depth});
        for (int n = 0; n < 8; n++) {
            assert_int_equal(co_loader_next(&batch, f.loader), CO_OK);
            memcpy(first, batch.input, batch.count * SIZE * sizeof(float));
            co_clock_sleep_us(2000); /* readers fill all they may */
            assert_memory_equal(first, batch.input, batch.count * SIZE * sizeof(float));
        }
        feed_close(&f);
    }
}

static void it_ends_at_any_moment(void **state)
{
    (void)state;
    for (int k = 0; k < 60; k++) {
        feed f;

        feed_open(&f, "{name: synthetic, shape: [3, 32, 32], samples: 97}", sampling(1, NULL),
                  (co_loader_options){.threads = threads[k % 3], .depth = 2});
        for (int n = 0; n < k / 3; n++) {
            co_batch batch;

            assert_int_equal(co_loader_next(&batch, f.loader), CO_OK);
        }
        feed_close(&f);
    }
    co_loader_destroy(NULL);
}

/* The first allocation after those of co_loader_create is a reader's, for its first sample. */
static void a_read_error_comes_back(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        const co_sampler_options options = sampling(1, NULL);
        co_loader_options loading = {.threads = threads[k], .depth = 1};
        co_status st = CO_OK;
        co_batch batch;
        feed f;

        assert_int_equal(co_dataset_open(&f.data, config, CO_SPLIT_TRAIN), CO_OK);
        assert_int_equal(co_sampler_create(&f.sampler, &options), CO_OK);
        loading.dataset = f.data;
        loading.sampler = f.sampler;
        co_mem_fail_at(threads[k] ? 1 + 1 + 2 * 3 + 1 + 1 : 1 + 1 + 3 + 1);
        assert_int_equal(co_loader_create(&f.loader, &loading), CO_OK);
        for (int n = 0; n < 10 && st == CO_OK; n++)
            st = co_loader_next(&batch, f.loader);
        assert_int_equal(st, CO_E_NOMEM);
        assert_non_null(strstr(co_error_message(), "out of memory"));
        if (threads[k])
            assert_int_equal(co_loader_next(&batch, f.loader), CO_E_NOMEM);
        co_mem_fail_at(0);
        feed_close(&f);
    }
}

static void waiting_is_measured(void **state)
{
    co_batch batch;
    feed f;

    (void)state;
    feed_open(&f, config, sampling(1, NULL), (co_loader_options){.threads = 0});
    assert_true(co_loader_wait_seconds(f.loader) == 0);
    for (int n = 0; n < 20; n++)
        assert_int_equal(co_loader_next(&batch, f.loader), CO_OK);
    assert_true(co_loader_wait_seconds(f.loader) > 0);
    assert_true(co_loader_wait_seconds(f.loader) < 60);
    feed_close(&f);
}

static void bad_options_are_refused(void **state)
{
    static const co_loader_options cases[] = {{.threads = -1}, {.depth = -1}, {.first_step = 5}};
    feed f;

    (void)state;
    feed_open(&f, config, sampling(1, NULL), (co_loader_options){.threads = 0});
    for (size_t i = 0; i < 3; i++) {
        co_loader_options options = cases[i];
        co_loader *loader = NULL;

        options.dataset = f.data;
        options.sampler = f.sampler;
        assert_int_equal(co_loader_create(&loader, &options), CO_E_USAGE);
        assert_null(loader);
    }
    feed_close(&f);
}

static void each_failed_allocation_is_an_error(void **state)
{
    co_loader_options options = {.threads = 2, .depth = 2};
    co_loader *loader = NULL;
    co_status st = CO_E_NOMEM;
    uint64_t k = 0;
    feed f;

    (void)state;
    feed_open(&f, config, sampling(1, NULL), (co_loader_options){.threads = 0});
    options.dataset = f.data;
    options.sampler = f.sampler;
    while (st == CO_E_NOMEM) {
        co_mem_fail_at(++k);
        st = co_loader_create(&loader, &options);
    }
    co_mem_fail_at(0);
    assert_int_equal(st, CO_OK);
    assert_int_equal(k, 1 + 1 + 3 * 3 + 1 + 1);
    co_loader_destroy(loader);
    feed_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_come_in_the_plans_order),
        cmocka_unit_test(a_batch_is_not_overwritten_while_borrowed),
        cmocka_unit_test(it_ends_at_any_moment),
        cmocka_unit_test(a_read_error_comes_back),
        cmocka_unit_test(waiting_is_measured),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(each_failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
