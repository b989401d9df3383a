/*
 * test_sync_batch_norm.c - with sync_batch_norm, N ranks equal one rank with the whole batch, in
 * weights (and so gradients) and running statistics, for any partition.
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

/* A step uses all samples, so it is the same for any partition. The convolutions are chosen so that
   several backends run some of the layers; batch norm follows images as well as rows. */
static const char config[] =
    "layers:\n"
    "- conv2d: {out: 5, kernel: 3, bias: false, name: conv1}\n"
    "- batchnorm: {name: bn1}\n"
    "- relu\n"
    "- conv2d: {out: 32, kernel: 3, stride: 2, padding: 1, bias: false, name: conv2}\n"
    "- batchnorm: {momentum: 0.3, name: bn2}\n"
    "- residual:\n"
    "    body:\n"
    "      - conv2d: {out: 32, kernel: 3, padding: 1, groups: 2, name: conv3}\n"
    "      - batchnorm: {name: bn3}\n"
    "- relu\n"
    "- flatten\n"
    "- linear: {out: 12, name: fc1}\n"
    "- batchnorm: {name: bn4}\n"
    "- relu\n"
    "- linear: {out: 10, name: fc2}\n"
    "data: {name: synthetic, shape: [2, 9, 9], classes: 10, samples: 21, test_samples: 40}\n"
    "batch: 21\n"
    "epochs: 1\n"
    "optimizer: {name: sgd, lr: 0.5}\n"
    "sync_batch_norm: true\n"
    "threads: 1\n";

typedef struct trained {
    co_train_summary summary;
    char weights[320]; /* path */
} trained;

static trained train(int ranks, const char *const *set)
{
    static int runs;
    char run_dir[256];
    const co_train_options options = {
        .config_text = config, .set = set, .ranks = ranks, .run_dir = run_dir, .quiet = true};
    trained t;

    snprintf(run_dir, sizeof(run_dir), "%s/%d", folder, runs++);
    if (co_train(&t.summary, &options) != CO_OK)
        fail_msg("%d ranks: %s", ranks, co_error_message());
    snprintf(t.weights, sizeof(t.weights), "%s/final.safetensors", run_dir);
    return t;
}

/* Maximum difference of a tensor, relative to its maximum. `only`: of this one; NULL: of any. */
static double distance_of(const char *only, const trained *a, const trained *b)
{
    co_safetensors *x = NULL, *y = NULL;
    double worst = 0;

    assert_int_equal(co_safetensors_open(&x, a->weights), CO_OK);
    assert_int_equal(co_safetensors_open(&y, b->weights), CO_OK);
    for (size_t i = 0; i < co_safetensors_count(x); i++) {
        const co_named_tensor *s = co_safetensors_tensor(x, i), *t = co_safetensors_tensor(y, i);
        const float *u = s->data, *v = t->data;
        double size = 0, apart = 0;

        if (only && strcmp(s->name, only) != 0)
            continue;
        for (size_t e = 0; e < s->bytes / sizeof(float); e++) {
            size = fmax(size, fabs((double)u[e]));
            apart = fmax(apart, fabs((double)u[e] - (double)v[e]));
        }
        assert_true(isfinite(apart));
        worst = fmax(worst, size > 0 ? apart / size : apart);
    }
    co_safetensors_close(y);
    co_safetensors_close(x);
    return worst;
}

static double distance(const trained *a, const trained *b)
{
    return distance_of(NULL, a, b);
}

static const struct {
    int ranks;
    const char *partition;
} splits[] = {
    {2, "partition=global"},
    {3, "partition=global"},
    {2, "partition={kind: random, ratios: [0.9, 0.1]}"},
    {3, "partition={kind: random, ratios: [0.2, 0.7, 0.1]}"},
    {3, "partition={kind: random, ratios: [0.2, 0.75, 0.05]}"},
    {2, "partition={kind: contiguous, ratios: [1, 0]}"},
    {3, "partition={kind: random, ratios: [0, 0.6, 0.4]}"},
};

enum { SPLITS = sizeof(splits) / sizeof(splits[0]) };

static double median(const double x[3])
{
    return fmax(fmin(x[0], x[1]), fmin(fmax(x[0], x[1]), x[2]));
}

/* A bias of batch norm starts at 0, and with some seeds its gradient is a sum that cancels and has
   few digits left in fp32: hence the median of three seeds. */
static void sync_batch_norm_on_ranks_equals_one_rank(void **state)
{
    static const struct {
        const char *backend;
        double limit; /* with auto, one rank uses oneDNN, which sums in fp32 */
    } backends[] = {{"backend=ref", 5e-7}, {"backend=cpu", 1e-6}, {"backend=auto", 2e-6}};
    static const char *const seeds[3] = {"seed=1", "seed=2", "seed=3"};

    (void)state;
    for (size_t b = 0; b < sizeof(backends) / sizeof(backends[0]); b++) {
        double apart[SPLITS][3];

        for (int s = 0; s < 3; s++) {
            const char *const alone[] = {backends[b].backend, seeds[s], "evaluate=false", NULL};
            const trained one = train(1, alone);

            for (int c = 0; c < SPLITS; c++) {
                const char *const set[] = {backends[b].backend, seeds[s], splits[c].partition,
                                           "evaluate=false", NULL};
                const trained all = train(splits[c].ranks, set);

                apart[c][s] = distance(&one, &all);
            }
        }
        for (int c = 0; c < SPLITS; c++)
            if (median(apart[c]) > backends[b].limit)
                fail_msg("%s, %d ranks, %s: %.3g apart", backends[b].backend, splits[c].ranks,
                         splits[c].partition, median(apart[c]));
    }
}

/* In fp32, the squares of such numbers have no digits left for their differences. */
static void sync_batch_norm_large_mean_keeps_precision(void **state)
{
    static const char far[] = "data.normalize={mean: [-3000, -3000], std: [1, 1]}";
    static const char *const backends[] = {"backend=cpu", "backend=ref"};

    (void)state;
    for (int b = 0; b < 2; b++) {
        const char *const set[] = {backends[b], far, "data.shape=[2, 10, 10]", "evaluate=false",
                                   NULL};
        const trained one = train(1, set), two = train(2, set);
        const double apart = distance_of("bn1.running_var", &one, &two);

        if (apart > 1e-6)
            fail_msg("%s: %.3g apart", backends[b], apart);
    }
}

/* Ensures that the tests above are meaningful: without sums over ranks the results differ. */
static void batch_norm_per_rank_differs_from_one_rank(void **state)
{
    const char *const alone[] = {"sync_batch_norm=false", NULL};

    (void)state;
    for (size_t c = 0; c < 4; c++) {
        const char *const set[] = {"sync_batch_norm=false", splits[c].partition, NULL};
        const trained one = train(1, alone), all = train(splits[c].ranks, set);

        assert_true(distance(&one, &all) > 1e-3);
    }
}

/* A rank that has seen nothing adds no statistics. */
static void batch_norm_with_empty_rank_equals_one_rank(void **state)
{
    static const char *const strategies[] = {"strategy=sync", "strategy=threads", "strategy=ssp",
                                             "strategy=hogwild", "strategy=one-shot"};
    static const char *const ema[] = {"ema=~", "ema={}"};
    static const char all_to_one[] =
        "partition={kind: labels, labels: [[], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], []]}";
    static const char own[] = "sync_batch_norm=false";

    (void)state;
    for (size_t s = 0; s < sizeof(strategies) / sizeof(strategies[0]); s++)
        for (size_t e = 0; e < (s < 2 ? 2 : 1); e++) {
            const char *const set[] = {strategies[s], ema[e], "epochs=3", own, all_to_one, NULL};
            const char *const alone[] = {ema[e], "epochs=3", own, NULL};
            const trained one = train(1, alone), all = train(3, set);

            if (distance(&one, &all) > 1e-5)
                fail_msg("%s, %s: %.3g apart", strategies[s], ema[e], distance(&one, &all));
        }
}

/* If all ranks have equal weights, the strategy does not affect the statistics. */
static void sync_batch_norm_of_strategies_agrees(void **state)
{
    static const char *const strategies[] = {"strategy=threads",
                                             "strategy={name: sync, bucket_mib: 0.001}",
                                             "strategy={name: stale, k: 1}"};

    (void)state;
    for (size_t s = 0; s < sizeof(strategies) / sizeof(strategies[0]); s++) {
        const char *const alone[] = {strategies[s], "epochs=3", NULL};
        const trained one = train(1, alone);

        for (size_t c = 0; c < SPLITS; c++) {
            const char *const set[] = {strategies[s], "epochs=3", splits[c].partition, NULL};
            const trained all = train(splits[c].ranks, set);

            if (distance(&one, &all) > 1e-5)
                fail_msg("%s, %d ranks, %s: %.3g apart", strategies[s], splits[c].ranks,
                         splits[c].partition, distance(&one, &all));
            assert_true(fabs(one.summary.test_loss - all.summary.test_loss) < 1e-4);
        }
    }
}

/* Micro-batches without samples on some ranks, or on all. */
static void sync_batch_norm_with_empty_ranks_trains(void **state)
{
    static const char *const batches[] = {"batch=21", "batch=2"};

    (void)state;
    for (size_t b = 0; b < sizeof(batches) / sizeof(batches[0]); b++)
        for (int ranks = 2; ranks <= 3; ranks++) {
            const char *const set[] = {"accumulate=5", batches[b], "optimizer.lr=0.01", NULL};
            const trained all = train(ranks, set);

            assert_true(distance(&all, &all) == 0); /* finite */
        }
}

static void sync_batch_norm_with_different_replicas_is_refused(void **state)
{
    static const char *const strategies[] = {"local", "one-shot", "hogwild", "ssp",
                                             "{name: stale, racy: true}"};

    (void)state;
    for (size_t s = 0; s < sizeof(strategies) / sizeof(strategies[0]); s++) {
        char strategy[64];
        const char *const set[] = {strategy, NULL};
        const co_train_options options = {
            .config_text = config, .set = set, .ranks = 2, .quiet = true};

        snprintf(strategy, sizeof(strategy), "strategy=%s", strategies[s]);
        assert_int_equal(co_train(NULL, &options), CO_E_USAGE);
        assert_non_null(strstr(co_error_message(), "sync_batch_norm: each rank steps by itself"));
    }
}

/* bn4 follows rows, of which each rank then has one. */
static void batch_norm_of_a_single_value_is_refused(void **state)
{
    static const char *const batches[][3] = {
        {"sync_batch_norm=false", "batch=2", NULL},
        {"sync_batch_norm=false", "batch_per_rank=1", NULL},
        {"sync_batch_norm=false", "batch=4", "accumulate=2"},
        {"sync_batch_norm=false", "batch=21", "shards=20"},
        {"sync_batch_norm=false", "batch=20", "partition={kind: random, ratios: [0.97, 0.03]}"},
        {"batch=1", NULL, NULL}};

    (void)state;
    for (size_t i = 0; i < sizeof(batches) / sizeof(batches[0]); i++) {
        const char *const set[] = {batches[i][0], batches[i][1], batches[i][2], NULL};
        const co_train_options options = {
            .config_text = config, .set = set, .ranks = 2, .quiet = true};

        assert_int_equal(co_train(NULL, &options), CO_E_USAGE);
        assert_non_null(strstr(co_error_message(), "batch: layer 'bn4' takes its mean"));
    }
    train(2, (const char *const[]){"sync_batch_norm=false", "batch=4", NULL});
    train(2, (const char *const[]){"batch=2", "optimizer.lr=0.01", NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sync_batch_norm_on_ranks_equals_one_rank),
        cmocka_unit_test(sync_batch_norm_large_mean_keeps_precision),
        cmocka_unit_test(batch_norm_per_rank_differs_from_one_rank),
        cmocka_unit_test(batch_norm_with_empty_rank_equals_one_rank),
        cmocka_unit_test(sync_batch_norm_of_strategies_agrees),
        cmocka_unit_test(sync_batch_norm_with_empty_ranks_trains),
        cmocka_unit_test(sync_batch_norm_with_different_replicas_is_refused),
        cmocka_unit_test(batch_norm_of_a_single_value_is_refused),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
