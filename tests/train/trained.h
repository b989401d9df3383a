/* trained.h - whole runs in a test's folder, and how far their weights are apart. */
#ifndef TESTS_TRAIN_TRAINED_H
#define TESTS_TRAIN_TRAINED_H

#include <math.h>
#include <stdio.h>

#include <cohort.h>

#include "folder.h"

#define TRAINED_MAX_SET 8

typedef struct trained {
    co_train_summary summary;
    char weights[320]; /* path */
} trained;

/* Train a config with `strategy` and `set`, which ends with NULL; NULL: none. */
static inline trained trained_run(const char *config, int ranks, const char *strategy,
                                  const char *const *set)
{
    static int runs;
    const char *all[TRAINED_MAX_SET] = {strategy};
    char run_dir[256];
    const co_train_options options = {
        .config_text = config, .set = all, .ranks = ranks, .run_dir = run_dir, .quiet = true};
    trained t;

    for (int i = 0; set && set[i]; i++)
        all[i + 1] = set[i];
    snprintf(run_dir, sizeof(run_dir), "%s/%d", folder, runs++);
    if (co_train(&t.summary, &options) != CO_OK)
        fail_msg("%.40s, %s, %d ranks: %s", config, strategy, ranks, co_error_message());
    snprintf(t.weights, sizeof(t.weights), "%s/final.safetensors", run_dir);
    return t;
}

/* Maximum difference of any two weights. */
static inline double trained_distance(const trained *a, const trained *b)
{
    co_safetensors *x = NULL, *y = NULL;
    double worst = 0;

    assert_int_equal(co_safetensors_open(&x, a->weights), CO_OK);
    assert_int_equal(co_safetensors_open(&y, b->weights), CO_OK);
    assert_true(co_safetensors_count(x) > 0);
    for (size_t i = 0; i < co_safetensors_count(x); i++) {
        const co_named_tensor *s = co_safetensors_tensor(x, i), *t = co_safetensors_tensor(y, i);
        const float *u = s->data, *v = t->data;

        for (size_t e = 0; e < s->bytes / sizeof(float); e++)
            worst = fmax(worst, fabs((double)u[e] - (double)v[e]));
    }
    co_safetensors_close(y);
    co_safetensors_close(x);
    return worst;
}

#endif
