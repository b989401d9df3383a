/* test_step.c - steps whose terms can be worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "plan/step.h"
#include "plan/sweep.h"

#define STEP_N                                                                                     \
    ((size_t)1 << 20) /* weights: 4 MiB, one bucket among ranks of a host, five of 1 MiB */

/* 2 ms forward; of 4 ms backward the first quarter of the gradient is final after 1 ms, and so on.
 */
static co_work_segment step_segment[] = {
    {1e-3, STEP_N / 4}, {1e-3, STEP_N / 2}, {1e-3, STEP_N / 4 * 3}, {1e-3, STEP_N}};

static co_plan_work step_work(void)
{
    return (co_plan_work){.n = STEP_N,
                          .n_segment = 4,
                          .segment = step_segment,
                          .batch = 32,
                          .accumulate = 1,
                          .forward = 2e-3,
                          .backward = 4e-3,
                          .update = 1e-3,
                          .threads = 1,
                          .ranks = 1,
                          .full = true,
                          .train_samples = 32000};
}

static co_cluster step_cluster(double bandwidth)
{
    return (co_cluster){.name = "c",
                        .nodes = 1024,
                        .cores = 1,
                        .speed = 1,
                        .price = 3.6,
                        .taper = 1,
                        .inside.cost = {0, 8e9, 0},
                        .across.cost = {1e-6, bandwidth, 0}};
}

#define CLOSE(a, b) assert_true(fabs((a) - (b)) <= 1e-6 * fabs(b))

static void step_of_one_rank_is_its_own_work(void **state)
{
    const co_plan_work work = step_work();
    const co_cluster cluster = step_cluster(1e9);
    const co_choice sync = {.period = 1, .measured = true};
    co_prediction p;

    (void)state;
    assert_true(co_plan_predict(&p, &cluster, &work, &sync, 1, 32));
    CLOSE(p.step, 7e-3);
    CLOSE(p.efficiency, 1.0);
    CLOSE(p.epoch, 7.0);
    CLOSE(p.price, 7.0 / 3600 * 3.6);
    assert_int_equal(p.binds, CO_TERM_COMPUTE);
    assert_true(co_plan_predict(&p, &cluster, &work, &sync, 1, 64)); /* kernels twice as long */
    CLOSE(p.step, 13e-3);
}

/* Between two nodes all bytes go once each way: 4 MiB in 4.19 ms of a link of 1 GB/s. Three
   latencies: descriptors of 96 bytes, parts, sums. */
static void slow_link_binds_and_its_last_bucket_ends_the_step(void **state)
{
    const co_plan_work work = step_work();
    const co_cluster cluster = step_cluster(1e8);
    const co_choice sync = {.period = 1, .measured = true};
    co_prediction p;

    (void)state;
    assert_true(co_plan_predict(&p, &cluster, &work, &sync, 2, 32));
    /* the first bucket, a quarter MiB, is final after one of the four kernels: at 3 ms; from then
       on the link is busy */
    CLOSE(p.term[CO_TERM_EXCHANGE], 3e-3 + 4.194304e-2 - 6e-3 + 3e-6 + 96 / 1e8);
    CLOSE(p.wire, 4.0 * STEP_N);
    assert_int_equal(p.binds, CO_TERM_EXCHANGE);
}

static void fast_link_leaves_the_last_bucket_alone(void **state)
{
    const co_plan_work work = step_work();
    const co_cluster cluster = step_cluster(1e10);
    const co_choice sync = {.period = 1, .measured = true};
    co_prediction p;

    (void)state;
    assert_true(co_plan_predict(&p, &cluster, &work, &sync, 2, 32));
    /* the last kernel's gradients end the last three buckets, of 1.75 MiB together */
    CLOSE(p.term[CO_TERM_EXCHANGE], 1.75 * (1 << 20) / 1e10 + 3e-6 + 96 / 1e10);
}

/* `best` is no worse than each of what it chooses from, and no better for a slower link. */
static void best_algorithm_grows_with_latency(void **state)
{
    static const co_choice_kind kinds[] = {CO_CHOICE_SYNC, CO_CHOICE_STALE};
    const co_plan_work work = step_work();
    co_cluster cluster = step_cluster(1e9);
    co_prediction best, one;

    (void)state;
    cluster.group = 16;
    cluster.taper = 4;
    cluster.shape = CO_TOPOLOGY_FAT_TREE;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        const co_choice choice = {
            .kind = kinds[k], .period = 1, .bucket_mib = 0.25, .measured = true};
        double before = 0;

        for (double latency = 1e-7; latency < 1e-2; latency *= 1.2) {
            cluster.across.cost.latency = latency;
            cluster.across.cost.overhead = latency / 10;
            cluster.allreduce = CO_ALLREDUCE_BEST;
            assert_true(co_plan_predict(&best, &cluster, &work, &choice, 512, 32));
            assert_true(best.step >= before);
            before = best.step;
            for (int i = 0; i < CO_ALLREDUCE_BEST; i++) {
                cluster.allreduce = i;
                assert_true(co_plan_predict(&one, &cluster, &work, &choice, 512, 32));
                assert_true(best.step <= one.step);
            }
        }
    }
}

static void local_pays_the_exchange_once_in_a_round(void **state)
{
    const co_plan_work work = step_work();
    const co_cluster cluster = step_cluster(1e8);
    const co_choice local = {.kind = CO_CHOICE_LOCAL, .period = 16, .measured = true};
    co_prediction p;

    (void)state;
    assert_true(co_plan_predict(&p, &cluster, &work, &local, 2, 32));
    CLOSE(p.term[CO_TERM_EXCHANGE], (4.194304e-2 + 3e-6 + 96 / 1e8) / 16);
}

static void topk_grows_with_the_ranks_and_a_sum_does_not(void **state)
{
    const co_plan_work work = step_work();
    const co_cluster cluster = step_cluster(1e8);
    const co_choice topk = {.compress = CO_CHOICE_TOPK, .ratio = 0.01, .period = 1},
                    sync = {.period = 1};
    co_prediction few, many;

    (void)state;
    assert_true(co_plan_predict(&few, &cluster, &work, &topk, 2, 32));
    assert_true(co_plan_predict(&many, &cluster, &work, &topk, 101, 32));
    CLOSE(few.wire, 2 * 0.01 * 4.0 * STEP_N);
    CLOSE(many.wire, 100 * few.wire);
    assert_true(co_plan_predict(&few, &cluster, &work, &sync, 2, 32));
    assert_true(co_plan_predict(&many, &cluster, &work, &sync, 101, 32));
    CLOSE(many.wire, 2 * few.wire * 100 / 101);
}

/* Four ranks on each of two nodes send as much as one on each. */
static void half_precision_passes_between_nodes_once(void **state)
{
    const co_plan_work work = step_work();
    const co_choice half = {.compress = CO_CHOICE_HALF, .period = 1};
    co_cluster cluster = step_cluster(1e8);
    co_prediction one, four;

    (void)state;
    assert_true(co_plan_predict(&one, &cluster, &work, &half, 2, 32));
    CLOSE(one.wire, 2.0 * STEP_N);
    cluster.cores = 4;
    cluster.ranks_per_node = 4;
    assert_true(co_plan_predict(&four, &cluster, &work, &half, 8, 32));
    CLOSE(four.wire, one.wire);
    /* and moves 2 * 3 / 4 of all floats among its ranks, partly meanwhile */
    assert_true(four.step >= one.step && four.step <= one.step + 1.5 * 4 * STEP_N / 8e9);
}

static void topk_passes_between_nodes_once_for_each_rank(void **state)
{
    const co_plan_work work = step_work();
    const co_choice topk = {.compress = CO_CHOICE_TOPK, .ratio = 0.01, .period = 1};
    co_cluster cluster = step_cluster(1e8);
    co_prediction p;

    (void)state;
    cluster.cores = 4;
    cluster.ranks_per_node = 4;
    assert_true(co_plan_predict(&p, &cluster, &work, &topk, 12, 32));
    CLOSE(p.wire, 4 * 2 * 2 * 0.01 * 4.0 * STEP_N);
}

static void token_bucket_spares_a_burst_but_not_the_rate(void **state)
{
    const co_plan_work work = step_work();
    const co_choice sync = {.period = 1}, local = {.kind = CO_CHOICE_LOCAL, .period = 4};
    co_cluster cluster = step_cluster(1e9);
    co_prediction with, without;

    (void)state;
    assert_true(co_plan_predict(&without, &cluster, &work, &sync, 2, 32));
    cluster.across.burst = 8.0 * STEP_N;
    assert_true(co_plan_predict(&with, &cluster, &work, &sync, 2, 32));
    assert_true(with.step < without.step && with.term[CO_TERM_EXCHANGE] < 1e-5);
    cluster.across.cost.bandwidth = 1e8;
    assert_true(co_plan_predict(&with, &cluster, &work, &sync, 2, 32));
    CLOSE(with.step, 4.194304e-2); /* in the long run no faster than the link */
    assert_true(co_plan_predict(&with, &cluster, &work, &local, 2, 32));
    CLOSE(with.step, 4.194304e-2 / 4);
}

static void nodes_that_share_a_core_compute_by_turns(void **state)
{
    const co_plan_work work = step_work();
    const co_choice sync = {.period = 1};
    co_cluster cluster = step_cluster(1e9);
    co_prediction p;

    (void)state;
    cluster.cores = 0.5;
    assert_true(co_plan_predict(&p, &cluster, &work, &sync, 1, 32));
    CLOSE(p.step, 14e-3);
}

static void reader_slower_than_the_step_binds(void **state)
{
    co_plan_work work = step_work();
    const co_cluster cluster = step_cluster(1e9);
    const co_choice sync = {.period = 1};
    co_prediction p;

    (void)state;
    work.read = 1e-3;
    work.readers = 2;
    assert_true(co_plan_predict(&p, &cluster, &work, &sync, 1, 32));
    CLOSE(p.step, 16e-3);
    assert_int_equal(p.binds, CO_TERM_LOADING);
}

static void hogwild_on_two_nodes_is_refused(void **state)
{
    const co_plan_work work = step_work();
    const co_cluster cluster = step_cluster(1e9);
    const co_choice hogwild = {.kind = CO_CHOICE_SHARED, .one_host = true, .period = 1};
    co_prediction p;

    (void)state;
    assert_false(co_plan_predict(&p, &cluster, &work, &hogwild, 2, 32));
}

/* All wait for the sum, and each updates its part. */
static void threads_are_sync_with_the_update_divided(void **state)
{
    const co_plan_work work = step_work();
    const co_value value = {.kind = CO_VALUE_SCALAR, .text = "threads"};
    co_cluster cluster = step_cluster(1e9);
    co_choice threads;
    co_prediction p;

    (void)state;
    cluster.cores = 4;
    cluster.ranks_per_node = 4;
    cluster.variation = 0.1;
    assert_int_equal(co_choice_read(&threads, &value), CO_OK);
    assert_true(co_plan_predict(&p, &cluster, &work, &threads, 4, 32));
    CLOSE(p.term[CO_TERM_COMPUTE], 6e-3 + 1e-3 / 4);
    CLOSE(p.term[CO_TERM_EXCHANGE], 2 * 3 / 4.0 * 4 * STEP_N / 8e9);
    assert_true(p.term[CO_TERM_STRAGGLERS] > 0);
    assert_false(co_plan_predict(&p, &cluster, &work, &threads, 8, 32));
}

static void best_is_within_nodes_and_memory(void **state)
{
    const co_plan_work work = step_work();
    const co_choice choice[] = {{.title = "sync", .period = 1, .measured = true},
                                {.title = "free", .kind = CO_CHOICE_ONE_SHOT, .period = 1}};
    const double batch = 32;
    co_cluster cluster = step_cluster(1e10);
    const co_sweep_options options = {.cluster = &cluster,
                                      .work = &work,
                                      .choice = choice,
                                      .n_choice = 2,
                                      .n_batch = 1,
                                      .batch = &batch};
    co_sweep sweep;

    (void)state;
    cluster.nodes = 12;
    assert_int_equal(co_sweep_create(&sweep, &options), CO_OK);
    /* the other strategy is faster, but what it computes is not measured */
    assert_int_equal(sweep.fastest->ranks, 12);
    assert_ptr_equal(sweep.fastest_line->choice, &choice[0]);
    assert_int_equal(sweep.cheapest->ranks, 1);
    assert_int_equal(sweep.line[0].point[sweep.line[0].n - 1].ranks, CO_SWEEP_RANKS);
    co_sweep_fini(&sweep);
    cluster.memory = 1;
    assert_int_equal(co_sweep_create(&sweep, &options), CO_OK);
    assert_null(sweep.fastest);
    co_sweep_fini(&sweep);
}

/* Asked for in any order, more than once. */
static void sweep_of_given_ranks_is_rising(void **state)
{
    co_plan_work work = step_work();
    const co_choice choice = {.title = "sync", .period = 1, .measured = true};
    const co_choice hogwild = {
        .title = "hogwild", .kind = CO_CHOICE_SHARED, .one_host = true, .period = 1};
    const int64_t ranks[] = {64, 2, 64, 8};
    const double batch = 32;
    co_cluster cluster = step_cluster(1e10);
    co_sweep_options options = {.cluster = &cluster,
                                .work = &work,
                                .choice = &choice,
                                .n_choice = 1,
                                .n_batch = 1,
                                .batch = &batch,
                                .n_ranks = 4,
                                .ranks = ranks};
    co_sweep sweep;

    (void)state;
    assert_int_equal(co_sweep_create(&sweep, &options), CO_OK);
    assert_int_equal(sweep.line[0].n, 3);
    assert_int_equal(sweep.line[0].point[0].ranks, 2);
    assert_int_equal(sweep.line[0].point[2].ranks, 64);
    co_sweep_fini(&sweep);

    options.choice = &hogwild;
    assert_int_equal(co_sweep_create(&sweep, &options), CO_OK);
    assert_int_equal(sweep.line[0].n, 0);
    assert_string_equal(sweep.line[0].lacks, "memory that all ranks share");
    co_sweep_fini(&sweep);

    options.choice = &choice;
    work.shards = 8;
    assert_int_equal(co_sweep_create(&sweep, &options), CO_OK);
    assert_int_equal(sweep.line[0].n, 2);
    assert_int_equal(sweep.line[0].point[1].ranks, 8);
    co_sweep_fini(&sweep);
    work.shards = 1;
    assert_int_equal(co_sweep_create(&sweep, &options), CO_OK);
    assert_int_equal(sweep.line[0].n, 0);
    assert_non_null(strstr(sweep.line[0].lacks, "a shard for each rank"));
    co_sweep_fini(&sweep);
    work.shards = 0;

    options.global_batch = 1;
    assert_int_equal(co_sweep_create(&sweep, &options), CO_OK);
    assert_string_equal(sweep.line[0].lacks, "a sample for each rank");
    co_sweep_fini(&sweep);

    cluster.nodes = 1;
    cluster.across.cost.bandwidth = 0;
    assert_int_equal(co_sweep_create(&sweep, &options), CO_OK);
    assert_non_null(strstr(sweep.line[0].lacks, "links: across"));
    co_sweep_fini(&sweep);
}

/* Of so many samples, whatever the batch that was measured. */
static void step_memory_grows_with_the_batch(void **state)
{
    const co_choice sync = {.period = 1, .measured = true};
    const co_cluster cluster = step_cluster(1e9);
    co_plan_work work = step_work();
    double without;
    co_prediction p;

    (void)state;
    assert_true(co_plan_predict(&p, &cluster, &work, &sync, 1, 64));
    without = p.memory;
    work.activations = 1000;
    assert_true(co_plan_predict(&p, &cluster, &work, &sync, 1, 64));
    CLOSE(p.memory - without, 64e3);
    work.accumulate = 2;
    assert_true(co_plan_predict(&p, &cluster, &work, &sync, 1, 64));
    CLOSE(p.memory - without, 32e3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(step_of_one_rank_is_its_own_work),
        cmocka_unit_test(slow_link_binds_and_its_last_bucket_ends_the_step),
        cmocka_unit_test(fast_link_leaves_the_last_bucket_alone),
        cmocka_unit_test(best_algorithm_grows_with_latency),
        cmocka_unit_test(local_pays_the_exchange_once_in_a_round),
        cmocka_unit_test(topk_grows_with_the_ranks_and_a_sum_does_not),
        cmocka_unit_test(half_precision_passes_between_nodes_once),
        cmocka_unit_test(topk_passes_between_nodes_once_for_each_rank),
        cmocka_unit_test(token_bucket_spares_a_burst_but_not_the_rate),
        cmocka_unit_test(nodes_that_share_a_core_compute_by_turns),
        cmocka_unit_test(reader_slower_than_the_step_binds),
        cmocka_unit_test(hogwild_on_two_nodes_is_refused),
        cmocka_unit_test(threads_are_sync_with_the_update_divided),
        cmocka_unit_test(best_is_within_nodes_and_memory),
        cmocka_unit_test(sweep_of_given_ranks_is_rising),
        cmocka_unit_test(step_memory_grows_with_the_batch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
