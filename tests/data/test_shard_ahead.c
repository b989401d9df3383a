/* test_shard_ahead.c - blocks that are fetched ahead: in order, once, and not after the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "data/shard_ahead.h"
#include "waits.h"

enum { BLOCKS = 40, MOST = 4 /* of a run */ };

/* What the threads fetched. */
typedef struct fetched {
    atomic_int times[BLOCKS], runs, running, largest;
    atomic_uint_least64_t last; /* block */
    atomic_bool in_order, hangs /* until it is cancelled */, fails;
} fetched;

static bool fetch(void *arg, const co_shard_run *run, const atomic_bool *cancel)
{
    const int n = (int)(run->end - run->first);
    fetched *f = arg;

    atomic_fetch_add(&f->running, 1);
    if (n > atomic_load(&f->largest))
        atomic_store(&f->largest, n);
    if (run->first < atomic_load(&f->last))
        atomic_store(&f->in_order, false);
    atomic_store(&f->last, run->end);
    for (uint64_t b = run->first; b < run->end; b++)
        atomic_fetch_add(&f->times[b], 1);
    atomic_fetch_add(&f->runs, 1);
    while (atomic_load(&f->hangs) && !atomic_load(cancel))
        co_clock_sleep_us(200);
    atomic_fetch_sub(&f->running, 1);
    return !atomic_load(&f->fails);
}

static co_shard_ahead *create(fetched *f, int threads)
{
    const co_shard_ahead_options options = {
        .threads = threads, .blocks = BLOCKS, .fetch = fetch, .arg = f};
    co_shard_ahead *ahead;

    memset(f, 0, sizeof(*f));
    atomic_store(&f->in_order, true);
    assert_int_equal(co_shard_ahead_create(&ahead, &options), CO_OK);
    return ahead;
}

static void add_all(co_shard_ahead *ahead)
{
    for (uint64_t b = 0; b < BLOCKS; b++)
        co_shard_ahead_add(ahead, b, 0, b);
}

static int total(const fetched *f)
{
    int n = 0;

    for (int b = 0; b < BLOCKS; b++)
        n += atomic_load(&f->times[b]);
    return n;
}

static void ahead_blocks_are_fetched_once_in_order(void **state)
{
    const uint64_t start = co_clock_ns();
    co_shard_ahead *ahead;
    fetched f;

    (void)state;
    ahead = create(&f, 1);
    add_all(ahead);
    add_all(ahead);
    while (total(&f) < BLOCKS)
        assert_true(waits_more(start));
    co_shard_ahead_destroy(ahead);
    assert_int_equal(total(&f), BLOCKS);
    for (int b = 0; b < BLOCKS; b++)
        assert_int_equal(f.times[b], 1);
    assert_true(f.in_order);
    assert_int_in_range(f.largest, 1, MOST);
    assert_int_in_range(f.runs, BLOCKS / MOST, BLOCKS);
}

typedef struct stopper {
    pthread_t thread;
    co_shard_ahead *ahead;
    const fetched *f;
    int running; /* when the stop had returned */
} stopper;

static void *stopper_run(void *arg)
{
    stopper *s = arg;

    co_shard_ahead_stop(s->ahead);
    s->running = atomic_load(&s->f->running);
    return NULL;
}

/* Whoever stops first: nothing is being fetched when any of them returns. Then it starts again. */
static void ahead_stop_waits_for_every_thread(void **state)
{
    co_shard_ahead *ahead;
    fetched f;

    (void)state;
    ahead = create(&f, 3);
    for (int round = 0; round < 20; round++) {
        const uint64_t start = co_clock_ns();
        const int before = atomic_load(&f.runs);
        stopper s[3];

        atomic_store(&f.hangs, true);
        add_all(ahead);
        while (atomic_load(&f.runs) < before + 3)
            assert_true(waits_more(start));
        for (int i = 0; i < 3; i++) {
            s[i] = (stopper){.ahead = ahead, .f = &f, .running = -1};
            assert_int_equal(pthread_create(&s[i].thread, NULL, stopper_run, &s[i]), 0);
        }
        for (int i = 0; i < 3; i++) {
            pthread_join(s[i].thread, NULL);
            assert_int_equal(s[i].running, 0);
        }
    }
    co_shard_ahead_destroy(ahead);
}

/* A failure makes a thread pause, which a stop ends; blocks that failed may be asked for again. */
static void ahead_failure_ends_with_a_stop(void **state)
{
    const uint64_t start = co_clock_ns();
    co_shard_ahead *ahead;
    fetched f;

    (void)state;
    ahead = create(&f, 2);
    atomic_store(&f.fails, true);
    add_all(ahead);
    while (atomic_load(&f.runs) < 2)
        assert_true(waits_more(start));
    co_shard_ahead_stop(ahead);
    assert_int_equal(f.running, 0);
    atomic_store(&f.fails, false);
    memset(f.times, 0, sizeof(f.times));
    add_all(ahead);
    while (total(&f) < BLOCKS)
        assert_true(waits_more(start));
    co_shard_ahead_destroy(ahead);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ahead_blocks_are_fetched_once_in_order),
        cmocka_unit_test(ahead_stop_waits_for_every_thread),
        cmocka_unit_test(ahead_failure_ends_with_a_stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
