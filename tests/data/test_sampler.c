/* test_sampler.c - properties of the plan of an epoch over many sizes, ranks and batches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/mem.h"
#include "data/partition.h"
#include "data/python_random.h"

static co_sampler *create(co_sampler_options options)
{
    co_sampler *sampler = NULL;

    if (co_sampler_create(&sampler, &options) != CO_OK)
        fail_msg("%s", co_error_message());
    return sampler;
}

/* Collect every rank's samples of an epoch in `out` (count), by step and rank; checks the
   counts. */
static void collect(uint32_t *out, co_sampler *s, const co_sampler_options *o, uint64_t epoch)
{
    uint64_t done = 0;

    for (uint64_t step = 0; step < co_sampler_steps(s); step++) {
        const uint64_t begin = done;

        for (int rank = 0; rank < o->ranks; rank++) {
            assert_true(done + co_sampler_local(s, step, rank) <= o->count);
            assert_int_equal(co_sampler_indices(s, out + done, epoch, step, rank), CO_OK);
            done += co_sampler_local(s, step, rank);
        }
        assert_int_equal(done - begin, co_sampler_global(s, step));
        if (step + 1 < co_sampler_steps(s))
            assert_int_equal(co_sampler_global(s, step), o->batch);
    }
    assert_int_equal(done, o->count);
}

static void assert_each_once(const uint32_t *sample, uint64_t count)
{
    uint8_t *seen = calloc(count, 1);

    assert_non_null(seen);
    for (uint64_t i = 0; i < count; i++) {
        assert_true(sample[i] < count);
        assert_int_equal(seen[sample[i]]++, 0);
    }
    free(seen);
}

static void assert_parts_add_up(const co_sampler *s, const co_sampler_options *o)
{
    for (int rank = 0; rank < o->ranks; rank++) {
        uint64_t part = 0, most = 0;

        for (uint64_t step = 0; step < co_sampler_steps(s); step++) {
            uint64_t n = co_sampler_local(s, step, rank);

            part += n;
            most = n > most ? n : most;
        }
        assert_int_equal(part, co_sampler_part(s, rank));
        assert_int_equal(most, co_sampler_local_max(s, rank));
    }
}

static const uint64_t counts[] = {1, 2, 7, 97, 500, 1000}, batches[] = {1, 2, 24, 64, 2000};
static const int worlds[] = {1, 2, 3, 4, 7};
static const char *const partitions[] = {
    NULL,
    "global",
    "{kind: global}",
    "random",
    "{kind: random, seed: 3}",
    "{kind: global, shuffle: feistel}",
};

static void check_laws(co_sampler_options o)
{
    uint32_t *sample = calloc(o.count, sizeof(*sample));
    co_sampler *s = create(o);

    assert_non_null(sample);
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        collect(sample, s, &o, epoch);
        assert_each_once(sample, o.count);
    }
    assert_parts_add_up(s, &o);
    co_sampler_destroy(s);
    free(sample);
}

/* For all batches, and all counts not below the ranks. */
static void check_laws_of(int ranks, const char *partition)
{
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
        for (size_t b = 0; b < sizeof(batches) / sizeof(batches[0]); b++)
            if ((uint64_t)ranks <= counts[c])
                check_laws((co_sampler_options){.count = counts[c],
                                                .batch = batches[b],
                                                .ranks = ranks,
                                                .seed = 11,
                                                .partition = partition});
}

static void sampler_any_ranks_take_each_sample_once(void **state)
{
    (void)state;
    for (size_t w = 0; w < sizeof(worlds) / sizeof(worlds[0]); w++)
        for (size_t p = 0; p < sizeof(partitions) / sizeof(partitions[0]); p++)
            check_laws_of(worlds[w], partitions[p]);
}

static void sampler_uneven_parts_take_each_sample_once(void **state)
{
    (void)state;
    check_laws_of(2, "{kind: random, ratios: [0.7, 0.3]}");
    check_laws_of(2, "{kind: random, ratios: [1.0, 0.0]}");
    check_laws_of(2, "{kind: random, ratios: [0, 1]}");
    check_laws_of(2, "{kind: random, ratios: [0.999, 0.001]}");
    check_laws_of(2, "{kind: random, ratios: [0.501, 0.499]}");
    check_laws_of(2, "{kind: random, ratios: [0.3333, 0.6667]}");
    check_laws_of(3, "{kind: random, ratios: [0.33333, 0.33333, 0.33333]}");
    check_laws_of(3, "{kind: random, ratios: [0.33334, 0.33334, 0.33334]}");
    check_laws_of(4, "{kind: random, ratios: [0.9, 0.05, 0.049, 0.001]}");
}

/* One permutation of the whole set per epoch, dealt out to the ranks in turn; padding repeats its
   beginning. */
static void sampler_interleaved_set_is_shuffled_whole(void **state)
{
    const co_sampler_options o = {.count = 10,
                                  .batch = 12,
                                  .ranks = 4,
                                  .partition = "{kind: interleaved, pad: true, shuffle: set}"};
    co_sampler *s = create(o);
    uint32_t deal[2][12];

    (void)state;
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        for (int rank = 0; rank < 4; rank++) {
            uint32_t own[3];

            assert_int_equal(co_sampler_indices(s, own, epoch, 0, rank), CO_OK);
            for (int i = 0; i < 3; i++)
                deal[epoch][4 * i + rank] = own[i];
        }
        assert_each_once(deal[epoch], 10);
        assert_int_equal(deal[epoch][10], deal[epoch][0]);
        assert_int_equal(deal[epoch][11], deal[epoch][1]);
    }
    assert_memory_not_equal(deal[0], deal[1], sizeof(deal[0]));
    co_sampler_destroy(s);
}

static void sampler_equal_batches_end_rank_by_rank(void **state)
{
    const co_sampler_options o = {.count = 100,
                                  .batch = 20,
                                  .ranks = 2,
                                  .partition =
                                      "{kind: random, ratios: [0.7, 0.3], batching: equal}"};
    co_sampler *s = create(o);

    (void)state;
    assert_int_equal(co_sampler_steps(s), 7);
    for (uint64_t step = 0; step < 7; step++) {
        assert_int_equal(co_sampler_local(s, step, 0), 10);
        assert_int_equal(co_sampler_local(s, step, 1), step < 3 ? 10 : 0);
        assert_int_equal(co_sampler_global(s, step), step < 3 ? 20 : 10);
    }
    co_sampler_destroy(s);
}

/* At any step a rank is less than one sample ahead of its share, and less than two behind. */
static void sampler_uneven_parts_advance_in_proportion(void **state)
{
    const co_sampler_options o = {.count = 997,
                                  .batch = 10,
                                  .ranks = 4,
                                  .partition = "{kind: random, ratios: [0.6, 0.25, 0.1, 0.05]}"};
    co_sampler *s = create(o);
    double taken[4] = {0}, all = 0;

    (void)state;
    for (uint64_t step = 0; step < co_sampler_steps(s); step++) {
        all += (double)co_sampler_global(s, step);
        for (int rank = 0; rank < 4; rank++) {
            double due = (double)co_sampler_part(s, rank) * all / (double)o.count;

            taken[rank] += (double)co_sampler_local(s, step, rank);
            assert_true(taken[rank] - due < 1 && due - taken[rank] < 2);
        }
    }
    co_sampler_destroy(s);
}

static void sampler_global_batch_is_same_for_any_ranks(void **state)
{
    co_sampler_options o = {.count = 500, .batch = 24, .ranks = 1, .seed = 5};
    uint32_t one[500], many[500];
    co_sampler *s = create(o);

    (void)state;
    collect(one, s, &o, 3);
    co_sampler_destroy(s);
    for (o.ranks = 2; o.ranks <= 30; o.ranks++) {
        s = create(o);
        collect(many, s, &o, 3);
        assert_memory_equal(one, many, sizeof(one));
        co_sampler_destroy(s);
    }
}

static void sampler_epoch_and_seed_change_order(void **state)
{
    co_sampler_options o = {.count = 500, .batch = 24, .ranks = 2, .seed = 5};

    (void)state;
    for (size_t p = 0; p < sizeof(partitions) / sizeof(partitions[0]); p++) {
        uint32_t first[500], other[500];
        co_sampler *s, *reseeded;

        o.partition = partitions[p];
        o.seed = 5;
        s = create(o);
        collect(first, s, &o, 0);
        collect(other, s, &o, 1);
        assert_memory_not_equal(first, other, sizeof(first));
        collect(other, s, &o, 0);
        assert_memory_equal(first, other, sizeof(first));
        o.seed = 6;
        reseeded = create(o);
        collect(other, reseeded, &o, 0);
        assert_memory_not_equal(first, other, sizeof(first));
        co_sampler_destroy(reseeded);
        co_sampler_destroy(s);
    }
}

static void sampler_sequential_keeps_order_of_set(void **state)
{
    const co_sampler_options o = {.count = 97, .batch = 10, .ranks = 3, .sequential = true};
    uint32_t sample[97];
    co_sampler *s = create(o);

    (void)state;
    collect(sample, s, &o, 4);
    for (uint32_t i = 0; i < 97; i++)
        assert_int_equal(sample[i], i);
    co_sampler_destroy(s);
}

/* An evaluation may have fewer samples than ranks; some ranks have none. */
static void sampler_fewer_samples_than_ranks_is_allowed(void **state)
{
    check_laws((co_sampler_options){.count = 3, .batch = 10, .ranks = 8, .sequential = true});
    (void)state;
}

/* If the batch divides evenly, a rank's epoch is a permutation of the tutorial's part. */
static void sampler_rank_takes_its_part_alone(void **state)
{
    const co_sampler_options o = {.count = 100,
                                  .batch = 16,
                                  .ranks = 2,
                                  .seed = 1234,
                                  .partition = "{kind: random, ratios: [0.7, 0.3]}"};
    uint32_t shuffled[100], out[16];
    co_sampler *s = create(o);
    bool mine[100] = {false};
    uint64_t n = 0;

    (void)state;
    co_python_shuffle(shuffled, 100, 1234);
    for (int i = 70; i < 100; i++)
        mine[shuffled[i]] = true;
    for (uint64_t step = 0; step < co_sampler_steps(s); step++) {
        assert_int_equal(co_sampler_indices(s, out, 9, step, 1), CO_OK);
        for (uint64_t i = 0; i < co_sampler_local(s, step, 1); i++, n++)
            assert_true(mine[out[i]]);
    }
    assert_int_equal(n, 30);
    co_sampler_destroy(s);
}

/* Over many epochs, samples are uniform over positions and over successors: chi-square with about n
   (n - 1) degrees of freedom, within five standard deviations. */
static void sampler_computed_order_is_uniform(void **state)
{
    enum { N = 23, EPOCHS = 20000 };
    const co_sampler_options o = {.count = N,
                                  .batch = N,
                                  .ranks = 1,
                                  .seed = 8,
                                  .partition = "{kind: global, shuffle: feistel}"};
    static uint32_t at[N][N], behind[N][N];
    co_sampler *s = create(o);
    double by_place = 0, by_pair = 0;

    (void)state;
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        uint32_t order[N];

        assert_int_equal(co_sampler_indices(s, order, epoch, 0, 0), CO_OK);
        for (int i = 0; i < N; i++) {
            at[i][order[i]]++;
            if (i > 0)
                behind[order[i - 1]][order[i]]++;
        }
    }
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) {
            const double places = (double)EPOCHS / N, pairs = (double)EPOCHS / N;

            by_place += (at[i][k] - places) * (at[i][k] - places) / places;
            if (i != k)
                by_pair += (behind[i][k] - pairs) * (behind[i][k] - pairs) / pairs;
        }
    assert_true(by_place < N * N + 5 * N * 1.5);
    assert_true(by_pair < N * N + 5 * N * 1.5);
    co_sampler_destroy(s);
}

/* Resident bytes of this process. */
static uint64_t resident(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*u %llu", &pages), 1);
    fclose(file);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* MiB that a sampler of 2^24 samples and 8 ranks keeps after rank 3 has asked for its samples. */
static double mib_kept(const char *partition, bool sequential)
{
    const uint64_t before = resident();
    co_sampler *s = create((co_sampler_options){.count = 1 << 24,
                                                .batch = 1024,
                                                .ranks = 8,
                                                .partition = partition,
                                                .sequential = sequential});
    uint32_t out[128];
    uint64_t after;

    assert_int_equal(co_sampler_indices(s, out, 2, 5, 3), CO_OK);
    after = resident();
    co_sampler_destroy(s);
    return after > before ? (double)(after - before) / (1 << 20) : 0;
}

/* 64 MiB: one 32-bit number per sample. */
static void sampler_large_set_keeps_no_needless_order(void **state)
{
    static const struct {
        const char *partition;
        bool sequential;
        double most;
    } cases[] = {
        {NULL, true, 0},
        {"{kind: global, shuffle: feistel}", false, 0},
        {NULL, false, 64},
        {"contiguous", true, 64},
        {"contiguous", false, 64 + 8},
        {"{kind: interleaved, shuffle: set}", false, 128},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const double mib = mib_kept(cases[i].partition, cases[i].sequential);

        if (mib > cases[i].most + 16)
            fail_msg("%s%s keeps %.0f MiB", cases[i].partition ? cases[i].partition : "global",
                     cases[i].sequential ? ", in order" : "", mib);
    }
}

static void sampler_bad_options_are_refused(void **state)
{
    static const struct {
        uint64_t count, batch;
        int ranks;
        const char *partition, *words;
    } cases[] = {
        {0, 10, 1, NULL, "no samples"},
        {(uint64_t)1 << 32, 10, 1, NULL, "4294967296 samples"},
        {10, 0, 1, NULL, "batch"},
        {10, 10, 0, NULL, "ranks"},
        {3, 10, 4, NULL, "4 ranks are more than the 3 samples to train on; start at most 3"},
        {10, 10, 2, "randm", "did you mean 'random'"},
        {10, 10, 2, "{name: random}", "expected a kind"},
        {10, 10, 2, "[random]", "expected a kind"},
        {10, 10, 2, "{kind: random, ratio: [1, 0]}", "did you mean 'ratios'"},
        {10, 10, 2, "{kind: global, ratios: [1, 0]}", "unknown key 'ratios'"},
        {10, 10, 2, "{kind: global, shuffle: fiestel}", "expected one of fisher-yates, feistel"},
        {10, 10, 2, "{kind: random, ratios: [0.5, 0.6]}", "add up to 1.1, expected 1"},
        {10, 10, 2, "{kind: random, ratios: [0.5, 0.4]}", "add up to 0.9, expected 1"},
        {10, 10, 2, "{kind: random, ratios: [1.5, -0.5]}", "ratios"},
        {10, 10, 2, "{kind: random, ratios: [1]}", "1 ratio for 2 parts"},
        {10, 10, 2, "{kind: random, ratios: [0.5, 0.25, 0.25]}", "3 ratios for 2 parts"},
        {10, 10, 2, "{kind: random, seed: -2}", "seed"},
        {10, 10, 2, "{kind: random, ratios: [half, half]}", "ratios"},
        {10, 1, 2, "{kind: random, batching: equal}", "a batch of 1 has no sample for each of 2"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const co_sampler_options o = {.count = cases[i].count,
                                      .batch = cases[i].batch,
                                      .ranks = cases[i].ranks,
                                      .partition = cases[i].partition};
        co_sampler *s = NULL;

        assert_int_equal(co_sampler_create(&s, &o), CO_E_USAGE);
        assert_null(s);
        if (!strstr(co_error_message(), cases[i].words))
            fail_msg("'%s' does not say '%s'", co_error_message(), cases[i].words);
    }
}

static void sampler_missing_step_or_rank_is_refused(void **state)
{
    co_sampler *s = create((co_sampler_options){.count = 10, .batch = 5, .ranks = 2});
    uint32_t out[5];

    (void)state;
    assert_int_equal(co_sampler_indices(s, out, 0, 2, 0), CO_E_USAGE);
    assert_int_equal(co_sampler_indices(s, out, 0, 0, 2), CO_E_USAGE);
    assert_int_equal(co_sampler_local(s, 2, 0), 0);
    assert_int_equal(co_sampler_local(s, 0, -1), 0);
    assert_int_equal(co_sampler_global(s, 2), 0);
    co_sampler_destroy(s);
    co_sampler_destroy(NULL);
}

static void sampler_failed_allocation_is_an_error(void **state)
{
    const co_sampler_options o = {
        .count = 101, .batch = 5, .ranks = 2, .partition = "{kind: random, ratios: [0.7, 0.3]}"};
    co_status st = CO_E_NOMEM;
    co_sampler *s = NULL;
    uint64_t k = 0;

    (void)state;
    while (st == CO_E_NOMEM) {
        co_mem_fail_at(++k);
        st = co_sampler_create(&s, &o);
    }
    co_mem_fail_at(0);
    assert_int_equal(st, CO_OK);
    assert_true(k > 6);
    co_sampler_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sampler_any_ranks_take_each_sample_once),
        cmocka_unit_test(sampler_uneven_parts_take_each_sample_once),
        cmocka_unit_test(sampler_interleaved_set_is_shuffled_whole),
        cmocka_unit_test(sampler_equal_batches_end_rank_by_rank),
        cmocka_unit_test(sampler_uneven_parts_advance_in_proportion),
        cmocka_unit_test(sampler_global_batch_is_same_for_any_ranks),
        cmocka_unit_test(sampler_epoch_and_seed_change_order),
        cmocka_unit_test(sampler_sequential_keeps_order_of_set),
        cmocka_unit_test(sampler_fewer_samples_than_ranks_is_allowed),
        cmocka_unit_test(sampler_rank_takes_its_part_alone),
        cmocka_unit_test(sampler_computed_order_is_uniform),
        cmocka_unit_test(sampler_large_set_keeps_no_needless_order),
        cmocka_unit_test(sampler_bad_options_are_refused),
        cmocka_unit_test(sampler_missing_step_or_rank_is_refused),
        cmocka_unit_test(sampler_failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
