/*
 * test_laws.c - properties of whole runs on any number of ranks.
 *
 * Without dropout and batch norm, N ranks make the steps of one rank up to rounding, and so do
 * micro-batches. Repeating a run gives the same bytes.
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

#include <cohort.h>

#include "folder.h"

#define STEPS 50

/* 97 samples in batches of 24: the last batch has 1, so some ranks have none. With a larger
   learning rate, steps would amplify rounding differences too much. */
static const char config[] =
    "layers:\n"
    "- conv2d: {name: conv1, out: 6, kernel: 3}\n"
    "- maxpool: 2\n"
    "- relu\n"
    "- flatten\n"
    "- linear: {name: fc1, out: 20}\n"
    "- relu\n"
    "- linear: {name: fc2, out: 10}\n"
    "data: {name: synthetic, shape: [1, 12, 12], classes: 10, samples: 97, normalize: {mean: 0.5, "
    "std: 0.2}}\n"
    "batch: 24\n"
    "epochs: 100\n"
    "max_steps: 50\n"
    "optimizer: {name: sgd, lr: 0.02, momentum: 0.9}\n"
    "evaluate: false\n"
    "threads: 1\n";

/* Train in folder/name and open the weights. */
static co_safetensors *train(co_train_summary *summary, const char *name, int ranks,
                             const char *const *set)
{
    char run_dir[256], path[300];
    co_train_options options = {
        .config_text = config, .set = set, .ranks = ranks, .run_dir = run_dir, .quiet = true};
    co_safetensors *file = NULL;

    snprintf(run_dir, sizeof(run_dir), "%s/%s", folder, name);
    snprintf(path, sizeof(path), "%s/final.safetensors", run_dir);
    if (co_train(summary, &options) != CO_OK)
        fail_msg("%s", co_error_message());
    assert_int_equal(summary->steps, STEPS);
    assert_int_equal(co_safetensors_open(&file, path), CO_OK);
    return file;
}

/* Maximum difference, relative to the tensor's maximum. */
static double distance(const co_safetensors *a, const co_safetensors *b)
{
    double worst = 0;

    assert_int_equal(co_safetensors_count(a), 6);
    for (size_t i = 0; i < co_safetensors_count(a); i++) {
        const co_named_tensor *x = co_safetensors_tensor(a, i), *y = co_safetensors_tensor(b, i);
        const float *u = x->data, *v = y->data;
        double largest = 0, difference = 0;

        assert_string_equal(x->name, y->name);
        for (size_t e = 0; e < x->bytes / sizeof(float); e++) {
            largest = fmax(largest, fabs((double)u[e]));
            difference = fmax(difference, fabs((double)u[e] - (double)v[e]));
        }
        worst = fmax(worst, difference / largest);
    }
    return worst;
}

static void train_on_any_ranks_equals_one_rank(void **state)
{
    co_train_summary summary;
    co_safetensors *one = train(&summary, "ranks-1", 1, NULL);

    (void)state;
    for (int ranks = 2; ranks <= 4; ranks++) {
        char name[32];
        co_safetensors *many;

        snprintf(name, sizeof(name), "ranks-%d", ranks);
        many = train(&summary, name, ranks, NULL);
        print_message("%d ranks against 1: %.2g\n", ranks, distance(one, many));
        assert_true(distance(one, many) < 1e-5);
        co_safetensors_close(many);
    }
    co_safetensors_close(one);
}

/* Also if the step depends on norms of tensors, and if kinds of tensors have different weight
   decay. */
static void optimizer_of_norms_on_ranks_equals_one_rank(void **state)
{
    static const char *const optimizers[] = {
        "optimizer={name: lars, lr: 5, weight_decay: 0.001, bias_weight_decay: 0}",
        "optimizer={name: lamb, lr: 0.01, eps: 0.001, exclude_norm_bias: true}",
        "optimizer={name: adadelta, eps: 0.001, weight_decay: 0.001, bias_weight_decay: 0}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(optimizers) / sizeof(optimizers[0]); i++) {
        const char *const set[] = {optimizers[i], NULL};
        co_train_summary summary;
        co_safetensors *one, *many;
        char name[32];

        snprintf(name, sizeof(name), "optimizer-%zu-1", i);
        one = train(&summary, name, 1, set);
        assert_true(summary.train_loss < 2.2);
        snprintf(name, sizeof(name), "optimizer-%zu-3", i);
        many = train(&summary, name, 3, set);
        print_message("%s: %.2g\n", optimizers[i], distance(one, many));
        assert_true(distance(one, many) < 1e-4);
        co_safetensors_close(many);
        co_safetensors_close(one);
    }
}

static void optimizer_of_norms_with_parts_is_refused(void **state)
{
    static const char *const strategies[] = {"strategy=threads",
                                             "strategy={name: sync, update: parts}",
                                             "strategy={name: sync, update: zero}"};

    (void)state;
    for (size_t i = 0; i < sizeof(strategies) / sizeof(strategies[0]); i++) {
        const char *const set[] = {"optimizer=lars", "data={name: arrays, path: nowhere}",
                                   strategies[i], NULL};
        const co_train_options options = {
            .config_text = config, .set = set, .ranks = 3, .quiet = true, .run_dir = folder};
        char words[256];

        snprintf(words, sizeof(words),
                 "--set %s: optimizer lars needs whole tensors for their norms", strategies[i]);
        assert_int_equal(co_train(NULL, &options), CO_E_USAGE);
        assert_non_null(strstr(co_error_message(), words));
    }
}

/* Scales with batch / lr_batch, where batch is that of all ranks, however it is configured. */
static void learning_rate_scales_with_global_batch(void **state)
{
    static const char *const plain[] = {"optimizer.lr=0.1", NULL};
    static const char *const scaled[] = {"optimizer.lr=0.2", "optimizer.lr_batch=48", NULL};
    static const char *const per_rank[] = {"optimizer.lr=0.2", "optimizer.lr_batch=48",
                                           "batch_per_rank=12", NULL};
    co_train_summary a, b, c;

    (void)state;
    co_safetensors_close(train(&a, "rate", 2, plain));
    co_safetensors_close(train(&b, "rate-scaled", 2, scaled));
    co_safetensors_close(train(&c, "rate-per-rank", 2, per_rank));
    assert_string_equal(a.weights_sha256, b.weights_sha256);
    assert_string_equal(a.weights_sha256, c.weights_sha256);
}

static void train_mnist_net_lowers_loss(void **state)
{
    co_train_summary summary;
    co_safetensors *file = train(&summary, "learns", 2, NULL);

    (void)state;
    assert_true(summary.train_loss < 1.0); /* ln 10 = 2.3 at the start */
    co_safetensors_close(file);
}

static void train_micro_batches_equal_one_batch(void **state)
{
    static const char *const cut[] = {"accumulate=5", NULL};
    co_train_summary summary;
    co_safetensors *whole = train(&summary, "whole", 2, NULL);
    co_safetensors *parts = train(&summary, "parts", 2, cut);

    (void)state;
    assert_true(distance(whole, parts) < 1e-5);
    co_safetensors_close(parts);
    co_safetensors_close(whole);
}

static void train_same_config_gives_same_bytes(void **state)
{
    co_train_summary a, b;

    (void)state;
    co_safetensors_close(train(&a, "again-a", 3, NULL));
    co_safetensors_close(train(&b, "again-b", 3, NULL));
    assert_string_equal(a.weights_sha256, b.weights_sha256);
    assert_int_equal(strlen(a.weights_sha256), 64);
}

static void train_other_seed_gives_other_bytes(void **state)
{
    static const char *const seed[] = {"seed=4321", NULL};
    co_train_summary a, b;

    (void)state;
    co_safetensors_close(train(&a, "seed-a", 1, NULL));
    co_safetensors_close(train(&b, "seed-b", 1, seed));
    assert_string_not_equal(a.weights_sha256, b.weights_sha256);
}

/* The saved running statistics are those of all ranks, with or without evaluation. */
static void running_statistics_without_evaluation_are_same(void **state)
{
    static const char *const set[2][5] = {
        {"model={name: mnist-net, batch_norm: true}", "layers=~",
         "data={name: synthetic, shape: [1, 28, 28], classes: 10, samples: 1200}", "evaluate=false",
         NULL},
        {"model={name: mnist-net, batch_norm: true}", "layers=~",
         "data={name: synthetic, shape: [1, 28, 28], classes: 10, samples: 1200}", "evaluate=true",
         NULL},
    };
    co_train_summary unmeasured, measured;
    char run_dir[2][64];

    (void)state;
    for (int i = 0; i < 2; i++) {
        const co_train_options options = {
            .config_text = config, .set = set[i], .ranks = 3, .run_dir = run_dir[i], .quiet = true};

        snprintf(run_dir[i], sizeof(run_dir[i]), "%s/statistics-%d", folder, i);
        if (co_train(i ? &measured : &unmeasured, &options) != CO_OK)
            fail_msg("%s", co_error_message());
    }
    assert_string_equal(unmeasured.weights_sha256, measured.weights_sha256);
}

/* With any backend, whatever it makes of a NaN. */
static void train_diverged_run_fails(void **state)
{
    static const char *const backends[] = {"backend=auto", "backend=ref"};

    (void)state;
    for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
        const char *const set[] = {"optimizer.lr=1e6", "epochs=2", backends[i], NULL};
        char run_dir[256];
        co_train_options options = {
            .config_text = config, .set = set, .run_dir = run_dir, .ranks = 2, .quiet = true};

        snprintf(run_dir, sizeof(run_dir), "%s/diverged-%zu", folder, i);
        assert_int_equal(co_train(NULL, &options), CO_E_FAILED);
        assert_non_null(strstr(co_error_message(), "diverged"));
    }
}

static void train_used_run_directory_is_refused(void **state)
{
    char run_dir[256];
    co_train_options options = {
        .config_text = config, .run_dir = run_dir, .ranks = 1, .quiet = true};

    (void)state;
    snprintf(run_dir, sizeof(run_dir), "%s/ranks-1", folder);
    assert_int_equal(co_train(NULL, &options), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "holds an earlier run"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(train_on_any_ranks_equals_one_rank),
        cmocka_unit_test(optimizer_of_norms_on_ranks_equals_one_rank),
        cmocka_unit_test(optimizer_of_norms_with_parts_is_refused),
        cmocka_unit_test(learning_rate_scales_with_global_batch),
        cmocka_unit_test(train_mnist_net_lowers_loss),
        cmocka_unit_test(train_micro_batches_equal_one_batch),
        cmocka_unit_test(train_same_config_gives_same_bytes),
        cmocka_unit_test(train_other_seed_gives_other_bytes),
        cmocka_unit_test(running_statistics_without_evaluation_are_same),
        cmocka_unit_test(train_diverged_run_fails),
        cmocka_unit_test(train_used_run_directory_is_refused),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
