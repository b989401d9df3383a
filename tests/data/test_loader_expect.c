/* test_loader_expect.c - a loader says to a data set that fetches which samples come: those that
   the sampler draws, each epoch's once, before they are read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "data/dataset_internal.h"

enum { COUNT = 97, BATCH = 24, STEPS = 5, MOST = 4 * COUNT };

/* What the loader has said; its threads write it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t expected[MOST];
static uint64_t n_expected, calls, ends;
static bool more;

static bool note(const void *self, const uint32_t *sample, uint64_t n)
{
    (void)self;
    pthread_mutex_lock(&lock);
    calls++;
    ends += n == 0;
    for (uint64_t i = 0; i < n && n_expected < MOST; i++)
        expected[n_expected++] = sample[i];
    pthread_mutex_unlock(&lock);
    return more;
}

typedef struct feed {
    co_dataset *data;
    co_dataset_ops ops;
    co_sampler *sampler, *reference;
    co_loader_options options;
} feed;

static void feed_open(feed *f, int threads, uint64_t first_step)
{
    const co_sampler_options options = {.count = COUNT, .batch = BATCH, .ranks = 2, .seed = 3};

    assert_int_equal(co_dataset_open(&f->data, "{name: synthetic, shape: [1, 6, 5], samples: 97}",
                                     CO_SPLIT_TRAIN),
                     CO_OK);
    f->ops = *f->data->ops;
    f->ops.expect = note;
    f->data->ops = &f->ops;
    assert_int_equal(co_sampler_create(&f->sampler, &options), CO_OK);
    assert_int_equal(co_sampler_create(&f->reference, &options), CO_OK);
    f->options = (co_loader_options){.dataset = f->data,
                                     .sampler = f->sampler,
                                     .rank = 1,
                                     .threads = threads,
                                     .first_step = first_step};
    n_expected = calls = ends = 0;
    more = true;
}

static void feed_close(feed *f)
{
    co_sampler_destroy(f->sampler);
    co_sampler_destroy(f->reference);
    co_dataset_destroy(f->data);
}

static void take(co_loader *loader, int batches)
{
    co_batch batch;

    for (int i = 0; i < batches; i++)
        assert_int_equal(co_loader_next(&batch, loader), CO_OK);
}

/* Those of an epoch from a step on, at *at of what was expected. */
static void assert_expected(const feed *f, uint64_t *at, uint64_t epoch, uint64_t step)
{
    uint32_t sample[BATCH];

    for (; step < STEPS; step++) {
        const uint64_t n = co_sampler_local(f->reference, step, 1);

        assert_int_equal(co_sampler_indices(f->reference, sample, epoch, step, 1), CO_OK);
        pthread_mutex_lock(&lock);
        assert_true(*at + n <= n_expected);
        assert_memory_equal(expected + *at, sample, n * sizeof(*sample));
        pthread_mutex_unlock(&lock);
        *at += n;
    }
}

static void expect_has_the_samples_of_the_sampler(void **state)
{
    (void)state;
    for (int threads = 0; threads < 3; threads += 2) {
        co_loader *loader;
        uint64_t at = 0;
        feed f;

        feed_open(&f, threads, 2);
        assert_int_equal(co_sampler_steps(f.sampler), STEPS);
        assert_int_equal(co_loader_create(&loader, &f.options), CO_OK);
        take(loader, 1);
        assert_expected(&f, &at, 0, 2); /* before the second batch is read */
        take(loader, STEPS);
        assert_expected(&f, &at, 1, 0);
        co_loader_destroy(loader);
        assert_int_equal(ends, 1);
        feed_close(&f);
    }
}

static void expect_is_left_when_nothing_is_fetched(void **state)
{
    co_loader *loader;
    feed f;

    (void)state;
    feed_open(&f, 0, 0);
    more = false;
    assert_int_equal(co_loader_create(&loader, &f.options), CO_OK);
    take(loader, 2 * STEPS);
    assert_int_equal(calls, 1);
    co_loader_destroy(loader);
    feed_close(&f);
}

static void expect_is_not_called_for_labels_alone(void **state)
{
    co_loader *loader;
    feed f;

    (void)state;
    feed_open(&f, 0, 0);
    assert_int_equal(co_loader_create_labels(&loader, &f.options), CO_OK);
    take(loader, STEPS);
    co_loader_destroy(loader);
    assert_int_equal(calls, 0);
    feed_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expect_has_the_samples_of_the_sampler),
        cmocka_unit_test(expect_is_left_when_nothing_is_fetched),
        cmocka_unit_test(expect_is_not_called_for_labels_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
