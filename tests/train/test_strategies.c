/*
 * test_strategies.c - properties of whole runs with the strategies: laws between them, and that the
 * saved weights are those evaluated.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "trained.h"

/* 97 samples in batches of 24: the last batch has 1, so some ranks have none. */
static const char config[] =
    "layers:\n"
    "- conv2d: {name: conv1, out: 6, kernel: 3}\n"
    "- batchnorm\n"
    "- maxpool: 2\n"
    "- relu\n"
    "- flatten\n"
    "- linear: {name: fc1, out: 20}\n"
    "- relu\n"
    "- linear: {name: fc2, out: 10}\n"
    "data: {name: synthetic, shape: [1, 12, 12], classes: 10, samples: 97, test_samples: 60}\n"
    "batch: 24\n"
    "epochs: 4\n"
    "optimizer: {name: sgd, lr: 0.05}\n"
    "threads: 1\n";

/* The same without batch norm, whose statistics depend on the rank's batch. */
static const char plain_layers[] =
    "layers=[{conv2d: {name: conv1, out: 6, kernel: 3}}, {maxpool: 2}, relu, flatten, "
    "{linear: {name: fc1, out: 20}}, relu, {linear: {name: fc2, out: 10}}]";

static trained train(int ranks, const char *strategy, const char *const *set)
{
    return trained_run(config, ranks, strategy, set);
}

static void train_local_period_of_one_equals_sync(void **state)
{
    static const struct {
        int ranks;
        const char *partition;
    } cases[] = {
        {2, "partition=global"},
        {3, "partition=global"},
        {2, "partition={kind: random, ratios: [0.97, 0.03]}"},
        {3, "partition={kind: random, ratios: [0.6, 0.3, 0.1]}"},
        {2, "partition={kind: random, ratios: [1, 0]}"},
    };

    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        const char *const set[] = {plain_layers, cases[c].partition, NULL};
        const trained sync = train(cases[c].ranks, "strategy=sync", set);
        const trained local = train(cases[c].ranks, "strategy={name: local, period: 1}", set);

        print_message("%d ranks, %s: %.2g\n", cases[c].ranks, cases[c].partition,
                      trained_distance(&sync, &local));
        assert_true(trained_distance(&sync, &local) < 1e-5);
    }
}

static void train_equivalent_strategies_give_bytes_of_sync(void **state)
{
    static const struct {
        int ranks;
        const char *strategy;
    } cases[] = {
        {3, "strategy={name: stale, k: 0}"},
        {1, "strategy={name: stale, racy: true}"},
        {3, "strategy={name: local, period: 4, start: 1000}"},
        {1, "strategy={name: local, period: 3}"},
        {1, "strategy=one-shot"},
        {1, "strategy={name: one-shot, init: per-rank}"}, /* rank 0's own weights are the common
                                                             ones */
    };

    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        const trained sync = train(cases[c].ranks, "strategy=sync", NULL);
        const trained other = train(cases[c].ranks, cases[c].strategy, NULL);

        if (strcmp(sync.summary.weights_sha256, other.summary.weights_sha256) != 0)
            fail_msg("%s differs from sync", cases[c].strategy);
    }
}

static void train_per_rank_weights_end_elsewhere(void **state)
{
    const trained common = train(2, "strategy=one-shot", NULL);
    const trained apart = train(2, "strategy={name: one-shot, init: per-rank}", NULL);
    const trained again = train(2, "strategy={name: one-shot, init: per-rank}", NULL);

    (void)state;
    assert_string_equal(apart.summary.weights_sha256, again.summary.weights_sha256);
    assert_true(trained_distance(&common, &apart) > 0.05);
    assert_true(common.summary.test_loss < apart.summary.test_loss);
}

/* Also if weights change, or are averaged, after the last epoch. */
static void train_saved_weights_are_those_measured(void **state)
{
    static const char *const strategies[] = {
        "strategy=sync",
        "strategy={name: local, period: 7}",
        "strategy={name: local, period: 7, start: 6, outer: {momentum: 0.5}}",
        "strategy=one-shot",
        "strategy={name: one-shot, init: per-rank}",
        "strategy={name: stale, k: 3}",
        "strategy={name: stale, racy: true}",
    };

    (void)state;
    for (size_t s = 0; s < sizeof(strategies) / sizeof(strategies[0]); s++)
        for (int ranks = 1; ranks <= 3; ranks += 2) {
            const trained t = train(ranks, strategies[s], NULL);
            co_eval_summary eval;
            const co_train_options options = {.config_text = config, .ranks = 1, .quiet = true};

            if (co_evaluate(&eval, &options, t.weights) != CO_OK)
                fail_msg("%s", co_error_message());
            assert_true(eval.accuracy == t.summary.test_accuracy);
            if (fabs(eval.loss - t.summary.test_loss) > 1e-6)
                fail_msg("%s, %d ranks: loss %.9g saved, %.9g measured", strategies[s], ranks,
                         eval.loss, t.summary.test_loss);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(train_local_period_of_one_equals_sync),
        cmocka_unit_test(train_equivalent_strategies_give_bytes_of_sync),
        cmocka_unit_test(train_per_rank_weights_end_elsewhere),
        cmocka_unit_test(train_saved_weights_are_those_measured),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
