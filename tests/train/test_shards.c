/*
 * test_shards.c - with `shards: V` a run has the same bits on any number of ranks up to V: weights,
 * running statistics, and all figures.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <cohort.h>

#include "folder.h"

/* 97 samples in batches of 24: shards of 3 samples, and one sample in all for the last batch.
   Dropout, batch norm and clipping would show the number of ranks. */
static const char config[] =
    "layers:\n"
    "- conv2d: {name: conv1, out: 6, kernel: 3, bias: false}\n"
    "- batchnorm: {name: bn1}\n"
    "- maxpool: 2\n"
    "- relu\n"
    "- flatten\n"
    "- linear: {name: fc1, out: 20}\n"
    "- relu\n"
    "- dropout: 0.3\n"
    "- linear: {name: fc2, out: 10}\n"
    "data: {name: synthetic, shape: [1, 12, 12], classes: 10, samples: 97, test_samples: 301}\n"
    "batch: 24\n"
    "shards: 8\n"
    "epochs: 3\n"
    "optimizer: {name: sgd, lr: 0.05, momentum: 0.9}\n"
    "clip: {norm: 1.0}\n";

static int runs;

static void train_text(co_train_summary *out, const char *text, int ranks, const char *const *set)
{
    char run_dir[256];
    co_train_options options = {
        .config_text = text, .set = set, .ranks = ranks, .run_dir = run_dir, .quiet = true};

    snprintf(run_dir, sizeof(run_dir), "%s/run-%d", folder, runs++);
    if (co_train(out, &options) != CO_OK)
        fail_msg("%d ranks: %s", ranks, co_error_message());
}

static void train(co_train_summary *out, int ranks, const char *const *set)
{
    train_text(out, config, ranks, set);
}

static void assert_same_run(const co_train_summary *a, const co_train_summary *b)
{
    assert_string_equal(a->weights_sha256, b->weights_sha256);
    assert_memory_equal(&a->train_loss, &b->train_loss, sizeof(double));
    assert_memory_equal(&a->train_accuracy, &b->train_accuracy, sizeof(double));
    assert_memory_equal(&a->test_loss, &b->test_loss, sizeof(double));
    assert_memory_equal(&a->test_accuracy, &b->test_accuracy, sizeof(double));
    assert_int_equal(a->steps, b->steps);
}

/* Every layer of the transformers, and clipping. */
static const char *const transformers[] = {
    "model: {name: gpt2, layers: 2, heads: 2, width: 16, dropout: 0.1}\n"
    "data: {name: synthetic-tokens, context: 12, vocabulary: 23, samples: 37, test_samples: 9}\n",
    "model: {name: llama, layers: 2, heads: 4, kv_heads: 2, width: 16}\n"
    "data: {name: synthetic-tokens, context: 12, vocabulary: 23, samples: 37, test_samples: 9}\n",
    "model: {name: vit-s16, layers: 2, heads: 2, width: 16, patch: 4, dropout: 0.1}\n"
    "data: {name: synthetic, shape: [3, 12, 8], classes: 5, samples: 37, test_samples: 9}\n",
};

#define TRANSFORMERS_TRAINING                                                                      \
    "batch: 10\n"                                                                                  \
    "shards: 5\n"                                                                                  \
    "epochs: 2\n"                                                                                  \
    "optimizer: {name: adamw, lr: 0.01}\n"                                                         \
    "clip: {norm: 1.0}\n"

/* Runs on each number of `ranks` (ends with 0) equal the run on one rank. */
static void assert_same_for(const int *ranks, const char *const *set)
{
    co_train_summary one, many;

    train(&one, 1, set);
    for (; *ranks; ranks++) {
        train(&many, *ranks, set);
        assert_same_run(&one, &many);
    }
}

static void shards_on_any_ranks_give_same_bits(void **state)
{
    static const int ranks[] = {2, 3, 4, 5, 7, 8, 0};

    (void)state;
    assert_same_for(ranks, NULL);
}

static void shards_of_transformers_give_same_bits(void **state)
{
    static const char *const recompute[] = {"recompute=true", NULL};

    (void)state;
    for (size_t i = 0; i < sizeof(transformers) / sizeof(transformers[0]); i++) {
        co_train_summary one, many;
        char text[512];

        snprintf(text, sizeof(text), "%s%s", transformers[i], TRANSFORMERS_TRAINING);
        train_text(&one, text, 1, NULL);
        for (int ranks = 2; ranks <= 4; ranks++) {
            train_text(&many, text, ranks, NULL);
            assert_same_run(&one, &many);
        }
        train_text(&many, text, 2, recompute);
        assert_same_run(&one, &many);
    }
}

static void shards_any_number_on_any_ranks_give_same_bits(void **state)
{
    static const int ranks[] = {2, 3, 0};
    static const char *const three[] = {"shards=3", NULL};
    static const char *const eleven[] = {"shards=11", NULL};
    static const char *const many[] = {"shards=40", NULL}; /* most of them empty */

    (void)state;
    assert_same_for(ranks, three);
    assert_same_for(ranks, eleven);
    assert_same_for(ranks, many);
}

static void shards_with_other_options_give_same_bits(void **state)
{
    static const int ranks[] = {3, 0};
    static const char *const cut[] = {"accumulate=2", "threads=2", NULL};
    static const char *const reference[] = {"backend=ref", "epochs=1", NULL};
    static const char *const averaged[] = {"ema={decay: 0.9}", "optimizer={name: adam, lr: 0.01}",
                                           NULL};
    static const char *const parts[] = {"partition={kind: dirichlet, alpha: 0.3}",
                                        "strategy={name: sync, bucket_mib: 0.001}", NULL};
    static const char *const threads[] = {"strategy=threads", NULL};

    (void)state;
    assert_same_for(ranks, cut);
    assert_same_for(ranks, reference);
    assert_same_for(ranks, averaged);
    assert_same_for(ranks, parts);
    assert_same_for(ranks, threads);
}

/* Ensures that the tests above are meaningful. */
static void shards_other_number_gives_other_bits(void **state)
{
    static const char *const without[] = {"shards=auto", NULL};
    static const char *const four[] = {"shards=4", NULL};
    co_train_summary eight, other;

    (void)state;
    train(&eight, 2, NULL);
    train(&other, 2, four);
    assert_string_not_equal(eight.weights_sha256, other.weights_sha256);
    train(&other, 2, without);
    assert_string_not_equal(eight.weights_sha256, other.weights_sha256);
}

static void refused(int ranks, const char *set, const char *want)
{
    const char *const sets[] = {set, NULL};
    char run_dir[256];
    co_train_options options = {
        .config_text = config, .set = sets, .ranks = ranks, .run_dir = run_dir, .quiet = true};

    snprintf(run_dir, sizeof(run_dir), "%s/refused", folder);
    assert_int_equal(co_train(NULL, &options), CO_E_USAGE);
    if (!strstr(co_error_message(), want))
        fail_msg("%s: got \"%s\"", set, co_error_message());
}

static void shards_with_rank_dependent_options_are_refused(void **state)
{
    (void)state;
    refused(9, "seed=1", "start at most 8 (-n), or raise shards");
    refused(2, "strategy=local", "'local' has no order of summing");
    refused(2, "strategy=hogwild", "'hogwild' has no order of summing");
    refused(2, "strategy={name: sync, reduction: mean}", "reduction: mean divides by");
    refused(2, "batch_per_rank=4", "give batch");
    refused(2, "sync_batch_norm=true", "goes only with `shards: auto`");
    refused(2, "shards=0", "expected auto, or a whole number from 1 to 1024, got '0'");
    refused(2, "shards=1025", "expected auto, or a whole number from 1 to 1024");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_on_any_ranks_give_same_bits),
        cmocka_unit_test(shards_of_transformers_give_same_bits),
        cmocka_unit_test(shards_any_number_on_any_ranks_give_same_bits),
        cmocka_unit_test(shards_with_other_options_give_same_bits),
        cmocka_unit_test(shards_other_number_gives_other_bits),
        cmocka_unit_test(shards_with_rank_dependent_options_are_refused),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
