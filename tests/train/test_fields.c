/*
 * test_fields.c - training on values and on binary labels, from arrays in a safetensors file: both
 * converge, any number of ranks gives the same bits, and accuracy is reported only where it is
 * defined.
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
#include "shell.h"
#include "state/checkpoint.h"

#define TRAIN    600
#define TEST     200
#define FEATURES 6
#define OUTPUTS  3

static const char config[] = "model: {name: mlp, hidden: [24]}\n"
                             "data: {name: arrays, path: %s/data.safetensors}\n"
                             "loss: %s\n"
                             "optimizer: {name: adam, lr: 0.02}\n"
                             "batch: 24\n"
                             "epochs: 12\n"
                             "shards: 4\n"
                             "threads: 1\n";

static float draw(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return (float)(*state >> 8) * (2.0f / 16777216.0f) - 1.0f;
}

/* A product, a sum and a square; with `binary`, whether each exceeds a bound. */
static void make_sample(float *x, float *y, uint32_t *state, bool binary)
{
    for (int k = 0; k < FEATURES; k++)
        x[k] = draw(state);
    y[0] = 2 * x[0] * x[1] + x[2];
    y[1] = x[3] - x[4] + 0.5f * x[5];
    y[2] = x[0] + x[5] * x[5];
    for (int k = 0; k < OUTPUTS && binary; k++)
        y[k] = y[k] > 0.2f ? 1.0f : 0.0f;
}

static void make_data(bool binary)
{
    static float x[TRAIN + TEST][FEATURES], y[TRAIN + TEST][OUTPUTS];
    const co_named_tensor tensors[] = {
        {"train.input", CO_F32, {2, {TRAIN, FEATURES}}, x, TRAIN * sizeof(x[0])},
        {"train.target", CO_F32, {2, {TRAIN, OUTPUTS}}, y, TRAIN * sizeof(y[0])},
        {"test.input", CO_F32, {2, {TEST, FEATURES}}, x[TRAIN], TEST * sizeof(x[0])},
        {"test.target", CO_F32, {2, {TEST, OUTPUTS}}, y[TRAIN], TEST * sizeof(y[0])},
    };
    uint32_t state = 1;

    for (int i = 0; i < TRAIN + TEST; i++)
        make_sample(x[i], y[i], &state, binary);
    assert_int_equal(co_safetensors_write(folder_path("data.safetensors"), tensors, 4, NULL),
                     CO_OK);
}

static co_status train(co_train_summary *out, const char *loss, int ranks, const char *set)
{
    const char *const sets[] = {set, NULL};
    char text[1024], run_dir[64];

    snprintf(text, sizeof(text), config, folder, loss);
    snprintf(run_dir, sizeof(run_dir), "%s/run", folder);
    assert_int_equal(shell_run("rm -rf %s", run_dir), 0);
    return co_train(out, &(co_train_options){.config_text = text,
                                             .set = set ? sets : NULL,
                                             .ranks = ranks,
                                             .run_dir = run_dir,
                                             .quiet = true});
}

static void assert_trained(co_train_summary *out, const char *loss, int ranks, const char *set)
{
    if (train(out, loss, ranks, set) != CO_OK)
        fail_msg("%s: %s", loss, co_error_message());
}

static void fields_regression_trains_like_one_rank(void **state)
{
    co_train_summary one, two;

    (void)state;
    make_data(false);
    assert_trained(&one, "mse_loss", 1, NULL);
    assert_true(one.test_loss < 0.05);
    assert_true(isnan(one.test_accuracy) && isnan(one.train_accuracy));
    assert_trained(&two, "mse_loss", 2, NULL);
    assert_string_equal(one.weights_sha256, two.weights_sha256);
    assert_true(one.test_loss == two.test_loss && one.train_loss == two.train_loss);
}

static void fields_regression_has_no_confusion(void **state)
{
    co_confusion confusion = {.count = NULL};
    co_train_summary trained;
    co_eval_summary eval;
    char text[1024];
    const co_train_options options = {.config_text = text, .ranks = 1, .quiet = true};

    (void)state;
    make_data(false);
    assert_trained(&trained, "mse_loss", 1, NULL);
    snprintf(text, sizeof(text), config, folder, "mse_loss");
    assert_int_equal(
        co_evaluate_classes(&eval, &confusion, &options, folder_path("run/final.safetensors")),
        CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "classify"));
    assert_null(confusion.count);
}

static void fields_multi_label_trains_like_one_rank(void **state)
{
    co_train_summary one, two;

    (void)state;
    make_data(true);
    assert_trained(&one, "bce_with_logits_loss", 1, NULL);
    assert_true(one.test_accuracy > 0.7); /* all three outputs right */
    assert_trained(&two, "bce_with_logits_loss", 2, NULL);
    assert_string_equal(one.weights_sha256, two.weights_sha256);
    assert_true(one.test_loss == two.test_loss && one.test_accuracy == two.test_accuracy);
}

static void fields_stop_at_loss_ends_run(void **state)
{
    co_train_summary out;

    (void)state;
    make_data(false);
    assert_trained(&out, "mse_loss", 2, "stop_at={loss: 0.15}");
    assert_true(out.test_loss <= 0.15);
    assert_true(out.steps < 12 * TRAIN / 24);
    assert_trained(&out, "mse_loss", 1, "stop_at={patience: 5}");
}

/* The last value of a key in metrics.jsonl. */
static double last_number(const char *key)
{
    char line[4096], name[64];
    double value = (double)NAN;
    FILE *in = fopen(folder_path("run/metrics.jsonl"), "r");

    assert_non_null(in);
    snprintf(name, sizeof(name), "\"%s\":", key);
    while (fgets(line, sizeof(line), in)) {
        const char *at = strstr(line, name);

        if (at)
            value = strtod(at + strlen(name), NULL);
    }
    fclose(in);
    return value;
}

/* The metrics of one network are the same on any number of ranks, with or without shards, with any
   batch size. */
static void metrics_of_any_split_are_the_same(void **state)
{
    static const char *const sizes[] = {"batch=24", "batch=7", "batch=200"};
    const char *set[] = {NULL, "shards=auto", NULL};
    co_train_summary trained;
    char text[1024];

    (void)state;
    make_data(false);
    assert_trained(&trained, "mse_loss", 1, "metrics=[rmse, r2]");
    snprintf(text, sizeof(text), config, folder, "mse_loss\nmetrics: [rmse, r2]");
    assert_int_equal(trained.n_metric, 2);
    assert_string_equal(trained.metric[1].name, "r2");
    assert_true(trained.metric[1].value > 0.8);
    assert_true(fabs(trained.metric[0].value * trained.metric[0].value - trained.test_loss) < 1e-6);
    for (int i = 0; i < 9; i++) {
        const co_train_options options = {
            .config_text = text, .set = set, .ranks = i / 3 + 1, .quiet = true};
        co_eval_summary eval;

        set[0] = sizes[i % 3];
        if (co_evaluate(&eval, &options, folder_path("run/final.safetensors")) != CO_OK)
            fail_msg("%s", co_error_message());
        assert_int_equal(eval.n_metric, 2);
        /* kernels may round a sample differently in a batch of another size */
        for (int k = 0; k < 2; k++)
            assert_true(fabs(eval.metric[k].value - trained.metric[k].value) < 1e-6);
    }
}

/* With shards on any number of ranks, and when a run is stopped within an epoch and resumed on
   another number. */
static void metrics_of_a_resumed_run_are_the_same(void **state)
{
    static const char *const names[] = {"train_rmse", "test_rmse", "train_r2", "test_r2"};
    static const char *const more[] = {"metrics=[rmse, r2]", "epochs=3", NULL};
    co_train_summary out;
    double whole[4];
    char text[1024], run_dir[64];
    const co_train_options resume = {.config_text = text,
                                     .set = more,
                                     .ranks = 3,
                                     .run_dir = run_dir,
                                     .resume = true,
                                     .quiet = true};

    (void)state;
    make_data(false);
    snprintf(run_dir, sizeof(run_dir), "%s/run", folder);
    for (int ranks = 1; ranks <= 2; ranks++) {
        assert_trained(&out, "mse_loss\nmetrics: [rmse, r2]", ranks, "epochs=3");
        for (int i = 0; i < 4; i++) {
            const double value = last_number(names[i]);

            assert_true(ranks == 1 || value == whole[i]);
            whole[i] = value;
        }
    }
    assert_trained(&out, "mse_loss\nmetrics: [rmse, r2]\ncheckpoint: 30 steps", 2, "max_steps=60");
    snprintf(text, sizeof(text), config, folder, "mse_loss");
    if (co_train(&out, &resume) != CO_OK)
        fail_msg("%s", co_error_message());
    for (int i = 0; i < 4; i++)
        assert_true(last_number(names[i]) == whole[i]);
}

static void stop_at_any_metric_ends_run(void **state)
{
    static const char *const loss = "mse_loss\nmetrics: [mae, r2]";
    co_train_summary out;

    (void)state;
    make_data(false);
    assert_trained(&out, loss, 2, "stop_at={r2: 0.8}");
    assert_true(out.metric[1].value >= 0.8 && out.steps < 12 * TRAIN / 24);
    assert_trained(&out, loss, 1, "stop_at={mae: 0.3, r2: 0.99}");
    assert_true(out.metric[0].value <= 0.3 && out.steps < 12 * TRAIN / 24);
}

/* The best of a run without an accuracy is found by another metric. */
static void checkpoint_best_by_any_metric_is_kept(void **state)
{
    static const struct {
        const char *loss, *key;
        double sign;
    } cases[] = {
        {"mse_loss\nmetrics: [mae, r2]\ncheckpoint: {keep: 1}", "test_loss", 1},
        {"mse_loss\nmetrics: [mae, r2]\ncheckpoint: {keep: 1, best: mae}", "test_mae", 1},
        {"mse_loss\nmetrics: [mae, r2]\ncheckpoint: {keep: 1, best: r2}", "test_r2", -1},
    };

    (void)state;
    make_data(false);
    for (size_t c = 0; c < 3; c++) {
        char found[CO_CHECKPOINT_MAX_PATH], want[64], name[32], line[4096];
        double best = INFINITY;
        long long step = 0;
        co_train_summary out;
        FILE *in;

        assert_trained(&out, cases[c].loss, 1, "optimizer.lr=0.2");
        in = fopen(folder_path("run/metrics.jsonl"), "r");
        assert_non_null(in);
        snprintf(name, sizeof(name), "\"%s\":", cases[c].key);
        while (fgets(line, sizeof(line), in)) {
            const char *at = strstr(line, name);
            const double value = at ? cases[c].sign * strtod(at + strlen(name), NULL) : INFINITY;

            if (!strstr(line, "\"epoch\",") || !(value < best))
                continue;
            best = value;
            step = atoll(strstr(line, "\"step\":") + 7);
        }
        fclose(in);
        assert_int_equal(co_checkpoint_find(found, folder_path("run"), "best"), CO_OK);
        snprintf(want, sizeof(want), "step-%lld", step);
        if (!strstr(found, want) || strstr(found, want)[strlen(want)] != '\0')
            fail_msg("%s: %s is not %s", cases[c].key, found, want);
    }
}

static void assert_refused(const char *loss, const char *set, const char *message)
{
    assert_int_equal(train(NULL, loss, 1, set), CO_E_USAGE);
    if (!strstr(co_error_message(), message))
        fail_msg("'%s' is not in: %s", message, co_error_message());
}

static void fields_mismatched_loss_is_refused(void **state)
{
    (void)state;
    make_data(false);
    assert_refused("cross_entropy", NULL, "the samples have no field 'label'");
    assert_refused("mse_loss", "model.classes=4",
                   "samples of the field 'target' are (3) of f32; the network takes (4) of f32");
    assert_refused("mse_loss", "stop_at={accuracy: 0.5}", "has no accuracy");
    assert_refused("mse_loss", "stop_at={r2: 0.5}",
                   "r2 is not measured; name it in `metrics: [r2]`");
    assert_refused("mse_loss", "checkpoint={best: accuracy}", "such a network has no accuracy");
    assert_refused("mse_loss", "metrics=f1_macro", "not defined for a network that learns values");
    assert_refused("mse_loss", "metrics=[r2, nothing]", "unknown metric 'nothing'");
    assert_refused("mse_loss", "data={name: synthetic, shape: [1, 4, 4]}",
                   "the samples have no field 'target'");
    assert_refused("mse_loss", "partition={kind: labels, labels: [[0], [1], [2], [3]]}",
                   "have no label");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_regression_trains_like_one_rank),
        cmocka_unit_test(fields_regression_has_no_confusion),
        cmocka_unit_test(fields_multi_label_trains_like_one_rank),
        cmocka_unit_test(metrics_of_any_split_are_the_same),
        cmocka_unit_test(metrics_of_a_resumed_run_are_the_same),
        cmocka_unit_test(fields_stop_at_loss_ends_run),
        cmocka_unit_test(stop_at_any_metric_ends_run),
        cmocka_unit_test(checkpoint_best_by_any_metric_is_kept),
        cmocka_unit_test(fields_mismatched_loss_is_refused),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
