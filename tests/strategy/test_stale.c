/*
 * test_stale.c - `stale`: no delay equals `sync`; a delay follows the equation in stale.c, compared
 * with a simulation of all ranks in one loop; `racy`; a rank that gives up.
 */
#include "strategy/ranks.h"

#include <math.h>

#define STEPS 10

static void stale_without_delay_equals_sync(void **state)
{
    (void)state;
    for (size_t s = 0; s < N_SPLITS; s++) {
        const job sync = job_of(s, "strategy: {name: sync, bucket_mib: 0.0002}", STEPS);
        const job stale = job_of(s, "strategy: {name: stale, k: 0, bucket_mib: 0.0002}", STEPS);
        rank a[MAX_RANKS], b[MAX_RANKS];

        run(a, &sync);
        run(b, &stale);
        for (int i = 0; i < sync.ranks; i++)
            assert_same_bytes(a[0].param, b[i].param);
    }
}

static void simulate(double *out, const job *j, int k)
{
    for (size_t e = 0; e < N; e++) {
        double w = (double)first_weight(0, e), gradient[STEPS];

        for (int step = 0; step < j->steps; step++) {
            gradient[step] = 0;
            for (int i = 0; i < j->ranks; i++)
                gradient[step] += j->split[step % 3][i] * mean_gradient(j, i, step, e, w) / GLOBAL;
            if (step >= k)
                w -= (double)LR * gradient[step - k];
        }
        out[e] = w;
    }
}

static void stale_sum_is_applied_k_steps_later(void **state)
{
    (void)state;
    for (int k = 0; k <= STEPS + 1; k++)
        for (size_t s = 0; s < N_SPLITS; s++) {
            char config[64];
            const job j = job_of(s, config, STEPS);
            rank ranks[MAX_RANKS];
            double want[N];

            snprintf(config, sizeof(config), "strategy: {name: stale, k: %d, bucket_mib: 0.0002}",
                     k);
            run(ranks, &j);
            simulate(want, &j, k);
            for (int i = 0; i < j.ranks; i++) {
                assert_close(ranks[i].param, want, N);
                assert_same_bytes(ranks[i].param, ranks[0].param);
                assert_int_equal(ranks[i].updates, k < STEPS ? STEPS - k : 0);
            }
        }
}

/* One rank has none to race with. Several end with the weights of rank 0, whatever they are. */
static void stale_racy_ranks_end_with_weights_of_rank_0(void **state)
{
    const job alone = job_of(0, "strategy: {name: stale, racy: true}", STEPS);
    const job sync = job_of(0, "strategy: sync", STEPS);
    rank a[MAX_RANKS], b[MAX_RANKS];

    (void)state;
    run(a, &alone);
    run(b, &sync);
    assert_same_bytes(a[0].param, b[0].param);
    for (size_t s = 1; s < N_SPLITS; s++) {
        const job j = job_of(s, "strategy: {name: stale, racy: true, bucket_mib: 0.0002}", STEPS);

        run(a, &j);
        for (int i = 0; i < j.ranks; i++)
            assert_same_bytes(a[i].param, a[0].param);
        for (size_t e = 0; e < N; e++)
            assert_true(isfinite(a[0].param[e]));
    }
}

/* The number of the hook in which rank 0 waits for rank 1, which never comes. Counted from 1, two
   per step: before_update, after_update. */
static int hook_that_waits(const char *config)
{
    co_shm *shm = NULL;
    co_comm *comm = NULL;
    strategy_test t;
    int hook = 0;

    assert_int_equal(co_shm_create(&shm, 2), CO_OK);
    assert_int_equal(co_shm_attach(&comm, shm, 0), CO_OK);
    assert_int_equal(co_comm_set_timeout(comm, 20), CO_OK);
    assert_int_equal(strategy_test_open(&t, config, comm, N, 0), CO_OK);
    for (co_status st = CO_OK; st == CO_OK && hook < 20; hook++) {
        const co_strategy_step step = {.step = (uint64_t)hook / 2, .local = 6, .global = 12};

        st = hook % 2 == 0 ? co_strategy_before_update(t.strategy, &step)
                           : co_strategy_after_update(t.strategy, &step);
        assert_true(st == CO_OK || st == CO_E_TIMEOUT);
    }
    strategy_test_close(&t);
    co_comm_destroy(comm);
    co_shm_destroy(shm);
    return hook;
}

static void stale_sum_is_waited_for_where_used(void **state)
{
    (void)state;
    assert_int_equal(hook_that_waits("strategy: sync"), 1);
    assert_int_equal(hook_that_waits("strategy: {name: stale, k: 0}"), 1);
    assert_int_equal(hook_that_waits("strategy: {name: stale, k: 1}"), 3);
    assert_int_equal(hook_that_waits("strategy: {name: stale, k: 3}"), 7);
    assert_int_equal(hook_that_waits("strategy: {name: stale, racy: true}"), 2);
}

/* The others fail at once, with the cause, instead of after their timeout. */
static void stale_failed_rank_ends_the_others(void **state)
{
    job j = job_of(3, "strategy: {name: stale, k: 2}", 100);
    rank ranks[MAX_RANKS] = {{.job = &j}};

    (void)state;
    j.gives_up = 5;
    run_anyway(ranks, &j);
    assert_int_equal(ranks[1].base.status, CO_E_FAILED);
    for (int i = 0; i < 3; i += 2) {
        assert_int_equal(ranks[i].base.status, CO_E_PEER);
        assert_non_null(strstr(ranks[i].base.message, "out of patience"));
    }
}

static void stale_bad_config_is_refused_at_its_line(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"strategy: {name: stale, k: -1}", "bad.yaml:1:28: strategy stale: key 'k': expected a "
                                           "whole number from 0 to 64, got '-1'"},
        {"strategy: {name: stale, k: 1.5}", "bad.yaml:1:28: strategy stale: key 'k': expected a "
                                            "whole number from 0 to 64, got '1.5'"},
        {"strategy: {name: stale, racy: true, k: 2}",
         "bad.yaml:1:11: strategy stale: racy: true has no delay; leave k out"},
    };

    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
        strategy_test_expect_refusal(cases[c].text, cases[c].message, N);
}

static void stale_failed_allocation_is_an_error(void **state)
{
    co_comm *comm = NULL;

    (void)state;
    assert_int_equal(co_comm_create_self(&comm), CO_OK);
    strategy_test_fail_allocations("strategy: {name: stale, k: 3}", comm, N, 8);
    co_comm_destroy(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stale_without_delay_equals_sync),
        cmocka_unit_test(stale_sum_is_applied_k_steps_later),
        cmocka_unit_test(stale_racy_ranks_end_with_weights_of_rank_0),
        cmocka_unit_test(stale_sum_is_waited_for_where_used),
        cmocka_unit_test(stale_failed_rank_ends_the_others),
        cmocka_unit_test(stale_bad_config_is_refused_at_its_line),
        cmocka_unit_test(stale_failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
