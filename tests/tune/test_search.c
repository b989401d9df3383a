/* test_search.c - the search on made-up machines whose best settings are known. No clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tune/search.h"

enum { LAYOUT, BATCH, BUCKET, LOADER, AXES };

static const int layout_ranks[] = {1, 1, 2, 4, 8}, layout_threads[] = {1, 4, 2, 1, 4};
static const double bucket_mib[] = {0.01, 0.25, 1, 4, 16, 64};

#define LAYOUTS 5
#define BATCHES 7 /* 16 to 1024 */
#define BUCKETS 6
#define READERS 4

/* A machine of four cores. */
typedef struct machine {
    double latency, fixed, reader; /* of a bucket, of a step, of a sample; seconds */
    double noise;                  /* of a measurement, as a fraction */
    double busy;                   /* share of measurements that something else slows by a third */
    uint64_t state;
    double efforts;
    int others;    /* measurements with another batch than the first */
    double broken; /* batches above it cannot run; 0: all can */
} machine;

static double machine_random(machine *m)
{
    m->state = m->state * 6364136223846793005u + 1442695040888963407u;
    return (double)(m->state >> 11) / 9007199254740992.0;
}

static double machine_rate(const machine *m, const co_tune_point *p)
{
    const double ranks = layout_ranks[p->value[LAYOUT]], threads = layout_threads[p->value[LAYOUT]],
                 batch = 16 << p->value[BATCH], readers = p->value[LOADER];
    const double mib = bucket_mib[p->value[BUCKET]], cores = fmin(ranks * threads, 4);
    const double crowd = fmax(ranks * threads / 4, 1);
    double step = m->fixed * ranks * crowd + batch * 20e-6 / (cores * (threads > 1 ? 0.8 : 1));
    const double load = batch / ranks * m->reader / fmax(readers, 1);

    if (ranks > 1)
        step += m->latency * 40 / mib + mib * 1e-5;
    step += readers < 1 ? load : fmax(load - step, 0) + 5e-6 * readers;
    if (m->broken > 0 && batch > m->broken)
        return 0;
    return batch / step;
}

static co_status machine_measure(double *rate, void *arg, const co_tune_point *p, double effort)
{
    machine *m = arg;

    *rate = machine_rate(m, p) * (1 + m->noise * (2 * machine_random(m) - 1) / sqrt(effort));
    if (machine_random(m) < m->busy)
        *rate *= 0.67;
    m->efforts += effort;
    m->others += p->value[BATCH] != 0;
    return CO_OK;
}

/* With one rank nothing is reduced. */
static void machine_normalize(co_tune_point *p, void *arg)
{
    (void)arg;
    if (layout_ranks[p->value[LAYOUT]] == 1)
        p->value[BUCKET] = 3;
}

static co_tune_problem machine_problem(machine *m)
{
    co_tune_problem problem = {.n_axis = AXES,
                               .measure = machine_measure,
                               .normalize = machine_normalize,
                               .arg = m,
                               .axis = {[LAYOUT] = {.n = LAYOUTS, .usual = 3},
                                        [BATCH] = {.n = BATCHES, .usual = -1},
                                        [BUCKET] = {.n = BUCKETS, .usual = 3},
                                        [LOADER] = {.n = READERS, .usual = 1}}};

    for (int a = 0; a < AXES; a++)
        for (int v = 0; v < problem.axis[a].n; v++)
            problem.axis[a].open[v] = true;
    for (int v = 0; v < BATCHES; v++)
        problem.axis[BATCH].size[v] = 16 << v;
    problem.axis[BATCH].ordered = true;
    return problem;
}

static const machine machines[] = {
    {.latency = 2e-6, .fixed = 1e-3, .reader = 2e-6},   /* wants large batches */
    {.latency = 20e-6, .fixed = 50e-6, .reader = 1e-6}, /* wants large buckets */
    {.latency = 2e-6, .fixed = 1e-4, .reader = 40e-6},  /* wants readers */
    {.latency = 5e-3, .fixed = 2e-3, .reader = 2e-6},   /* wants one rank */
};

#define MACHINES (sizeof(machines) / sizeof(machines[0]))

/* Set badly on purpose: ranks in each other's way, tiny buckets and batches. */
static const co_tune_point badly = {.value = {[LAYOUT] = 4}};

static double best_of_grid(const machine *m, double *efforts)
{
    machine copy = *m;
    const co_tune_problem problem = machine_problem(&copy);
    co_tune_point at = badly;
    co_tune *tune;
    double rate;

    copy.noise = copy.busy = 0;
    assert_int_equal(co_tune_create(&tune, &problem), CO_OK);
    assert_int_equal(co_tune_grid(&at, tune), CO_OK);
    rate = machine_rate(m, &at);
    *efforts = copy.efforts;
    co_tune_destroy(tune);
    return rate;
}

/* The share of the best rate that is found, of efforts of the grid that it took. */
static double searched(machine *m, double *share)
{
    const co_tune_problem problem = machine_problem(m);
    co_tune_point at = badly;
    double gain[CO_TUNE_MAX_AXES], all, best = best_of_grid(m, &all);
    co_tune *tune;

    assert_int_equal(co_tune_create(&tune, &problem), CO_OK);
    assert_int_equal(co_tune_improve(&at, tune), CO_OK);
    assert_int_equal(co_tune_confirm(&at, gain, tune, &badly, true), CO_OK);
    co_tune_destroy(tune);
    *share = m->efforts / all;
    return machine_rate(m, &at) / best;
}

static void search_quiet_machine_finds_nearly_the_best(void **state)
{
    (void)state;
    for (size_t i = 0; i < MACHINES; i++) {
        machine m = machines[i];
        double share;

        assert_true(searched(&m, &share) >= 0.95);
        assert_true(share <= 0.1);
    }
}

static void search_noisy_machine_finds_nine_tenths(void **state)
{
    (void)state;
    for (size_t i = 0; i < MACHINES; i++) {
        int good = 0;

        for (uint64_t seed = 1; seed <= 200; seed++) {
            machine m = machines[i];
            double share;

            m.noise = 0.03;
            m.busy = 0.1;
            m.state = seed;
            good += searched(&m, &share) >= 0.9;
            assert_true(share <= 0.1);
            assert_true(m.efforts <= 14); /* however many candidates are nearly alike */
        }
        assert_true(good >= 192);
    }
}

static void search_closed_values_are_neither_measured_nor_taken(void **state)
{
    machine m = machines[0];
    co_tune_problem problem = machine_problem(&m);
    co_tune_point at = badly, kept;
    co_tune *tune;

    (void)state;
    for (int v = 1; v < BATCHES; v++)
        problem.axis[BATCH].open[v] = false;
    assert_int_equal(co_tune_create(&tune, &problem), CO_OK);
    assert_int_equal(co_tune_improve(&at, tune), CO_OK);
    assert_int_equal(at.value[BATCH], 0);
    assert_int_equal(m.others, 0);
    kept = at;
    for (int v = 1; v < BATCHES; v++)
        co_tune_open(tune, BATCH, v);
    assert_int_equal(co_tune_improve(&at, tune), CO_OK);
    assert_true(at.value[BATCH] > 0);
    assert_true(co_tune_rate(tune, &at) > 1.5 * co_tune_rate(tune, &kept));
    co_tune_destroy(tune);
}

static void search_point_that_cannot_run_is_not_taken(void **state)
{
    machine m = machines[0];
    const co_tune_problem problem = machine_problem(&m);
    co_tune_point at = badly;
    co_tune *tune;

    (void)state;
    m.broken = 128;
    assert_int_equal(co_tune_create(&tune, &problem), CO_OK);
    assert_int_equal(co_tune_improve(&at, tune), CO_OK);
    assert_int_equal(at.value[BATCH], 3);
    co_tune_destroy(tune);
}

static void confirm_change_without_gain_is_taken_back(void **state)
{
    machine m = machines[1];
    const co_tune_problem problem = machine_problem(&m);
    co_tune_point at = {.value = {[LAYOUT] = 3, [BATCH] = 6, [BUCKET] = 3, [LOADER] = 3}};
    const co_tune_point from = {.value = {[LAYOUT] = 3, [BATCH] = 0, [BUCKET] = 3, [LOADER] = 1}};
    double gain[CO_TUNE_MAX_AXES];
    co_tune *tune;

    (void)state;
    assert_int_equal(co_tune_create(&tune, &problem), CO_OK);
    assert_int_equal(co_tune_confirm(&at, gain, tune, &from, true), CO_OK);
    assert_int_equal(at.value[LOADER], 1);
    assert_int_equal(at.value[BATCH], 6);
    assert_true(fabs(gain[BATCH] - (machine_rate(&m, &at) /
                                        machine_rate(&m, &(co_tune_point){.value = {3, 0, 3, 1}}) -
                                    1)) < 1e-9);
    assert_true(gain[LOADER] < 0.02);
    co_tune_destroy(tune);
}

static void search_ordered_axis_is_left_where_it_gets_worse(void **state)
{
    machine m = {.latency = 2e-6, .fixed = 1e-3, .reader = 2e-6};
    co_tune_problem problem = machine_problem(&m);
    co_tune_point at = {.value = {3, 0, 3, 1}};
    co_tune *tune;

    (void)state;
    for (int v = 0; v < LAYOUTS; v++)
        problem.axis[LAYOUT].open[v] = v == 3;
    m.broken = 64; /* so that 128 and 256 are two steps that are worse */
    assert_int_equal(co_tune_create(&tune, &problem), CO_OK);
    assert_int_equal(co_tune_improve(&at, tune), CO_OK);
    assert_int_equal(at.value[BATCH], 2);
    for (size_t i = 0; i < 1000; i++) {
        co_tune_point point;
        double rate;

        if (!co_tune_at(&point, &rate, tune, i))
            break;
        assert_true(point.value[BATCH] <= 4);
    }
    co_tune_destroy(tune);
}

static void confirm_after_grid_measures_nothing_twice(void **state)
{
    machine m = machines[0];
    const co_tune_problem problem = machine_problem(&m);
    co_tune_point at = badly, without;
    double gain[CO_TUNE_MAX_AXES], efforts;
    co_tune *tune;

    (void)state;
    assert_int_equal(co_tune_create(&tune, &problem), CO_OK);
    assert_int_equal(co_tune_grid(&at, tune), CO_OK);
    efforts = m.efforts;
    assert_int_equal(co_tune_confirm(&at, gain, tune, &badly, false), CO_OK);
    assert_true(m.efforts == efforts);
    without = at;
    without.value[BATCH] = 0;
    assert_true(fabs(gain[BATCH] - (machine_rate(&m, &at) / machine_rate(&m, &without) - 1)) <
                1e-9);
    assert_true(gain[BATCH] > 1);
    co_tune_destroy(tune);
}

static void grid_same_runs_are_measured_once(void **state)
{
    double efforts;

    (void)state;
    best_of_grid(&machines[0], &efforts);
    /* with one rank, two layouts, there is one size of buckets */
    assert_int_equal((int)efforts, (2 + 3 * BUCKETS) * BATCHES * READERS);
}

static co_status failing_measure(double *rate, void *arg, const co_tune_point *p, double effort)
{
    (void)rate;
    (void)arg;
    (void)p;
    (void)effort;
    return CO_E_INTERRUPTED;
}

static void search_error_ends_it(void **state)
{
    machine m = machines[0];
    co_tune_problem problem = machine_problem(&m);
    co_tune_point at = badly;
    co_tune *tune;

    (void)state;
    problem.measure = failing_measure;
    assert_int_equal(co_tune_create(&tune, &problem), CO_OK);
    assert_int_equal(co_tune_improve(&at, tune), CO_E_INTERRUPTED);
    assert_int_equal(co_tune_grid(&at, tune), CO_E_INTERRUPTED);
    assert_memory_equal(&at, &badly, sizeof(at));
    co_tune_destroy(tune);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(search_quiet_machine_finds_nearly_the_best),
        cmocka_unit_test(search_noisy_machine_finds_nine_tenths),
        cmocka_unit_test(search_closed_values_are_neither_measured_nor_taken),
        cmocka_unit_test(search_point_that_cannot_run_is_not_taken),
        cmocka_unit_test(confirm_change_without_gain_is_taken_back),
        cmocka_unit_test(search_ordered_axis_is_left_where_it_gets_worse),
        cmocka_unit_test(confirm_after_grid_measures_nothing_twice),
        cmocka_unit_test(grid_same_runs_are_measured_once),
        cmocka_unit_test(search_error_ends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
