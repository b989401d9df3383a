/*
 * test_plans.c - properties of the plan of an epoch for any partition, set, batch and number of
 * ranks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cohort/data.h>

#include "data/files.h"

static co_sampler *create(co_sampler_options options)
{
    co_sampler *sampler = NULL;

    if (co_sampler_create(&sampler, &options) != CO_OK)
        fail_msg("%s", co_error_message());
    return sampler;
}

/* A random number below n; an own generator, because C libraries differ. */
static uint64_t draw(uint64_t n)
{
    static uint64_t state = 1;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

static size_t draw_ratios(char *out, size_t size, int ranks)
{
    size_t used = (size_t)snprintf(out, size, "[");
    int left = 100;

    for (int r = 0; r < ranks; r++) {
        const int share = r + 1 < ranks ? (int)draw((uint64_t)left + 1) : left;

        left -= share;
        used += (size_t)snprintf(out + used, size - used, "%s0.%02d", r ? ", " : "", share % 100);
        if (share == 100)
            used += (size_t)snprintf(out + used - 4, size - used, "1.00") - 4;
    }
    return used + (size_t)snprintf(out + used, size - used, "]");
}

/* Labels of each rank: one or two ranks per label, none for some. */
static size_t draw_labels(char *out, size_t size, int ranks)
{
    const int first = (int)draw((uint64_t)ranks), second = (int)draw((uint64_t)ranks);
    size_t used = (size_t)snprintf(out, size, "[");

    for (int r = 0; r < ranks; r++)
        used += (size_t)snprintf(out + used, size - used, "%s[%s%s%s]", r ? ", " : "",
                                 r == first ? "0, 1, 2" : "", r == first && r == second ? ", " : "",
                                 r == second ? "3, 4" : "");
    return used + (size_t)snprintf(out + used, size - used, "]");
}

/* Any partition that fits the ranks; may fail for more ranks than samples. */
static void draw_partition(char *out, size_t size, int ranks)
{
    static const char *const kinds[] = {"random, ratios: ",
                                        "contiguous, ratios: ",
                                        "random",
                                        "contiguous",
                                        "interleaved",
                                        "interleaved, pad: true",
                                        "interleaved, shuffle: set",
                                        "interleaved, pad: true, shuffle: set",
                                        "interleaved, pad: true, shuffle: torch",
                                        "interleaved, shuffle: torch, set_epoch: false",
                                        "labels, labels: ",
                                        "dirichlet, alpha: 0.1",
                                        "dirichlet, alpha: 5"};
    const size_t kind = draw(sizeof(kinds) / sizeof(kinds[0]));
    size_t used = (size_t)snprintf(out, size, "{kind: %s", kinds[kind]);

    if (kind < 2)
        used += draw_ratios(out + used, size - used, ranks);
    else if (kind == 10)
        used += draw_labels(out + used, size - used, ranks);
    snprintf(out + used, size - used, ", batching: %s}", draw(2) ? "equal" : "proportional");
}

/* With `batching: equal` a rank takes its full share until its part is used up, then nothing. */
static void assert_equal_shares(const co_sampler *s, const co_sampler_options *o)
{
    for (int rank = 0; rank < o->ranks; rank++) {
        const uint64_t ranks = (uint64_t)o->ranks;
        const uint64_t share = o->batch / ranks + ((uint64_t)rank < o->batch % ranks);
        uint64_t left = co_sampler_part(s, rank);

        for (uint64_t step = 0; step < co_sampler_steps(s); step++) {
            assert_int_equal(co_sampler_local(s, step, rank), left < share ? left : share);
            left -= co_sampler_local(s, step, rank);
        }
    }
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

/* No step is empty; a step is the sum of its shares; all but the last are full unless shares are
   equal. Returns the samples of an epoch. */
static uint64_t assert_steps(const co_sampler *s, const co_sampler_options *o)
{
    const bool equal = strstr(o->partition, "equal") != NULL;
    uint64_t all = 0;

    assert_true(co_sampler_steps(s) > 0);
    for (uint64_t step = 0; step < co_sampler_steps(s); step++) {
        const uint64_t global = co_sampler_global(s, step);
        uint64_t sum = 0;

        for (int rank = 0; rank < o->ranks; rank++)
            sum += co_sampler_local(s, step, rank);
        assert_int_equal(sum, global);
        assert_true(global > 0 && global <= o->batch);
        if (!equal && step + 1 < co_sampler_steps(s))
            assert_int_equal(global, o->batch);
        all += global;
    }
    if (equal)
        assert_equal_shares(s, o);
    return all;
}

/* All samples occur equally often, or with padding the last `all` % count of them once more. */
static void assert_each_as_often(const uint32_t *sample, uint64_t all, uint64_t count)
{
    uint8_t *seen = calloc(count, 1);
    uint64_t more = 0;

    assert_non_null(seen);
    for (uint64_t i = 0; i < all; i++) {
        assert_true(sample[i] < count);
        seen[sample[i]]++;
    }
    for (uint64_t i = 0; i < count; i++) {
        assert_int_in_range(seen[i], all / count, all / count + (all % count != 0));
        more += seen[i] > all / count;
    }
    assert_int_equal(more, all % count);
    free(seen);
}

/* Two samplers that are asked in different orders give the same plan. */
static void assert_plan(co_sampler *s, const co_sampler_options *o, uint64_t all)
{
    const uint64_t steps = co_sampler_steps(s);
    uint32_t *sample = calloc(2 * all + 1, sizeof(*sample)), *again = sample + all;
    co_sampler *other = create(*o);
    uint64_t n = 0, end = all;

    assert_non_null(sample);
    for (uint64_t k = 0; k < steps * (uint64_t)o->ranks; k++) {
        const uint64_t back = steps * (uint64_t)o->ranks - 1 - k;
        const int rank = (int)(k / steps), rank_back = (int)(back / steps);

        assert_int_equal(co_sampler_indices(s, sample + n, 3, k % steps, rank), CO_OK);
        n += co_sampler_local(s, k % steps, rank);
        end -= co_sampler_local(other, back % steps, rank_back);
        assert_int_equal(co_sampler_indices(other, again + end, 3, back % steps, rank_back), CO_OK);
    }
    assert_int_equal(n, all);
    assert_memory_equal(sample, again, all * sizeof(*sample));
    assert_each_as_often(sample, all, o->count);
    co_sampler_destroy(other);
    free(sample);
}

static void sampler_random_options_keep_the_laws(void **state)
{
    int plans = 0;

    (void)state;
    for (int trial = 0; trial < 3000; trial++) {
        char config[96], partition[256];
        const uint64_t count = 1 + draw(trial % 2 ? 20 : 400);
        co_sampler_options o = {.count = count, .batch = 1 + draw(count + 10), .seed = draw(100)};
        co_dataset *data;
        co_sampler *s;

        snprintf(config, sizeof(config),
                 "{name: synthetic, shape: [1, 1, 1], classes: 5, samples: %d}", (int)count);
        assert_int_equal(co_dataset_open(&data, config, CO_SPLIT_TRAIN), CO_OK);
        o.dataset = data;
        o.ranks = 1 + (int)draw(8);
        draw_partition(partition, sizeof(partition), o.ranks);
        o.partition = partition;
        if (co_sampler_create(&s, &o) == CO_OK) {
            const uint64_t all = assert_steps(s, &o);

            assert_int_equal(all, strstr(partition, "pad")
                                      ? (count + (uint64_t)o.ranks - 1) / (uint64_t)o.ranks *
                                            (uint64_t)o.ranks
                                      : count);
            assert_parts_add_up(s, &o);
            assert_plan(s, &o, all);
            co_sampler_destroy(s);
            plans++;
        } else if ((uint64_t)o.ranks <= count && (uint64_t)o.ranks <= o.batch) {
            fail_msg("%s: %s", partition, co_error_message());
        }
        co_dataset_destroy(data);
    }
    assert_true(plans > 2000);
}

/* Number of steps in which a rank has samples. */
static uint64_t busy(const co_sampler *s, int rank)
{
    uint64_t n = 0;

    for (uint64_t step = 0; step < co_sampler_steps(s); step++)
        n += co_sampler_local(s, step, rank) > 0;
    return n;
}

/* The splits of PyTorch's tutorial on MNIST with 64 samples per rank and step: 657 batches and 282,
   at which its ranks got out of step; and by label 479 and 460. */
static void sampler_batches_of_mnist_equal_tutorial(void **state)
{
    static const struct {
        const char *partition;
        uint64_t part[2], busy[2];
    } cases[] = {
        {"{kind: random, ratios: [0.7, 0.3], batching: equal}", {42000, 18000}, {657, 282}},
        {"{kind: labels, labels: [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]], batching: equal}",
         {30596, 29404},
         {479, 460}},
        {"{kind: random, ratios: [0.7, 0.3]}", {42000, 18000}, {469, 469}},
    };
    const char *folder = files_real("mnist");
    char config[512];
    co_dataset *data;

    (void)state;
    if (!folder) {
        print_message("skipped: no MNIST here; see COHORT_DATA\n");
        skip();
    }
    snprintf(config, sizeof(config), "{name: mnist, path: %s}", folder);
    assert_int_equal(co_dataset_open(&data, config, CO_SPLIT_TRAIN), CO_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        co_sampler *s = create((co_sampler_options){.count = co_dataset_count(data),
                                                    .batch = 128,
                                                    .ranks = 2,
                                                    .seed = 1234,
                                                    .partition = cases[i].partition,
                                                    .dataset = data});

        for (int r = 0; r < 2; r++) {
            assert_int_equal(co_sampler_part(s, r), cases[i].part[r]);
            assert_int_equal(busy(s, r), cases[i].busy[r]);
        }
        co_sampler_destroy(s);
    }
    co_dataset_destroy(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sampler_random_options_keep_the_laws),
        cmocka_unit_test(sampler_batches_of_mnist_equal_tutorial),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
