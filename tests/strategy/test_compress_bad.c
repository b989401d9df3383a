/*
 * test_compress_bad.c - failures of compressed gradients: values that are not finite, a rank that
 * gives up, bad configs, no memory.
 */
#include "strategy/compress_test.h"

static bool is_finite(const float *v, size_t n)
{
    bool finite = true;

    for (size_t i = 0; i < n; i++)
        finite = finite && isfinite(v[i]);
    return finite;
}

/* All ranks see the bad value in its step, and none in the next. */
static void compress_nan_does_not_stay_in_residual(void **state)
{
    static const char *const configs[] = {
        "strategy: {name: sync, compress: topk}",
        "strategy: {name: sync, compress: {name: topk, momentum: 0.5}}",
        "strategy: {name: sync, compress: bf16}",
        "strategy: {name: sync, compress: fp16}",
        "strategy: {name: sync, compress: {name: topk, ratio: 0.5}}",
        "strategy: {name: sync, compress: {name: topk, error_feedback: false}}",
        "strategy: {name: sync, compress: powersgd}",
        "strategy: {name: sync, bucket_mib: 0.001, compress: {name: powersgd, min_compression: 0}}",
        ("strategy: {name: sync, compress: {name: powersgd, warm_start: false, min_compression: "
         "0}}"),
    };

    (void)state;
    for (size_t c = 0; c < sizeof(configs) / sizeof(configs[0]); c++) {
        const job j = {.config = configs[c], .ranks = 3, .spoiled = 4};

        run(ranks, &j);
        for (int step = 0; step < STEPS; step++)
            if (is_finite(ranks[0].sum[step], N) != (step != 4))
                fail_msg("%s, step %d", configs[c], step);
        for (int i = 0; i < 3; i++)
            assert_true(is_finite(ranks[i].memory, N));
        /* what was lost is sent again */
        assert_true(ranks[0].sum[STEPS - 1][16] != 0 || c < 6);
    }
}

static void compress_failed_rank_ends_the_others(void **state)
{
    const job j = {.config = lossy[6], .ranks = 3, .gives_up = 2};

    (void)state;
    run_anyway(ranks, &j);
    assert_int_equal(ranks[1].base.status, CO_E_FAILED);
    assert_int_not_equal(ranks[0].base.status, CO_OK);
    assert_int_not_equal(ranks[2].base.status, CO_OK);
}

static void compress_bad_config_is_refused_at_its_line(void **state)
{
    (void)state;
    strategy_test_expect_refusal("strategy: {name: sync, compress: topkk}",
                                 "bad.yaml:1:34: unknown compressor 'topkk'; did you mean 'topk'?",
                                 N);
    strategy_test_expect_refusal(
        "strategy: {name: sync, compress: {name: topk, ratio: 0}}",
        "bad.yaml:1:54: compress topk: key 'ratio': expected a number from 1e-06 to 1, got '0'", N);
    strategy_test_expect_refusal("strategy: {name: sync, compress: {name: powersgd, rank: 65}}",
                                 "bad.yaml:1:57: compress powersgd: key 'rank': expected a whole "
                                 "number from 1 to 64, got '65'",
                                 N);
    strategy_test_expect_refusal(
        "strategy: {name: sync, compress: {name: topk, momentum: 0.5, error_feedback: false}}",
        "bad.yaml:1:34: compress topk: momentum is that of the memory, which error_feedback: false "
        "leaves out; give one of them",
        N);
    strategy_test_expect_refusal("strategy: {name: sync, compress: {name: topk, ration: 0.1}}",
                                 "bad.yaml:1:55: compress topk: unknown key 'ration'; did you mean "
                                 "'ratio'?",
                                 N);
}

static void compress_with_shards_is_refused(void **state)
{
    static const char text[] = "strategy: {name: sync, compress: topk}";
    co_comm *comm = NULL;
    co_tree *tree = NULL;
    strategy_test t = {NULL, NULL, NULL};

    (void)state;
    assert_int_equal(co_comm_create_self(&comm), CO_OK);
    assert_int_equal(co_tree_create(&tree, 4, 1), CO_OK);
    assert_int_equal(co_config_parse(&t.config, text, sizeof(text) - 1, "bad.yaml"), CO_OK);
    assert_int_equal(co_store_create(&t.store, N, 0), CO_OK);
    assert_int_equal(co_strategy_create(&t.strategy,
                                        co_value_get(co_config_root(t.config), "strategy"),
                                        t.config, comm, t.store, tree),
                     CO_E_USAGE);
    assert_string_equal(co_error_message(),
                        "bad.yaml:1:34: compress: what is sent depends on the number of ranks, "
                        "and shards make the result independent of it; leave compress out, or let "
                        "shards be auto");
    strategy_test_close(&t);
    co_tree_destroy(tree);
    co_comm_destroy(comm);
}

static void compress_failed_allocation_is_an_error(void **state)
{
    co_comm *comm = NULL;

    (void)state;
    assert_int_equal(co_comm_create_self(&comm), CO_OK);
    strategy_test_fail_allocations(lossy[3], comm, N, 8);
    strategy_test_fail_allocations(lossy[6], comm, N, 8);
    strategy_test_fail_allocations(lossy[0], comm, N, 8);
    co_comm_destroy(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compress_nan_does_not_stay_in_residual),
        cmocka_unit_test(compress_failed_rank_ends_the_others),
        cmocka_unit_test(compress_bad_config_is_refused_at_its_line),
        cmocka_unit_test(compress_with_shards_is_refused),
        cmocka_unit_test(compress_failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
