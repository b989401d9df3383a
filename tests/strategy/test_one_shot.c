/*
 * test_one_shot.c - `one-shot`: one average at the end, which leaves equal replicas unchanged;
 * initial weights common or per rank.
 */
#include "strategy/ranks.h"

static void one_shot_equals_one_long_local_round(void **state)
{
    (void)state;
    for (size_t s = 0; s < N_SPLITS; s++) {
        const job once = job_of(s, "strategy: one-shot", 10);
        const job local = job_of(s, "strategy: {name: local, period: 1000}", 10);
        rank a[MAX_RANKS], b[MAX_RANKS];

        run(a, &once);
        run(b, &local);
        for (int i = 0; i < once.ranks; i++) {
            assert_same_bytes(a[i].param, b[0].param);
            assert_true(a[i].buffer[0] == b[0].buffer[0]);
            assert_int_equal(a[i].bytes_sent, b[i].bytes_sent);
        }
    }
}

/* Ranks with the same samples end like a single one. */
static void one_shot_of_equal_replicas_changes_nothing(void **state)
{
    const job alone = {
        .config = "strategy: one-shot", .ranks = 1, .steps = 10, .split = {{5}, {7}, {2}}};
    rank one[MAX_RANKS];
    double want[N];

    (void)state;
    run(one, &alone);
    for (size_t e = 0; e < N; e++)
        want[e] = (double)one[0].param[e];
    for (int n = 2; n <= MAX_RANKS; n++) {
        job j = {.config = "strategy: one-shot", .ranks = n, .steps = 10, .same_samples = true};
        rank ranks[MAX_RANKS];

        for (int i = 0; i < n; i++)
            for (int row = 0; row < 3; row++)
                j.split[row][i] = alone.split[row][0];
        run(ranks, &j);
        for (int i = 0; i < n; i++) {
            if (n == 3) /* a third is not exact in float */
                assert_close(ranks[i].param, want, N);
            else
                assert_same_bytes(ranks[i].param, one[0].param);
        }
    }
}

static void one_shot_per_rank_weights_are_averaged(void **state)
{
    const job j = {.config = "strategy: {name: one-shot, init: per-rank}",
                   .ranks = 3,
                   .steps = 1,
                   .split = {{6, 4, 2}},
                   .draws = true};
    job unmoved = j;
    rank ranks[MAX_RANKS];
    double want[N];

    (void)state;
    unmoved.steps = 0;
    run(ranks, &unmoved);
    for (int i = 0; i < 3; i++)
        for (size_t e = 0; e < N; e++)
            assert_true(ranks[i].param[e] == first_weight(i, e));
    run(ranks, &j);
    for (size_t e = 0; e < N; e++) {
        want[e] = 0;
        for (int i = 0; i < 3; i++) {
            const double w = (double)first_weight(i, e);

            want[e] += j.split[0][i] / 12.0 * (w - (double)LR * mean_gradient(&j, i, 0, e, w));
        }
    }
    for (int i = 0; i < 3; i++)
        assert_close(ranks[i].param, want, N);
}

static void one_shot_without_initial_weights_is_refused(void **state)
{
    const job j = {.config = "strategy: {name: one-shot, init: per-rank}", .ranks = 2};
    rank ranks[MAX_RANKS];

    (void)state;
    run_anyway(ranks, &j);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ranks[i].base.status, CO_E_USAGE);
        assert_non_null(strstr(ranks[i].base.message, "use init: common"));
    }
}

static void one_shot_bad_config_is_refused_at_its_line(void **state)
{
    co_comm *comm = NULL;
    strategy_test t;

    (void)state;
    assert_int_equal(co_comm_create_self(&comm), CO_OK);
    assert_int_equal(strategy_test_open(&t, "strategy: {name: one-shot, init: own}", comm, N, 0),
                     CO_E_USAGE);
    assert_string_equal(co_error_message(), "bad.yaml:1:34: strategy one-shot: key 'init': "
                                            "expected one of common, per-rank, got 'own'");
    strategy_test_close(&t);
    co_comm_destroy(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_shot_equals_one_long_local_round),
        cmocka_unit_test(one_shot_of_equal_replicas_changes_nothing),
        cmocka_unit_test(one_shot_per_rank_weights_are_averaged),
        cmocka_unit_test(one_shot_without_initial_weights_is_refused),
        cmocka_unit_test(one_shot_bad_config_is_refused_at_its_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
