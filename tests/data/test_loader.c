/* test_loader.c - the loader returns the sampler's batches in order, with any number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/mem.h"
#include "data/dataset_internal.h"
#include "waits.h"

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

static const float *inputs(const co_batch *batch)
{
    const co_field *field = co_batch_find(batch, CO_FIELD_INPUT);

    assert_int_equal(field->dtype, CO_F32);
    assert_int_equal(co_shape_count(&field->shape), SIZE);
    return field->data;
}

static const int32_t *labels(const co_batch *batch)
{
    const co_field *field = co_batch_find(batch, CO_FIELD_LABEL);

    assert_int_equal(field->dtype, CO_I32);
    assert_int_equal(field->shape.ndim, 0);
    assert_null(co_batch_find(batch, CO_FIELD_TARGET));
    return field->data;
}

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
        assert_memory_equal(inputs(batch) + i * SIZE, want, sizeof(want));
        assert_int_equal(labels(batch)[i], co_dataset_label(data, sample[i]));
    }
}

/* Three epochs, every rank, with and without partitions, from the start and from the middle. */
static void loader_batches_are_in_order_of_sampler(void **state)
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

/* A batch is not overwritten while the next ones are read ahead. */
static void loader_borrowed_batch_is_not_overwritten(void **state)
{
    (void)state;
    for (int depth = 1; depth <= 3; depth++) {
        co_batch batch;
        float first[24 * SIZE];
        feed f;

        feed_open(&f, config, sampling(1, NULL), (co_loader_options){.threads = 3, .depth = depth});
        for (int n = 0; n < 8; n++) {
            assert_int_equal(co_loader_next(&batch, f.loader), CO_OK);
            memcpy(first, inputs(&batch), batch.count * SIZE * sizeof(float));
            co_clock_sleep_us(2000); /* time for the threads to read ahead */
            assert_memory_equal(first, inputs(&batch), batch.count * SIZE * sizeof(float));
        }
        feed_close(&f);
    }
}

static void loader_destroyed_at_any_moment_ends(void **state)
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

/* The first allocation after co_loader_create is a thread's, for its first sample. */
static void loader_read_error_is_returned(void **state)
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

/* --- a data set with unreadable samples --- */

static bool is_bad(uint64_t i)
{
    return i % 10 == 4 || i == 5;
}

static bool is_bad_label_3(uint64_t i)
{
    return i % 10 == 3;
}

static bool (*bad)(uint64_t i);
static const co_dataset_ops *whole;

static co_status read_some(const void *self, co_bytes *out, co_buffer *buffer, uint64_t i)
{
    if (bad(i)) {
        co_clock_sleep_us((uint32_t)(i % 3) * 500); /* so that threads meet them out of order */
        return co_fail(CO_E_DATA, "sample %d: no image", (int)i);
    }
    return whole->read(self, out, buffer, i);
}

/* Samples of `config`, except those `which` selects, which cannot be read. */
static void feed_open_bad(feed *f, co_dataset_ops *ops, const char *text, bool (*which)(uint64_t),
                          int ranks, co_loader_options loading)
{
    const co_sampler_options options = sampling(ranks, NULL);

    assert_int_equal(co_dataset_open(&f->data, text, CO_SPLIT_TRAIN), CO_OK);
    whole = f->data->ops;
    *ops = *whole;
    ops->read = read_some;
    f->data->ops = ops;
    bad = which;
    loading.dataset = f->data;
    assert_int_equal(co_sampler_create(&f->sampler, &options), CO_OK);
    loading.sampler = f->sampler;
    assert_int_equal(co_loader_create(&f->loader, &loading), CO_OK);
}

static void loader_bad_sample_is_named(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        co_dataset_ops ops;
        co_status st = CO_OK;
        co_batch batch;
        feed f;

        feed_open_bad(&f, &ops, config, is_bad, 1, (co_loader_options){.threads = threads[k]});
        for (int n = 0; n < 10 && st == CO_OK; n++)
            st = co_loader_next(&batch, f.loader);
        assert_int_equal(st, CO_E_DATA);
        assert_non_null(strstr(co_error_message(), ": no image; repair it, or set "
                                                   "data.on_bad_sample: skip"));
        feed_close(&f);
    }
}

#define SKIP "{name: synthetic, shape: [1, 6, 5], samples: 97, on_bad_sample: skip%s}"

/* With label 4 the samples 9, 19, ... remain, each for itself and for the one before; 94 is
   replaced by 9, and 5 by 10. */
static uint64_t times_seen(uint64_t i)
{
    if (is_bad(i))
        return 0;
    return i == 9 ? 3 : i == 10 || i % 10 == 9 ? 2 : 1;
}

static void count_good(uint64_t seen[COUNT], const co_batch *batch, const co_dataset *data)
{
    for (uint64_t i = 0; i < batch->count; i++) {
        float want[SIZE];

        assert_int_equal(co_dataset_read(data, want, batch->sample[i]), CO_OK);
        assert_memory_equal(inputs(batch) + i * SIZE, want, sizeof(want));
        assert_int_equal(labels(batch)[i], batch->sample[i] % 5);
        seen[batch->sample[i]]++;
    }
}

/* The message is about the first bad sample in the batch's order, whichever thread met one
   first. */
static void assert_first_bad(const co_batch *batch, int ranks, int rank)
{
    const co_sampler_options options = sampling(ranks, NULL);
    uint32_t sample[24];
    co_sampler *plan;
    char want[64];
    uint64_t i = 0;

    assert_int_equal(co_sampler_create(&plan, &options), CO_OK);
    assert_int_equal(co_sampler_indices(plan, sample, batch->epoch, batch->step, rank), CO_OK);
    while (i < batch->count && !is_bad(sample[i]))
        i++;
    assert_int_equal(i == batch->count, batch->bad == 0);
    assert_int_equal(!batch->bad_message, batch->bad == 0);
    snprintf(want, sizeof(want), "sample %d: no image", (int)sample[i % 24]);
    if (batch->bad)
        assert_string_equal(batch->bad_message, want);
    co_sampler_destroy(plan);
}

/* Replacements do not depend on ranks and threads, and all counts stay as planned. */
static void loader_bad_sample_is_replaced_by_same_label(void **state)
{
    (void)state;
    for (int k = 0; k < 9; k++) {
        const int ranks = 1 + k % 3;
        uint64_t found = 0, seen[COUNT] = {0};

        for (int rank = 0; rank < ranks; rank++) {
            co_dataset_ops ops;
            char text[128];
            feed f;

            snprintf(text, sizeof(text), SKIP, ", classes: 5");
            feed_open_bad(&f, &ops, text, is_bad, ranks,
                          (co_loader_options){.rank = rank, .threads = threads[k / 3]});
            for (uint64_t step = 0; step < co_sampler_steps(f.sampler); step++) {
                co_batch batch;

                assert_int_equal(co_loader_next(&batch, f.loader), CO_OK);
                assert_int_equal(batch.count, co_sampler_local(f.sampler, step, rank));
                assert_first_bad(&batch, ranks, rank);
                count_good(seen, &batch, f.data);
            }
            found += co_loader_bad_samples(f.loader);
            feed_close(&f);
        }
        assert_int_equal(found, 11); /* 4, 14, ..., 94 and 5 */
        for (uint64_t i = 0; i < COUNT; i++)
            assert_int_equal(seen[i], times_seen(i));
    }
}

static void loader_label_without_good_samples_is_an_error(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        co_dataset_ops ops;
        co_status st = CO_OK;
        co_batch batch;
        char text[128];
        feed f;

        snprintf(text, sizeof(text), SKIP, ", classes: 10");
        feed_open_bad(&f, &ops, text, is_bad_label_3, 1,
                      (co_loader_options){.threads = threads[k]});
        for (int n = 0; n < 10 && st == CO_OK; n++)
            st = co_loader_next(&batch, f.loader);
        assert_int_equal(st, CO_E_DATA);
        assert_non_null(strstr(co_error_message(), "no sample of label 3 can be read: sample "));
        feed_close(&f);
    }
}

/* --- sharing of work between threads --- */

#define READERS 4

static pthread_mutex_t readers_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t readers[READERS];
static int n_reader;

/* Records the calling thread, and waits for all others to call. */
static co_status read_slowly(const void *self, co_bytes *out, co_buffer *buffer, uint64_t i)
{
    const uint64_t start = co_clock_ns();
    bool known = false;

    pthread_mutex_lock(&readers_lock);
    for (int r = 0; r < n_reader; r++)
        known |= pthread_equal(readers[r], pthread_self()) != 0;
    if (!known)
        readers[n_reader++] = pthread_self();
    while (n_reader < READERS) {
        pthread_mutex_unlock(&readers_lock);
        if (!waits_more(start))
            return co_fail(CO_E_FAILED, "not all of %d threads read", READERS);
        pthread_mutex_lock(&readers_lock);
    }
    pthread_mutex_unlock(&readers_lock);
    return whole->read(self, out, buffer, i);
}

/* A single batch is read by all threads, since there is no other to start. */
static void loader_threads_share_one_batch(void **state)
{
    static const char one[] = "{name: synthetic, shape: [1, 6, 5], samples: 24}";
    co_sampler_options options = sampling(1, NULL);
    co_dataset_ops ops;
    co_batch batch;
    feed f;

    (void)state;
    options.count = options.batch = 24;
    assert_int_equal(co_dataset_open(&f.data, one, CO_SPLIT_TRAIN), CO_OK);
    whole = f.data->ops;
    ops = *whole;
    ops.read = read_slowly;
    f.data->ops = &ops;
    n_reader = 0;
    assert_int_equal(co_sampler_create(&f.sampler, &options), CO_OK);
    assert_int_equal(co_loader_create(&f.loader, &(co_loader_options){.dataset = f.data,
                                                                      .sampler = f.sampler,
                                                                      .threads = READERS,
                                                                      .depth = 1}),
                     CO_OK);
    assert_int_equal(co_loader_next(&batch, f.loader), CO_OK);
    pthread_mutex_lock(&readers_lock);
    assert_int_equal(n_reader, READERS);
    pthread_mutex_unlock(&readers_lock);
    feed_close(&f);
}

static void loader_wait_time_is_measured(void **state)
{
    co_batch batch;
    feed f;

    (void)state;
    feed_open(&f, config, sampling(1, NULL), (co_loader_options){.threads = 0});
    assert_true(co_loader_wait_seconds(f.loader) == 0);
    for (int n = 0; n < 20; n++)
        assert_int_equal(co_loader_next(&batch, f.loader), CO_OK);
    assert_true(co_loader_wait_seconds(f.loader) > 0);
    assert_true(co_loader_wait_seconds(f.loader) < WAITS_S);
    feed_close(&f);
}

static void loader_bad_options_are_refused(void **state)
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

static void loader_failed_allocation_is_an_error(void **state)
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
        cmocka_unit_test(loader_batches_are_in_order_of_sampler),
        cmocka_unit_test(loader_borrowed_batch_is_not_overwritten),
        cmocka_unit_test(loader_destroyed_at_any_moment_ends),
        cmocka_unit_test(loader_read_error_is_returned),
        cmocka_unit_test(loader_bad_sample_is_named),
        cmocka_unit_test(loader_bad_sample_is_replaced_by_same_label),
        cmocka_unit_test(loader_label_without_good_samples_is_an_error),
        cmocka_unit_test(loader_threads_share_one_batch),
        cmocka_unit_test(loader_wait_time_is_measured),
        cmocka_unit_test(loader_bad_options_are_refused),
        cmocka_unit_test(loader_failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
