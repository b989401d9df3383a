/*
 * test_local.c - `local`: a period of one equals `sync`; others follow the equations in local.c,
 * compared with a simulation of all ranks in one loop; bytes sent; bad configs.
 */
#include "strategy/ranks.h"

static void local_period_of_one_equals_sync(void **state)
{
    (void)state;
    for (size_t s = 0; s < N_SPLITS; s++) {
        const job sync = job_of(s, "strategy: sync", 10);
        const job local = job_of(s, "strategy: {name: local, period: 1}", 10);
        const job outer =
            job_of(s, "strategy: {name: local, period: 1, outer: {momentum: 0, lr: 1}}", 10);
        rank a[MAX_RANKS], b[MAX_RANKS], c[MAX_RANKS];
        double want[N];

        run(a, &sync);
        run(b, &local);
        run(c, &outer);
        for (size_t e = 0; e < N; e++)
            want[e] = (double)a[0].param[e];
        for (int i = 0; i < sync.ranks; i++) {
            assert_close(b[i].param, want, N);
            assert_close(c[i].param, want, N);
        }
    }
}

/* Before `start` it is sync, bit for bit. */
static void local_before_start_equals_sync(void **state)
{
    (void)state;
    for (size_t s = 0; s < N_SPLITS; s++) {
        const job sync = job_of(s, "strategy: {name: sync, bucket_mib: 0.0002}", 7);
        const job local =
            job_of(s, "strategy: {name: local, period: 3, start: 7, bucket_mib: 0.0002}", 7);
        rank a[MAX_RANKS], b[MAX_RANKS];

        run(a, &sync);
        run(b, &local);
        for (int i = 0; i < sync.ranks; i++)
            assert_same_bytes(a[0].param, b[i].param);
    }
}

typedef struct plan {
    const char *config;
    int period, start, steps;
    double momentum, lr;
    bool outer, nesterov;
} plan;

typedef struct simulation {
    double param[MAX_RANKS][N], buffer[MAX_RANKS], common[N], velocity[N];
    int used[MAX_RANKS];
} simulation;

static void simulate_average(simulation *sim, const plan *p, const job *j)
{
    double total = 0, buffer = 0;

    for (int i = 0; i < j->ranks; i++)
        total += sim->used[i];
    for (size_t e = 0; e < N; e++) {
        double mean = 0;

        for (int i = 0; i < j->ranks; i++)
            mean += sim->used[i] / total * sim->param[i][e];
        if (p->outer) {
            const double way = sim->common[e] - mean;

            sim->velocity[e] = p->momentum * sim->velocity[e] + way;
            mean = sim->common[e] -
                   p->lr * (p->nesterov ? way + p->momentum * sim->velocity[e] : sim->velocity[e]);
        }
        sim->common[e] = mean;
        for (int i = 0; i < j->ranks; i++)
            sim->param[i][e] = mean;
    }
    for (int i = 0; i < j->ranks; i++)
        buffer += sim->used[i] / total * sim->buffer[i];
    for (int i = 0; i < j->ranks; i++) {
        sim->buffer[i] = buffer;
        sim->used[i] = 0;
    }
}

static void simulate_step(simulation *sim, const plan *p, const job *j, int step)
{
    const int *split = j->split[step % 3];

    for (size_t e = 0; e < N; e++) {
        double sum = 0;

        for (int i = 0; i < j->ranks; i++)
            sum += split[i] * mean_gradient(j, i, step, e, sim->param[i][e]) / GLOBAL;
        for (int i = 0; i < j->ranks; i++)
            sim->param[i][e] -=
                (double)LR *
                (step < p->start ? sum : mean_gradient(j, i, step, e, sim->param[i][e]));
        if (step < p->start)
            sim->common[e] = sim->param[0][e];
    }
    for (int i = 0; i < j->ranks; i++) {
        sim->buffer[i] += split[i];
        sim->used[i] += step < p->start ? 0 : split[i];
    }
}

static void simulate(simulation *sim, const plan *p, const job *j)
{
    memset(sim, 0, sizeof(*sim));
    for (size_t e = 0; e < N; e++) {
        sim->common[e] = (double)first_weight(0, e);
        for (int i = 0; i < j->ranks; i++)
            sim->param[i][e] = sim->common[e];
    }
    for (int step = 0; step < p->steps; step++) {
        simulate_step(sim, p, j, step);
        if (step >= p->start && (step + 1 - p->start) % p->period == 0)
            simulate_average(sim, p, j);
    }
    if (p->steps > p->start && (p->steps - p->start) % p->period != 0)
        simulate_average(sim, p, j);
}

static void local_rounds_equal_plain_loop(void **state)
{
    static const plan plans[] = {
        {.config = "strategy: {name: local, period: 4}", .period = 4, .steps = 12},
        {.config = "strategy: {name: local, period: 5}", .period = 5, .steps = 12},
        {.config = "strategy: {name: local, period: 3, start: 4}",
         .period = 3,
         .start = 4,
         .steps = 12},
        {.config = "strategy: {name: local, period: 3, outer: {momentum: 0.6, lr: 0.8}}",
         .period = 3,
         .steps = 12,
         .outer = true,
         .momentum = 0.6,
         .lr = 0.8},
        {.config = "strategy: {name: local, period: 3, start: 2, outer: {momentum: 0.9, lr: 0.7, "
                   "nesterov: true}}",
         .period = 3,
         .start = 2,
         .steps = 13,
         .outer = true,
         .momentum = 0.9,
         .lr = 0.7,
         .nesterov = true},
    };

    (void)state;
    for (size_t p = 0; p < sizeof(plans) / sizeof(plans[0]); p++)
        for (size_t s = 0; s < N_SPLITS; s++) {
            const job j = job_of(s, plans[p].config, plans[p].steps);
            rank ranks[MAX_RANKS];
            simulation sim;

            run(ranks, &j);
            simulate(&sim, &plans[p], &j);
            for (int i = 0; i < j.ranks; i++) {
                assert_same_bytes(ranks[i].param, ranks[0].param);
                assert_close(ranks[i].param, sim.param[i], N);
                if (plans[p].start == 0)
                    assert_close(ranks[i].buffer, &sim.buffer[i], 1);
            }
        }
}

static void local_step_without_samples_changes_nothing(void **state)
{
    const job j = {.config = "strategy: {name: local, period: 100}",
                   .ranks = 2,
                   .steps = 9,
                   .split = {{12, 0}, {11, 1}, {12, 0}}};
    rank ranks[MAX_RANKS];

    (void)state;
    run(ranks, &j);
    assert_int_equal(ranks[0].updates, 9);
    assert_int_equal(ranks[1].updates, 3);
}

static void local_bytes_sent_fall_with_period(void **state)
{
    const job often = job_of(1, "strategy: {name: local, period: 2}", 24);
    const job seldom = job_of(1, "strategy: {name: local, period: 12}", 24);
    rank a[MAX_RANKS] = {{.job = &often}}, b[MAX_RANKS] = {{.job = &seldom}};

    (void)state;
    run(a, &often);
    run(b, &seldom);
    assert_true(b[0].bytes_sent > 0);
    assert_int_equal(a[0].bytes_sent, 6 * b[0].bytes_sent);
}

static void local_bad_config_is_refused_at_its_line(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"strategy: {name: local, period: 0}",
         "bad.yaml:1:33: strategy local: key 'period': expected a whole number from 1 to "
         "1000000000, got '0'"},
        {"strategy: {name: local, start: -1}",
         "bad.yaml:1:32: strategy local: key 'start': expected a whole number from 0 to "
         "1e+15, got '-1'"},
        {"strategy: {name: local, outer: {lr: 1}}",
         "bad.yaml:1:32: strategy local: outer: the key 'momentum' is missing (share of the outer "
         "velocity that is kept from round to round)"},
        {"strategy: {name: local, outer: {momentum: 2}}",
         "bad.yaml:1:43: strategy local: outer: key 'momentum': expected a number from 0 to 1, "
         "got '2'"},
        {"strategy: {name: local, outer: 0.9}",
         "bad.yaml:1:32: strategy local: outer: expected `key: value` lines or {key: value}, "
         "such as {momentum: 0.9}"},
        {"strategy: {name: local, perid: 2}",
         "bad.yaml:1:32: strategy local: unknown key 'perid'; did you mean 'period'?"},
    };

    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
        strategy_test_expect_refusal(cases[c].text, cases[c].message, N);
}

static void local_failed_allocation_is_an_error(void **state)
{
    co_comm *comm = NULL;

    (void)state;
    assert_int_equal(co_comm_create_self(&comm), CO_OK);
    strategy_test_fail_allocations("strategy: {name: local, outer: {momentum: 0.5}}", comm, N, 8);
    co_comm_destroy(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(local_period_of_one_equals_sync),
        cmocka_unit_test(local_before_start_equals_sync),
        cmocka_unit_test(local_rounds_equal_plain_loop),
        cmocka_unit_test(local_step_without_samples_changes_nothing),
        cmocka_unit_test(local_bytes_sent_fall_with_period),
        cmocka_unit_test(local_bad_config_is_refused_at_its_line),
        cmocka_unit_test(local_failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
