/*
 * test_share.c - if ranks have their own weights, the checkpoint of the last step holds the final
 * weights of the run: the mean by shares, with the outer step of an unfinished round, or rank 0's
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

#define STEPS "10"

static const char config[] =
    "layers: [{conv2d: {out: 4, kernel: 3}}, batchnorm, relu, flatten, {linear: {out: 10}}]\n"
    "data: {name: synthetic, shape: [1, 8, 8], classes: 10, samples: 400, test_samples: 60}\n"
    "optimizer: {name: sgd, lr: 0.1, momentum: 0.9}\n"
    "batch: 40\n"
    "epochs: 1\n"
    "threads: 1\n";

static co_safetensors *open_weights(const char *name)
{
    co_safetensors *file = NULL;

    if (co_safetensors_open(&file, folder_path(name)) != CO_OK)
        fail_msg("%s", co_error_message());
    return file;
}

/* Maximum difference of any element. */
static double distance(const char *run)
{
    char name[2][64];
    co_safetensors *made, *final;
    double most = 0;

    snprintf(name[0], sizeof(name[0]), "%s/checkpoints/step-" STEPS "/weights.safetensors", run);
    snprintf(name[1], sizeof(name[1]), "%s/final.safetensors", run);
    made = open_weights(name[0]);
    final = open_weights(name[1]);
    for (size_t i = 0; i < co_safetensors_count(final); i++) {
        const co_named_tensor *b = co_safetensors_tensor(final, i);
        const co_named_tensor *a = co_safetensors_find(made, b->name);
        const float *x, *y = b->data;

        assert_non_null(a);
        x = a->data;
        for (size_t e = 0; e < b->bytes / sizeof(float); e++)
            most = fmax(most, fabs((double)x[e] - (double)y[e]));
    }
    co_safetensors_close(made);
    co_safetensors_close(final);
    return most;
}

static void checkpoint_at_end_equals_final_weights(void **state)
{
    static const struct {
        int ranks;
        const char *strategy, *partition;
    } cases[] = {
        {2, "strategy=one-shot", "partition={kind: random, ratios: [0.8, 0.2]}"},
        {3, "strategy=one-shot", "partition={kind: random, ratios: [0.7, 0.3, 0]}"},
        {2, "strategy={name: local, period: 1000}", "partition={kind: random, ratios: [0.8, 0.2]}"},
        {2, "strategy={name: local, period: 4, outer: {momentum: 0.6}}",
         "partition={kind: random, ratios: [0.8, 0.2]}"},
        {2, "strategy={name: local, period: 4, outer: {momentum: 0.6, lr: 0.7, nesterov: true}}",
         "partition={kind: random, ratios: [0.8, 0.2]}"},
        {2, "strategy={name: local, period: 5, outer: {momentum: 0.6}}",
         "partition={kind: random, ratios: [0.8, 0.2]}"},
        {2, "strategy={name: stale, racy: true}", "partition=global"},
    };

    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        const char *const set[] = {cases[c].strategy, cases[c].partition, NULL};
        char name[16];
        co_train_options options = {
            .config_text = config, .set = set, .ranks = cases[c].ranks, .quiet = true};
        double most;

        snprintf(name, sizeof(name), "run%zu", c);
        options.run_dir = folder_path(name);
        if (co_train(NULL, &options) != CO_OK)
            fail_msg("%s: %s", cases[c].strategy, co_error_message());
        most = distance(name);
        print_message("%d ranks, %s: %.2g\n", cases[c].ranks, cases[c].strategy, most);
        assert_true(most <= 2e-6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoint_at_end_equals_final_weights),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
