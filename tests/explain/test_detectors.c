/* test_detectors.c - each detector on evidence that has its cause, and on evidence that has not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "explain/explain.h"

#define RANKS 2

/* A run in which nothing is wrong: two ranks on two cores, ten seconds. */
typedef struct good {
    co_rank_times times[RANKS];
    co_evidence_point step[2], epoch[1];
    co_evidence_weight weight[2];
    co_evidence e;
} good;

static good *good_run(void)
{
    static good g;

    memset(&g, 0, sizeof(g));
    for (int r = 0; r < RANKS; r++)
        g.times[r] = (co_rank_times){.wall = 10,
                                     .start = 1,
                                     .data = 0.1,
                                     .compute = 7,
                                     .exchange = 0.5,
                                     .wait = 0.4,
                                     .evaluation = 1,
                                     .update = 0.2,
                                     .core = 9,
                                     .delayed = 0.1,
                                     .read = 1,
                                     .read_core = 0.9,
                                     .samples = 50000};
    g.step[0] = (co_evidence_point){.step = 50, .train_loss = 2.3, .gradient_norm = 1, .lr = 0.1};
    g.step[1] = (co_evidence_point){.step = 1000, .train_loss = 0.3, .gradient_norm = 2, .lr = 0.1};
    g.epoch[0] = (co_evidence_point){.step = 1000, .train_accuracy = 0.9, .test_accuracy = 0.9};
    g.weight[0] = (co_evidence_weight){.name = "fc1.weight", .change = 0.2};
    g.weight[1] = (co_evidence_weight){.name = "fc2.weight", .change = 0.2};
    g.e.run = (co_evidence_run){.ranks = RANKS,
                                .cores = 2,
                                .threads = 1,
                                .starts = 1,
                                .batch = 128,
                                .steps = 1000,
                                .total_steps = 1000,
                                .finished = true,
                                .wall_seconds = 10,
                                .has_times = true,
                                .times = g.times,
                                .step = {2, 2, g.step},
                                .epoch = {1, 1, g.epoch}};
    g.e.data = (co_evidence_data){.known = true,
                                  .images = true,
                                  .labels = true,
                                  .classes = 10,
                                  .channels = 1,
                                  .std = {1},
                                  .rarest = 900,
                                  .commonest = 1100,
                                  .test_hashed = 1000,
                                  .train_hashed = 10000,
                                  .judged = 2000,
                                  .nearest = 0.6,
                                  .guess = 0.1};
    g.e.weights = (co_evidence_weights){.known = true,
                                        .drawn = true,
                                        .n = 2,
                                        .at = g.weight,
                                        .change = 0.2,
                                        .units = 100,
                                        .sample_seconds = 1.2e-4,
                                        .sample_batch = 128};
    return &g;
}

static void assert_near(double value, double wanted, double tolerance)
{
    if (!(fabs(value - wanted) <= tolerance))
        fail_msg("%g, not %g", value, wanted);
}

/* The only cause that is found; with its gain. */
static double assert_only(const co_evidence *e, const char *cause)
{
    co_finding finding[CO_EXPLAIN_MAX];
    const int n = co_explain_find(finding, e);

    if (n != 1 || strcmp(finding[0].cause, cause) != 0)
        fail_msg("found %d, first %s, not %s alone", n, n ? finding[0].cause : "none", cause);
    assert_true(strlen(finding[0].title) > 5);
    assert_true(strlen(finding[0].evidence) > 5);
    assert_true(strlen(finding[0].remedy) > 5);
    return finding[0].gain;
}

static void detectors_good_run_finds_nothing(void **state)
{
    co_finding finding[CO_EXPLAIN_MAX];

    (void)state;
    assert_int_equal(co_explain_find(finding, &good_run()->e), 0);
}

static void detectors_late_rank_is_found_with_its_cost(void **state)
{
    good *g = good_run();

    (void)state;
    g->times[1].compute = 3;
    g->times[1].wait = 4.4;
    assert_near(assert_only(&g->e, "late-rank"), 0.2, 1e-9); /* 4 s for one of two ranks */
}

/* A second program on the core of rank 1, which is woken late: its clock says that it waits. */
static void detectors_rank_without_core_is_late(void **state)
{
    good *g = good_run();

    (void)state;
    g->times[0].wait = 3;
    g->times[1].wait = 2.9;
    assert_int_equal(co_explain_find((co_finding[CO_EXPLAIN_MAX]){0}, &g->e), 0);
    g->times[1].delayed = 3.1;
    assert_near(assert_only(&g->e, "late-rank"), 0.15, 1e-9);
    g->times[0].wait = 0.2; /* nobody waits for it */
    assert_int_equal(co_explain_find((co_finding[CO_EXPLAIN_MAX]){0}, &g->e), 0);
}

/* What takes less than a tenth of a second of a run needs no remedy. */
static void detectors_of_little_time_say_nothing(void **state)
{
    good *g = good_run();

    (void)state;
    g->times[0].checkpoint = 0.4;
    g->times[0].wall = g->times[1].wall = g->e.run.wall_seconds = 1;
    assert_int_equal(co_explain_find((co_finding[CO_EXPLAIN_MAX]){0}, &g->e), 0);
    g = good_run();
    g->e.run.wall_seconds = 0.1;
    for (int r = 0; r < RANKS; r++)
        g->times[r] = (co_rank_times){.wall = 0.1,
                                      .data = 0.04,
                                      .compute = 0.04,
                                      .core = 0.1,
                                      .read = 0.07,
                                      .read_core = 0.07,
                                      .samples = 500};
    assert_int_equal(co_explain_find((co_finding[CO_EXPLAIN_MAX]){0}, &g->e), 0);
}

static void detectors_late_rank_of_busy_machine_is_chance(void **state)
{
    good *g = good_run();

    (void)state;
    g->times[0].delayed = 9.5;
    g->times[1].delayed = 8;
    g->times[1].compute = 3;
    assert_only(&g->e, "busy-machine");
}

static void detectors_more_threads_than_cores_is_found(void **state)
{
    good *g = good_run();

    (void)state;
    g->e.run.threads = 4;
    for (int r = 0; r < RANKS; r++)
        g->times[r].delayed = 9;
    assert_only(&g->e, "oversubscribed-cores");
}

static void detectors_wait_for_data_is_reader_or_disk(void **state)
{
    good *g = good_run();

    (void)state;
    for (int r = 0; r < RANKS; r++) {
        g->times[r].data = 4;
        g->times[r].compute = 3;
        g->times[r].read = 7;
        g->times[r].read_core = 6;
    }
    assert_near(assert_only(&g->e, "slow-reader"), 0.5267, 1e-3);
    for (int r = 0; r < RANKS; r++)
        g->times[r].read_core = 1;
    assert_near(assert_only(&g->e, "slow-disk"), 0.4, 1e-3);
}

static void detectors_wait_for_checkpoints_is_disk(void **state)
{
    good *g = good_run();

    (void)state;
    g->times[0].checkpoint = 4;
    assert_near(assert_only(&g->e, "slow-disk"), 0.4, 1e-9);
}

static void detectors_small_batch_needs_costs_and_size(void **state)
{
    good *g = good_run();
    co_finding finding[CO_EXPLAIN_MAX];

    (void)state;
    g->e.weights.sample_seconds = 3e-5; /* of 15e-5 that a sample took */
    assert_int_equal(co_explain_find(finding, &g->e), 0);
    g->e.run.batch = 8;
    assert_near(assert_only(&g->e, "small-batch"), 7.5 * 0.8 / 10, 1e-9);
}

static void detectors_diverged_run_has_high_rate(void **state)
{
    good *g = good_run();

    (void)state;
    strcpy(g->e.run.failure, "the loss is not a number any more at step 7: training has diverged");
    assert_true(isnan(assert_only(&g->e, "high-rate")));
}

static void detectors_weights_far_away_without_learning_are_high_rate(void **state)
{
    good *g = good_run();

    (void)state;
    g->step[1].train_loss = 2.302;
    g->epoch[0].test_accuracy = 0.1;
    assert_only(&g->e, "loss-not-falling");
    g->step[0].train_loss = 2.35; /* it falls, slowly */
    assert_int_equal(co_explain_find((co_finding[CO_EXPLAIN_MAX]){0}, &g->e), 0);
    g->step[0].train_loss = 2.3;
    g->e.weights.change = 40;
    assert_only(&g->e, "high-rate");
}

static void detectors_values_far_from_normal_are_found(void **state)
{
    good *g = good_run();

    (void)state;
    g->e.data.std[0] = 0.004;
    assert_only(&g->e, "wrong-normalisation");
    g->e.data.std[0] = 1;
    g->e.data.mean[0] = -42;
    assert_only(&g->e, "wrong-normalisation");
    g->e.data.mean[0] = 0.13; /* bytes from 0 to 1 */
    g->e.data.std[0] = 0.31;
    assert_int_equal(co_explain_find((co_finding[CO_EXPLAIN_MAX]){0}, &g->e), 0);
}

static void detectors_labels_of_chance_need_a_run_that_failed(void **state)
{
    good *g = good_run();

    (void)state;
    g->e.data.nearest = 0.11;
    assert_int_equal(co_explain_find((co_finding[CO_EXPLAIN_MAX]){0}, &g->e), 0);
    g->epoch[0].test_accuracy = 0.1;
    assert_only(&g->e, "shuffled-labels");
}

static void detectors_test_samples_of_training_are_found(void **state)
{
    good *g = good_run();

    (void)state;
    g->e.data.in_train = 4;
    assert_int_equal(co_explain_find((co_finding[CO_EXPLAIN_MAX]){0}, &g->e), 0);
    g->e.data.in_train = 100;
    assert_only(&g->e, "duplicated-test");
}

static void detectors_frozen_drawn_weight_is_found(void **state)
{
    good *g = good_run();

    (void)state;
    g->weight[0].same = g->weight[0].frozen = true;
    assert_only(&g->e, "frozen-layer");
    g->e.weights.drawn = false; /* from a file: that is what freezing is for */
    assert_int_equal(co_explain_find((co_finding[CO_EXPLAIN_MAX]){0}, &g->e), 0);
}

/* Who clips already is not told to clip less. */
static void detectors_remedy_of_clipped_gradient_is_the_rate(void **state)
{
    co_finding finding[CO_EXPLAIN_MAX];
    good *g = good_run();

    (void)state;
    g->step[1].gradient_norm = 5000;
    assert_int_equal(co_explain_find(finding, &g->e), 1);
    assert_non_null(strstr(finding[0].remedy, "clip.norm: 1, about"));
    g->e.spec.clip_norm = 0.5;
    assert_int_equal(co_explain_find(finding, &g->e), 1);
    assert_non_null(strstr(finding[0].remedy, "optimizer.lr: a lower one"));
    assert_non_null(strstr(finding[0].remedy, "clip.norm is 0.5 already"));
}

/* A loss of values has nothing to do with the classes that the data has, too. */
static void detectors_values_are_not_judged_as_classes(void **state)
{
    good *g = good_run();

    (void)state;
    g->step[0] = (co_evidence_point){.step = 50, .train_loss = 40, .train_accuracy = NAN};
    g->step[1] = (co_evidence_point){.step = 1000, .train_loss = 5, .train_accuracy = NAN};
    g->e.weights.change = 3;
    g->e.data.rarest = 10;
    assert_int_equal(co_explain_find((co_finding[CO_EXPLAIN_MAX]){0}, &g->e), 0);
}

/* Of large images it is fewer than 128. */
static void detectors_dead_units_name_samples_looked_at(void **state)
{
    co_finding finding[CO_EXPLAIN_MAX];
    good *g = good_run();

    (void)state;
    g->e.weights.dead = 60;
    g->e.weights.sample_batch = 14;
    assert_int_equal(co_explain_find(finding, &g->e), 1);
    assert_non_null(strstr(finding[0].evidence, "any of 14 training samples"));
    g->e.weights.sample_batch = 7; /* too few to tell */
    assert_int_equal(co_explain_find(finding, &g->e), 0);
}

static void detectors_other_causes_of_learning_are_found(void **state)
{
    good *g = good_run();

    (void)state;
    g->e.weights.dead = 60;
    assert_only(&g->e, "dead-units");
    g = good_run();
    g->step[1].gradient_norm = 5000;
    assert_only(&g->e, "exploding-gradient");
    g = good_run();
    g->e.data.rarest = 10;
    assert_only(&g->e, "label-imbalance");
}

/* Half of computing is a layer at a quarter of the machine's limit, a tenth the update. */
static void savings_are_parts_of_wall_time(void **state)
{
    co_evidence_layer layer[] = {{"fc1", "linear", 0.5e-3, 0.125e-3},
                                 {"relu", "relu", 0.4e-3, 0},
                                 {"optimizer", "", 0.1e-3, 0}};
    co_saving saving[CO_SAVINGS_MAX];
    good *g = good_run();

    (void)state;
    assert_int_equal(co_explain_savings(saving, &g->e), 0);
    g->e.profile = (co_evidence_profile){.known = true,
                                         .steps = 20,
                                         .step = 1e-3,
                                         .n = 3,
                                         .at = layer,
                                         .late = 0.06,
                                         .late_local = 0.01};
    /* layer, strategy, update, data */
    assert_int_equal(co_explain_savings(saving, &g->e), 4);
    assert_near(saving[0].seconds, 7 * 0.5 * 0.75, 1e-9);
    assert_non_null(strstr(saving[0].what, "fc1 (linear)"));
    assert_near(saving[1].seconds, 0.9 - 0.5 / CO_EVIDENCE_PERIOD - 7 * 0.01, 1e-9);
    assert_non_null(strstr(saving[1].what, "47%"));
    assert_near(saving[2].seconds, 7 * 0.1 / 2, 1e-9);
    assert_near(saving[3].seconds, 0.1, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(detectors_good_run_finds_nothing),
        cmocka_unit_test(detectors_late_rank_is_found_with_its_cost),
        cmocka_unit_test(detectors_rank_without_core_is_late),
        cmocka_unit_test(detectors_of_little_time_say_nothing),
        cmocka_unit_test(detectors_late_rank_of_busy_machine_is_chance),
        cmocka_unit_test(detectors_more_threads_than_cores_is_found),
        cmocka_unit_test(detectors_wait_for_data_is_reader_or_disk),
        cmocka_unit_test(detectors_wait_for_checkpoints_is_disk),
        cmocka_unit_test(detectors_small_batch_needs_costs_and_size),
        cmocka_unit_test(detectors_diverged_run_has_high_rate),
        cmocka_unit_test(detectors_weights_far_away_without_learning_are_high_rate),
        cmocka_unit_test(detectors_values_far_from_normal_are_found),
        cmocka_unit_test(detectors_labels_of_chance_need_a_run_that_failed),
        cmocka_unit_test(detectors_test_samples_of_training_are_found),
        cmocka_unit_test(detectors_frozen_drawn_weight_is_found),
        cmocka_unit_test(detectors_remedy_of_clipped_gradient_is_the_rate),
        cmocka_unit_test(detectors_values_are_not_judged_as_classes),
        cmocka_unit_test(detectors_dead_units_name_samples_looked_at),
        cmocka_unit_test(detectors_other_causes_of_learning_are_found),
        cmocka_unit_test(savings_are_parts_of_wall_time),
    };

    return cmocka_run_group_tests_name("explain_detectors", tests, NULL, NULL);
}
