/* test_sampler_torch.c - the order of PyTorch's DistributedSampler, with and without set_epoch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include <cohort/data.h>

#include "data/torch_random.h"

static co_sampler *create(co_sampler_options options)
{
    co_sampler *sampler = NULL;

    if (co_sampler_create(&sampler, &options) != CO_OK)
        fail_msg("%s", co_error_message());
    return sampler;
}

/* torch.randperm(n, generator=torch.Generator().manual_seed(seed)); the sum is of (i + 1) * x[i].
 */
static void torch_permutation_equals_pytorch(void **state)
{
    static const struct {
        uint64_t seed;
        uint32_t n, first[8];
        uint64_t sum;
    } cases[] = {
        {0, 10, {4, 1, 7, 5, 3, 9, 0, 8}, 254},
        {1, 10, {5, 6, 1, 2, 0, 8, 9, 3}, 266},
        {0, 60000, {36044, 10678, 57327, 55074, 21567, 15479, 9481, 43095}, 53971558475953},
        {1, 60000, {35845, 27522, 33254, 23645, 11299, 16178, 58355, 27002}, 54053341573727},
        {((uint64_t)1 << 32) + 1234,
         10000,
         {9775, 2938, 1302, 3460, 8628, 5724, 4504, 6328},
         248996154262},
        {7, 1, {0}, 0},
    };
    uint32_t *order = calloc(60000, sizeof(*order));

    (void)state;
    assert_non_null(order);
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        const uint32_t n = cases[c].n;
        uint64_t sum = 0;

        co_torch_permutation(order, n, cases[c].seed);
        assert_memory_equal(order, cases[c].first, (n < 8 ? n : 8) * sizeof(*order));
        for (uint32_t i = 0; i < n; i++)
            sum += (uint64_t)(i + 1) * order[i];
        assert_int_equal(sum, cases[c].sum);
    }
    free(order);
}

/* DistributedSampler: the permutation by seed + epoch, repeated up to a multiple of the ranks; each
   rank takes every `ranks`-th from `rank` on, in batches. */
static void check_distributed_sampler(uint64_t count, int ranks, uint64_t batch, bool set_epoch)
{
    char partition[120];
    const uint64_t share = (count + (uint64_t)ranks - 1) / (uint64_t)ranks;
    uint32_t *order = calloc(count, sizeof(*order)), *own = calloc(batch, sizeof(*own));
    co_sampler *s;

    snprintf(partition, sizeof(partition),
             "{kind: interleaved, pad: true, shuffle: torch, set_epoch: %s, seed: 3}",
             set_epoch ? "true" : "false");
    s = create((co_sampler_options){.count = count,
                                    .batch = batch * (uint64_t)ranks,
                                    .ranks = ranks,
                                    .seed = 99,
                                    .partition = partition});
    assert_non_null(order);
    assert_non_null(own);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        co_torch_permutation(order, (uint32_t)count, 3 + (set_epoch ? epoch : 0));
        for (int rank = 0; rank < ranks; rank++) {
            uint64_t done = 0;

            for (uint64_t step = 0; step < co_sampler_steps(s); step++) {
                const uint64_t n = co_sampler_local(s, step, rank);

                assert_int_equal(n, share - done < batch ? share - done : batch);
                assert_int_equal(co_sampler_indices(s, own, epoch, step, rank), CO_OK);
                for (uint64_t i = 0; i < n; i++, done++)
                    assert_int_equal(own[i],
                                     order[((uint64_t)rank + done * (uint64_t)ranks) % count]);
            }
            assert_int_equal(done, share);
        }
    }
    co_sampler_destroy(s);
    free(own);
    free(order);
}

static void torch_order_equals_distributed_sampler(void **state)
{
    static const uint64_t sizes[] = {7, 1000, 1003};

    (void)state;
    for (size_t c = 0; c < sizeof(sizes) / sizeof(sizes[0]); c++)
        for (int ranks = 1; ranks <= 5; ranks++)
            for (int set_epoch = 0; set_epoch < 2; set_epoch++) {
                check_distributed_sampler(sizes[c], ranks, 64, set_epoch);
                check_distributed_sampler(sizes[c], ranks, 1, set_epoch);
            }
}

/* An epoch of 10 steps on two ranks with 5 samples each. */
static void collect(uint32_t out[100], co_sampler *s, uint64_t epoch)
{
    assert_int_equal(co_sampler_steps(s), 10);
    for (uint64_t step = 0; step < 10; step++)
        for (int rank = 0; rank < 2; rank++) {
            assert_int_equal(co_sampler_local(s, step, rank), 5);
            assert_int_equal(co_sampler_indices(s, out, epoch, step, rank), CO_OK);
            out += 5;
        }
}

/* Orders of parts, or of the set, do not change between epochs either; the run's seed is used if
   the partition has none. */
static void sampler_fixed_order_is_same_every_epoch(void **state)
{
    static const char *const kinds[] = {"part", "set", "torch"};

    (void)state;
    for (size_t k = 0; k < 3; k++) {
        char partition[120];
        co_sampler_options o = {.count = 100, .batch = 10, .ranks = 2, .partition = partition};
        uint32_t sample[3][100];

        snprintf(partition, sizeof(partition), "{kind: interleaved, shuffle: %s, set_epoch: false}",
                 kinds[k]);
        for (uint64_t seed = 0; seed < 3; seed++) {
            co_sampler *s;
            uint32_t again[100];

            o.seed = seed;
            s = create(o);
            collect(sample[seed], s, 0);
            collect(again, s, 5);
            assert_memory_equal(again, sample[seed], sizeof(again));
            co_sampler_destroy(s);
        }
        assert_memory_not_equal(sample[0], sample[1], sizeof(sample[0]));
        assert_memory_not_equal(sample[1], sample[2], sizeof(sample[0]));
    }
}

/* An evaluation takes the set in order. */
static void sampler_evaluation_is_not_shuffled(void **state)
{
    const co_sampler_options o = {.count = 9,
                                  .batch = 9,
                                  .ranks = 3,
                                  .sequential = true,
                                  .partition = "{kind: interleaved, shuffle: torch}"};
    co_sampler *s = create(o);
    uint32_t own[3];

    (void)state;
    assert_int_equal(co_sampler_indices(s, own, 0, 0, 1), CO_OK);
    assert_memory_equal(own, ((uint32_t[]){1, 4, 7}), sizeof(own));
    co_sampler_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(torch_permutation_equals_pytorch),
        cmocka_unit_test(torch_order_equals_distributed_sampler),
        cmocka_unit_test(sampler_fixed_order_is_same_every_epoch),
        cmocka_unit_test(sampler_evaluation_is_not_shuffled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
