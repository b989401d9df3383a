/*
 * test_ema.c - the moving average of the weights: its formula over whole runs, on any number of
 * ranks; that it is evaluated and saved; and that it is rejected where ranks have different
 * weights.
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

#include <cohort.h>

#include "folder.h"

#define STEPS 6
#define MAX_N 8192

static const char layers[] = "[{conv2d: {name: conv1, out: 4, kernel: 3}}, batchnorm, relu, "
                             "flatten, {linear: {name: fc1, out: 10}}]";
static const char config[] =
    "layers:\n"
    "- conv2d: {name: conv1, out: 4, kernel: 3}\n"
    "- batchnorm\n"
    "- relu\n"
    "- flatten\n"
    "- linear: {name: fc1, out: 10}\n"
    "data: {name: synthetic, shape: [1, 8, 8], classes: 10, samples: 60, test_samples: 40}\n"
    "batch: 24\n"
    "epochs: 2\n"
    "seed: 7\n"
    "optimizer: {name: sgd, lr: 0.1}\n"
    "threads: 1\n";

typedef struct weights {
    float v[MAX_N];
    size_t n;
} weights;

static void load(weights *out, const char *path)
{
    co_safetensors *file = NULL;

    if (co_safetensors_open(&file, path) != CO_OK)
        fail_msg("%s", co_error_message());
    out->n = 0;
    for (size_t i = 0; i < co_safetensors_count(file); i++) {
        const co_named_tensor *t = co_safetensors_tensor(file, i);

        assert_true(out->n + t->bytes / sizeof(float) <= MAX_N);
        memcpy(out->v + out->n, t->data, t->bytes);
        out->n += t->bytes / sizeof(float);
    }
    co_safetensors_close(file);
}

static co_train_summary train(char run_dir[256], int ranks, const char *const *set)
{
    static int runs;
    co_train_summary summary;
    const co_train_options options = {
        .config_text = config, .set = set, .ranks = ranks, .run_dir = run_dir, .quiet = true};

    snprintf(run_dir, 256, "%s/%d", folder, runs++);
    if (co_train(&summary, &options) != CO_OK)
        fail_msg("%s", co_error_message());
    return summary;
}

static void load_from(weights *out, const char *run_dir, const char *name)
{
    char path[320];

    snprintf(path, sizeof(path), "%s/%s", run_dir, name);
    load(out, path);
}

static void load_initial(weights *out)
{
    const co_model_options options = {
        .model = layers, .sample = {3, {1, 8, 8}}, .classes = 10, .seed = 7, .threads = 1};
    co_model *model = NULL;
    char path[320];

    snprintf(path, sizeof(path), "%s/initial.safetensors", folder);
    assert_int_equal(co_model_create(&model, &options), CO_OK);
    assert_int_equal(co_model_save(model, path), CO_OK);
    co_model_destroy(model);
    load(out, path);
}

/* Compares with an average computed here from the weights after each step, from runs of that many
   steps. */
static void check_formula(const char *ema, double decay, bool warmup, int every, int ranks)
{
    static weights initial, now, found;
    static double mean[MAX_N];
    int t = 0;

    load_initial(&initial);
    for (size_t i = 0; i < initial.n; i++)
        mean[i] = (double)initial.v[i];
    for (int step = 1; step <= STEPS; step++) {
        char max_steps[32], run_dir[256];
        const char *const set[] = {ema, max_steps, "evaluate=false", NULL};
        double keep = decay;

        snprintf(max_steps, sizeof(max_steps), "max_steps=%d", step);
        train(run_dir, ranks, set);
        load_from(&now, run_dir, "trained.safetensors");
        load_from(&found, run_dir, "final.safetensors");
        if (step % every == 0) {
            if (warmup && (1.0 + t) / (10.0 + t) < keep)
                keep = (1.0 + t) / (10.0 + t);
            for (size_t i = 0; i < now.n; i++)
                mean[i] = keep * mean[i] + (1 - keep) * (double)now.v[i];
            t++;
        }
        for (size_t i = 0; i < now.n; i++)
            if (fabs((double)found.v[i] - mean[i]) > 1e-6 * (1 + fabs(mean[i])))
                fail_msg("%s, step %d, element %zu: %.9g, expected %.9g", ema, step, i,
                         (double)found.v[i], mean[i]);
    }
}

static void ema_of_weights_equals_formula(void **state)
{
    (void)state;
    check_formula("ema={}", 0.999, true, 1, 1);
    check_formula("ema={decay: 0.3}", 0.3, true, 1, 2);
    check_formula("ema={decay: 0.9, warmup: false, every: 2}", 0.9, false, 2, 1);
}

static void ema_saved_weights_are_those_measured(void **state)
{
    static const char *const strategies[] = {"strategy=sync", "strategy=threads",
                                             "strategy={name: stale, k: 2}"};

    (void)state;
    for (size_t s = 0; s < sizeof(strategies) / sizeof(strategies[0]); s++)
        for (int ranks = 1; ranks <= 3; ranks += 2) {
            const char *const set[] = {"ema={decay: 0.8}", strategies[s], NULL};
            const co_train_options options = {.config_text = config, .ranks = 1, .quiet = true};
            char run_dir[256], path[320];
            co_train_summary summary = train(run_dir, ranks, set);
            co_eval_summary averaged, trained;

            snprintf(path, sizeof(path), "%s/final.safetensors", run_dir);
            assert_int_equal(co_evaluate(&averaged, &options, path), CO_OK);
            assert_true(fabs(averaged.loss - summary.test_loss) < 1e-6);
            snprintf(path, sizeof(path), "%s/trained.safetensors", run_dir);
            assert_int_equal(co_evaluate(&trained, &options, path), CO_OK);
            assert_true(fabs(trained.loss - averaged.loss) > 1e-4);
        }
}

/* The average does not affect training. */
static void ema_on_or_off_trains_same_weights(void **state)
{
    static const char *const strategies[] = {"strategy=sync", "strategy=threads"};
    static weights with, without;

    (void)state;
    for (size_t s = 0; s < sizeof(strategies) / sizeof(strategies[0]); s++) {
        const char *const plain[] = {strategies[s], NULL};
        const char *const averaged[] = {strategies[s], "ema={}", NULL};
        char run_dir[256];

        train(run_dir, 2, plain);
        load_from(&without, run_dir, "final.safetensors");
        train(run_dir, 2, averaged);
        load_from(&with, run_dir, "trained.safetensors");
        assert_int_equal(with.n, without.n);
        assert_memory_equal(with.v, without.v, with.n * sizeof(float));
    }
}

static void ema_with_different_replicas_is_refused(void **state)
{
    static const char *const strategies[] = {"local", "one-shot", "hogwild", "ssp",
                                             "{name: stale, racy: true}"};

    (void)state;
    for (size_t s = 0; s < sizeof(strategies) / sizeof(strategies[0]); s++) {
        char strategy[64];
        const char *const set[] = {strategy, "ema={}", NULL};
        const co_train_options options = {
            .config_text = config, .set = set, .ranks = 2, .quiet = true};

        snprintf(strategy, sizeof(strategy), "strategy=%s", strategies[s]);
        assert_int_equal(co_train(NULL, &options), CO_E_USAGE);
        assert_non_null(strstr(co_error_message(), "ema: each rank steps by itself"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ema_of_weights_equals_formula),
        cmocka_unit_test(ema_saved_weights_are_those_measured),
        cmocka_unit_test(ema_on_or_off_trains_same_weights),
        cmocka_unit_test(ema_with_different_replicas_is_refused),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
