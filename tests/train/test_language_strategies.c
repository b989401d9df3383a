/*
 * test_language_strategies.c - transformers under every strategy: laws between whole runs.
 * test_language_strategies [all]: a small gpt2 on few, or all networks with all laws.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trained.h"

/* 31 samples in batches of 10: the last batch has 1, so some ranks have none. */
#define TRAINING                                                                                   \
    "batch: 10\n"                                                                                  \
    "epochs: 2\n"                                                                                  \
    "optimizer: {name: adamw, lr: 0.01, weight_decay: 0.1}\n"                                      \
    "threads: 1\n"

static const char gpt2[] = "model: {name: gpt2, layers: 2, heads: 2, width: 16, dropout: 0.1}\n"
                           "data: {name: synthetic-tokens, context: 12, vocabulary: 23, samples: "
                           "31, test_samples: 9}\n" TRAINING;

/* Tied weights with dropout; logits in parts, whose gradients are ready in the forward pass;
   recomputed blocks; a transformer for images. */
static const char *const networks[] = {
    gpt2,
    "model: {name: gpt2, layers: 1, heads: 2, width: 8}\n"
    "data: {name: synthetic-tokens, context: 12, vocabulary: 8200, samples: 31, test_samples: "
    "9}\n" TRAINING,
    "model: {name: llama, layers: 1, heads: 4, kv_heads: 2, width: 16}\n"
    "data: {name: synthetic-tokens, context: 12, vocabulary: 23, samples: 31, test_samples: 9}\n"
    "recompute: true\n" TRAINING,
    "model: {name: vit-s16, layers: 1, heads: 2, width: 16, patch: 4, dropout: 0.1}\n"
    "data: {name: synthetic, shape: [3, 12, 8], classes: 5, samples: 31, test_samples: "
    "9}\n" TRAINING,
};

static size_t n_networks = 1;

static void assert_same_bytes(const char *network, const trained *sync, int ranks,
                              const char *strategy, const char *const *set)
{
    const trained other = trained_run(network, ranks, strategy, set);

    if (strcmp(sync->summary.weights_sha256, other.summary.weights_sha256) != 0)
        fail_msg("%.40s, %s on %d ranks: differs from sync by %.3g", network, strategy, ranks,
                 trained_distance(sync, &other));
}

static void language_strategies_equivalent_to_sync_give_its_bytes(void **state)
{
    static const struct {
        int ranks;
        const char *strategy;
    } cases[] = {
        {3, "strategy={name: sync, update: parts, bucket_mib: 0.001}"},
        {3, "strategy={name: sync, update: zero, bucket_mib: 0.001}"},
        {3, "strategy={name: sync, compress: {name: topk, ratio: 1}}"},
        {3, "strategy={name: stale, k: 0}"},
        {1, "strategy={name: stale, racy: true}"},
        {3, "strategy={name: local, period: 4, start: 1000}"},
        {1, "strategy={name: local, period: 3}"},
        {1, "strategy=one-shot"},
        {1, "strategy={name: one-shot, init: per-rank}"},
        {1, "strategy=hogwild"},
        {3, "strategy={name: threads, bucket_mib: 0.001}"},
    };

    (void)state;
    for (size_t n = 0; n < n_networks; n++) {
        const trained one = trained_run(networks[n], 1, "strategy=sync", NULL);
        const trained three = trained_run(networks[n], 3, "strategy=sync", NULL);

        for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
            assert_same_bytes(networks[n], cases[c].ranks == 1 ? &one : &three, cases[c].ranks,
                              cases[c].strategy, NULL);
    }
}

static void language_strategies_with_micro_batches_and_clipping_give_bytes_of_sync(void **state)
{
    static const char *const sets[][3] = {
        {"accumulate=2", NULL},
        {"clip={norm: 0.5}", NULL},
        {"precision=bf16", "recompute=true", NULL},
    };
    static const char *const strategies[] = {
        "strategy={name: sync, update: zero}",
        "strategy={name: stale, k: 0}",
        "strategy={name: local, period: 4, start: 1000}",
        "strategy=threads",
    };

    (void)state;
    for (size_t s = 0; s < sizeof(sets) / sizeof(sets[0]); s++) {
        const trained sync = trained_run(gpt2, 2, "strategy=sync", sets[s]);

        for (size_t c = 0; c < sizeof(strategies) / sizeof(strategies[0]); c++)
            assert_same_bytes(gpt2, &sync, 2, strategies[c], sets[s]);
    }
}

/* Sums in another order: with plain SGD there is rounding, and nothing else. */
static void language_strategies_near_sync_are_within_rounding(void **state)
{
    static const char *const set[] = {"optimizer={name: sgd, lr: 0.05}", NULL};
    static const char *const strategies[] = {"strategy={name: local, period: 1}",
                                             "strategy={name: ssp, bound: 0}"};

    (void)state;
    for (size_t n = 0; n < n_networks; n++) {
        const trained sync = trained_run(networks[n], 3, "strategy=sync", set);

        for (size_t c = 0; c < sizeof(strategies) / sizeof(strategies[0]); c++) {
            const trained other = trained_run(networks[n], 3, strategies[c], set);

            print_message("network %zu, %s: %.2g\n", n, strategies[c],
                          trained_distance(&sync, &other));
            assert_true(trained_distance(&sync, &other) < 1e-5);
        }
    }
}

/* Those that have a way of their own still have one: two runs are alike, and not as sync is. */
static void language_strategies_of_their_own_repeat_bit_for_bit(void **state)
{
    static const char *const strategies[] = {
        "strategy={name: stale, k: 2}",
        ("strategy={name: local, period: 3, start: 1, outer: {momentum: 0.9, lr: 0.7, nesterov: "
         "true}}"),
        "strategy=one-shot",
        "strategy={name: sync, compress: bf16}",
        "strategy={name: sync, compress: fp16}",
        "strategy={name: sync, compress: {name: topk, ratio: 0.05}}",
        "strategy={name: sync, compress: {name: powersgd, rank: 2}}",
    };
    const trained sync = trained_run(gpt2, 3, "strategy=sync", NULL);

    (void)state;
    for (size_t c = 0; c < sizeof(strategies) / sizeof(strategies[0]); c++) {
        const trained one = trained_run(gpt2, 3, strategies[c], NULL);
        const trained two = trained_run(gpt2, 3, strategies[c], NULL);

        assert_string_equal(one.summary.weights_sha256, two.summary.weights_sha256);
        assert_true(one.summary.train_loss == two.summary.train_loss);
        assert_string_not_equal(one.summary.weights_sha256, sync.summary.weights_sha256);
    }
}

/* Each learns: tokens follow each other by a rule, and log(23) = 3.14 is what guessing costs. */
static void language_strategies_lower_the_loss(void **state)
{
    static const char *const strategies[] = {
        "strategy=sync",
        "strategy={name: stale, k: 2}",
        "strategy={name: stale, racy: true}",
        "strategy={name: ssp, bound: 3}",
        "strategy={name: local, period: 3}",
        "strategy=one-shot",
        "strategy=hogwild",
        "strategy=threads",
        "strategy={name: sync, compress: bf16}",
        "strategy={name: sync, compress: {name: topk, ratio: 0.1}}",
        "strategy={name: sync, compress: {name: powersgd, rank: 2}}",
    };
    static const char *const set[] = {"epochs=12", "data.samples=120", NULL};

    (void)state;
    for (size_t c = 0; c < sizeof(strategies) / sizeof(strategies[0]); c++) {
        const trained t = trained_run(gpt2, 2, strategies[c], set);

        print_message("%s: %.3f, test %.3f\n", strategies[c], t.summary.train_loss,
                      t.summary.test_loss);
        assert_true(t.summary.train_loss < 1.8 && t.summary.test_loss < 2.3);
    }
}

/* Also if weights change, or are averaged, after the last epoch. */
static void language_strategies_save_the_weights_measured(void **state)
{
    static const char *const strategies[] = {
        "strategy={name: sync, update: zero}",
        "strategy={name: local, period: 7}",
        "strategy={name: local, period: 7, start: 3, outer: {momentum: 0.5}}",
        "strategy=one-shot",
        "strategy={name: stale, k: 3}",
        "strategy={name: stale, racy: true}",
        "strategy=hogwild",
        "strategy={name: ssp, bound: 2}",
        "strategy=threads",
    };

    (void)state;
    for (size_t s = 0; s < sizeof(strategies) / sizeof(strategies[0]); s++) {
        const trained t = trained_run(gpt2, 3, strategies[s], NULL);
        const co_train_options options = {.config_text = gpt2, .ranks = 1, .quiet = true};
        co_eval_summary eval;

        if (co_evaluate(&eval, &options, t.weights) != CO_OK)
            fail_msg("%s", co_error_message());
        if (fabs(eval.loss - t.summary.test_loss) > 1e-6)
            fail_msg("%s: loss %.9g saved, %.9g measured", strategies[s], eval.loss,
                     t.summary.test_loss);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest few[] = {
        cmocka_unit_test(language_strategies_equivalent_to_sync_give_its_bytes),
        cmocka_unit_test(language_strategies_near_sync_are_within_rounding),
    };
    const struct CMUnitTest all[] = {
        cmocka_unit_test(language_strategies_equivalent_to_sync_give_its_bytes),
        cmocka_unit_test(language_strategies_with_micro_batches_and_clipping_give_bytes_of_sync),
        cmocka_unit_test(language_strategies_near_sync_are_within_rounding),
        cmocka_unit_test(language_strategies_of_their_own_repeat_bit_for_bit),
        cmocka_unit_test(language_strategies_lower_the_loss),
        cmocka_unit_test(language_strategies_save_the_weights_measured),
    };

    if (argc < 2 || strcmp(argv[1], "all") != 0)
        return cmocka_run_group_tests(few, folder_make, folder_remove);
    n_networks = sizeof(networks) / sizeof(networks[0]);
    return cmocka_run_group_tests(all, folder_make, folder_remove);
}
