/*
 * test_no_step.c - a run in which no step moves the weights fails; means over nothing are null in
 * files and a dash on the console.
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
#include "telemetry/format.h"

/* Inputs of 10^6 and more overflow in half precision, and so does every loss. */
static const char config[] =
    "model: {name: mlp, hidden: [16]}\n"
    "data: {name: synthetic, shape: [1, 8, 8], classes: 10, samples: 96, test_samples: 32,\n"
    "       normalize: {mean: 0, std: 0.000001}}\n"
    "precision: {level: O2, loss_scale: %s}\n"
    "optimizer: {name: sgd, lr: 0.1}\n"
    "batch: 32\n"
    "epochs: 2\n"
    "threads: 1\n"
    "tensorboard: true\n";

static char *read_file(const char *name)
{
    FILE *in = fopen(folder_path(name), "rb");
    char *text = calloc(1, 1 << 16);

    assert_non_null(in);
    assert_non_null(text);
    (void)fread(text, 1, (1 << 16) - 1, in);
    fclose(in);
    return text;
}

static void assert_in_file(const char *name, const char *words)
{
    char *text = read_file(name);

    if (!strstr(text, words))
        fail_msg("'%s' is not in %s: %s", words, name, text);
    free(text);
}

static co_status train(co_train_summary *out, const char *name, const char *scale, int ranks,
                       const char *const *set, bool resume)
{
    char text[1024];
    co_train_options options = {.config_text = text, .set = set, .ranks = ranks, .quiet = true};

    snprintf(text, sizeof(text), config, scale);
    options.run_dir = folder_path(name);
    options.resume = resume;
    return co_train(out, &options);
}

/* With each strategy that supports a loss scale, on one rank and on two. */
static void train_without_any_step_fails(void **state)
{
    static const char *const sets[][3] = {
        {"strategy=sync"}, {"strategy=one-shot"}, {"strategy=local"}, {"shards=4"}};

    (void)state;
    for (int k = 0; k < 8; k++) {
        char name[16], file[64];
        co_train_summary summary;

        snprintf(name, sizeof(name), "none%d", k);
        assert_int_equal(train(&summary, name, "dynamic", 1 + k % 2, sets[k / 2], false),
                         CO_E_FAILED);
        if (!strstr(co_error_message(), "no step has moved the weights: the gradients overflowed "
                                        "in all 6"))
            fail_msg("%s: %s", sets[k / 2][0], co_error_message());
        snprintf(file, sizeof(file), "%s/summary.json", name);
        assert_int_not_equal(access(folder_path(file), F_OK), 0);
        /* resuming it does not help either */
        assert_int_equal(train(&summary, name, "dynamic", 1 + k % 2, sets[k / 2], true),
                         CO_E_FAILED);
    }
}

/* Losses that are not finite are left out of the mean; here all of them. */
static void mean_loss_of_no_finite_step_is_null(void **state)
{
    static const char *const sets[][4] = {
        {"data.normalize.mean=-1000000", "model.hidden=[]"},
        {"data.normalize.mean=-1000000", "model.hidden=[]", "shards=4"}};

    (void)state;
    for (int k = 0; k < 2; k++) {
        char name[16], file[64];
        co_train_summary summary;

        snprintf(name, sizeof(name), "null%d", k);
        assert_int_equal(train(&summary, name, "dynamic", 2, sets[k], false), CO_E_FAILED);
        snprintf(file, sizeof(file), "%s/metrics.jsonl", name);
        assert_in_file(file, "\"train_loss\":null,\"train_accuracy\":null");
    }
}

/* Resuming a finished run succeeds; what was not evaluated is NaN. */
static void resume_of_finished_run_succeeds(void **state)
{
    static const char *const set[] = {"evaluate=false", "data.normalize.std=1", NULL};
    co_train_summary summary;

    (void)state;
    for (int again = 0; again < 2; again++) {
        if (train(&summary, "done", "128", 1, set, again) != CO_OK)
            fail_msg("%s", co_error_message());
        assert_int_equal(summary.steps, 6);
        assert_true(isfinite(summary.train_loss));
        assert_true(isnan(summary.test_loss) && isnan(summary.test_accuracy));
    }
}

/* 6 steps: the gradient of the first is used in the last, or never. */
static void delay_as_long_as_the_run_is_refused(void **state)
{
    static const char *const sets[][3] = {{"strategy={name: stale, k: 5}", "data.normalize.std=1"},
                                          {"strategy={name: stale, k: 6}", "data.normalize.std=1"}};
    co_train_summary summary;

    (void)state;
    if (train(&summary, "late5", "1", 2, sets[0], false) != CO_OK)
        fail_msg("%s", co_error_message());
    assert_int_equal(train(&summary, "late6", "1", 2, sets[1], false), CO_E_USAGE);
    if (!strstr(co_error_message(), "a gradient is used 6 steps after its own, and the run has 6"))
        fail_msg("%s", co_error_message());
}

static void format_not_finite_is_a_dash(void **state)
{
    char text[16];

    (void)state;
    assert_string_equal(co_format_real(text, sizeof(text), (double)NAN, 3), "-");
    assert_string_equal(co_format_real(text, sizeof(text), (double)INFINITY, 3), "-");
    assert_string_equal(co_format_real(text, sizeof(text), 0.5, 3), "0.500");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(train_without_any_step_fails),
        cmocka_unit_test(mean_loss_of_no_finite_step_is_null),
        cmocka_unit_test(resume_of_finished_run_succeeds),
        cmocka_unit_test(delay_as_long_as_the_run_is_refused),
        cmocka_unit_test(format_not_finite_is_a_dash),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
