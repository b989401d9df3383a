/*
 * test_shared.c - strategies whose ranks share memory: properties of whole runs, and that a rank
 * that fails, dies or hangs ends the run.
 */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <cohort.h>

#include "core/clock.h"
#include "folder.h"
#include "waits.h"

/* 97 samples in batches of 24: the last batch has 1, so some ranks have none. */
static const char config[] =
    "model: {name: mlp, hidden: [20]}\n"
    "data: {name: synthetic, shape: [1, 12, 12], classes: 10, samples: 97, normalize: {mean: 0.5, "
    "std: 0.2}}\n"
    "batch: 24\n"
    "threads: 1\n"
    "backend: ref\n"; /* a thread sanitizer does not see oneDNN's locks */

static const char sgd[] = "optimizer={name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 0.001}";
static const char adam[] = "optimizer={name: adam, lr: 0.002}";

static int runs;

static co_status train_for(co_train_summary *out, int ranks, const char *strategy, const char *more,
                           const char *epochs)
{
    const char *const set[] = {strategy, more, epochs, NULL};
    char run_dir[256];
    const co_train_options options = {
        .config_text = config, .set = set, .ranks = ranks, .run_dir = run_dir, .quiet = true};

    snprintf(run_dir, sizeof(run_dir), "%s/%d", folder, runs++);
    return co_train(out, &options);
}

static co_status train(co_train_summary *out, int ranks, const char *strategy, const char *more)
{
    return train_for(out, ranks, strategy, more, "epochs=20");
}

/* A few steps are enough to compare runs. */
static co_status train_little(co_train_summary *out, int ranks, const char *strategy,
                              const char *more)
{
    return train_for(out, ranks, strategy, more, "epochs=4");
}

static void assert_same_bytes(int ranks, const char *strategy, const char *more)
{
    co_train_summary got, want;

    if (train_little(&want, ranks, "strategy=sync", more) != CO_OK)
        fail_msg("sync: %s", co_error_message());
    if (train_little(&got, ranks, strategy, more) != CO_OK)
        fail_msg("%s, %d ranks: %s", strategy, ranks, co_error_message());
    assert_string_equal(got.weights_sha256, want.weights_sha256);
    assert_true(got.train_loss == want.train_loss);
    /* NaN without evaluation */
    assert_true(got.test_loss == want.test_loss || (isnan(got.test_loss) && isnan(want.test_loss)));
}

/* The arithmetic for each weight does not depend on the rank. */
static void sync_update_parts_equals_whole(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 3; ranks++)
        assert_same_bytes(ranks, "strategy={name: sync, update: parts, bucket_mib: 0.001}", adam);
    assert_same_bytes(2, "strategy={name: sync, update: parts}", sgd);
    assert_same_bytes(3, "strategy={name: sync, update: parts}", "clip={norm: 0.5}");
    assert_same_bytes(2, "strategy={name: sync, update: parts}", "clip={value: 0.01}");
    assert_same_bytes(3, "strategy={name: sync, update: parts}", "ema={decay: 0.9}");
    assert_same_bytes(2, "strategy={name: sync, update: parts}", "shards=4");
    assert_int_equal(train(NULL, 2, "strategy={name: sync, update: parts}", "optimizer=lars"),
                     CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "update: whole"));
}

static void sync_update_zero_equals_whole(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 4; ranks++)
        assert_same_bytes(ranks, "strategy={name: sync, update: zero, bucket_mib: 0.001}", adam);
    assert_same_bytes(3, "strategy={name: sync, update: zero}", "clip={norm: 0.5}");
    assert_same_bytes(3, "strategy={name: sync, update: zero}", "ema={decay: 0.9}");
    assert_same_bytes(2, "strategy={name: sync, update: zero}", "shards=4");
    assert_same_bytes(3, "strategy={name: sync, update: zero, bucket_mib: 0.001}",
                      "model.hidden=[200]"); /* several buckets */
    assert_same_bytes(3, "strategy={name: sync, update: zero}", "precision=O2");
    assert_int_equal(train(NULL, 2, "strategy={name: sync, update: zero}", "optimizer=lars"),
                     CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "update: whole"));
}

/* A limit on the norm that is never reached delays every update until the whole gradient is
   known. */
static void sync_early_updates_equal_late_ones(void **state)
{
    static const char *const optimizers[] = {sgd, adam};

    (void)state;
    for (int ranks = 1; ranks <= 3; ranks++)
        for (int i = 0; i < 2; i++) {
            co_train_summary early, late;

            if (train_little(&early, ranks, "strategy={name: sync, bucket_mib: 0.001}",
                             optimizers[i]) != CO_OK ||
                train_little(&late, ranks, "clip={norm: 1e9}", optimizers[i]) != CO_OK)
                fail_msg("%d ranks: %s", ranks, co_error_message());
            assert_string_equal(early.weights_sha256, late.weights_sha256);
        }
}

static void threads_on_any_ranks_equal_sync(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 4; ranks++) {
        assert_same_bytes(ranks, "strategy=threads", sgd);
        assert_same_bytes(ranks, "strategy={name: threads, bucket_mib: 0.001}", adam);
    }
    assert_same_bytes(3, "strategy=threads", "clip={norm: 0.5}");
    assert_same_bytes(3, "strategy=threads", "evaluate=false");
}

/* Running statistics are per thread, and their mean is evaluated. */
static void threads_equal_sync_with_batch_norm(void **state)
{
    static const char *const sets[2][6] = {
        {"strategy=sync", "model=~",
         ("layers=[conv2d: {name: conv, out: 4, kernel: 3}, batchnorm: {name: norm}, relu, "
          "flatten, "
          "linear: {name: out, out: 10}]"),
         "epochs=3", NULL},
        {"strategy=threads", "model=~",
         ("layers=[conv2d: {name: conv, out: 4, kernel: 3}, batchnorm: {name: norm}, relu, "
          "flatten, "
          "linear: {name: out, out: 10}]"),
         "epochs=3", NULL},
    };
    co_train_summary summary[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        char run_dir[256];
        const co_train_options options = {
            .config_text = config, .set = sets[i], .ranks = 3, .run_dir = run_dir, .quiet = true};

        snprintf(run_dir, sizeof(run_dir), "%s/%d", folder, runs++);
        if (co_train(&summary[i], &options) != CO_OK)
            fail_msg("%s", co_error_message());
    }
    assert_string_equal(summary[0].weights_sha256, summary[1].weights_sha256);
    assert_true(summary[0].test_loss == summary[1].test_loss);
}

static void hogwild_of_one_rank_equals_sync(void **state)
{
    (void)state;
    assert_same_bytes(1, "strategy=hogwild", sgd);
    assert_same_bytes(1, "strategy=hogwild", adam);
}

static void assert_near(double got, double want)
{
    if (fabs(got - want) > 1e-4 * fabs(want))
        fail_msg("%.9g, not %.9g", got, want);
}

/* The order of addition varies, so there is rounding. */
static void ssp_bound_0_has_losses_of_sync(void **state)
{
    static const char *const optimizers[] = {"optimizer={name: sgd, lr: 0.05}", sgd};

    (void)state;
    for (int ranks = 1; ranks <= 4; ranks++)
        for (int i = 0; i < 2; i++) {
            co_train_summary got = {.train_loss = 0}, want = {.train_loss = 0};

            if (train(&want, ranks, "strategy=sync", optimizers[i]) != CO_OK ||
                train(&got, ranks, "strategy={name: ssp, bound: 0}", optimizers[i]) != CO_OK)
                fail_msg("%d ranks: %s", ranks, co_error_message());
            assert_near(got.train_loss, want.train_loss);
            assert_near(got.test_loss, want.test_loss);
        }
}

/* Every read is counted once, by its staleness. */
static void assert_staleness(const char *run_dir, uint64_t reads)
{
    char path[1100], word[64];
    unsigned long long count[4], sum = 0;
    FILE *file;

    snprintf(path, sizeof(path), "%s/summary.json", run_dir);
    file = fopen(path, "re");
    assert_non_null(file);
    do
        assert_int_equal(fscanf(file, "%63s", word), 1);
    while (strcmp(word, "\"staleness\":") != 0);
    assert_int_equal(
        fscanf(file, " [ %llu , %llu , %llu , %llu ]", &count[0], &count[1], &count[2], &count[3]),
        4);
    fclose(file);
    for (int i = 0; i < 4; i++)
        sum += count[i];
    assert_int_equal(sum, reads);
}

static void ssp_on_ranks_lowers_loss_and_counts_staleness(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 4; ranks++) {
        co_train_summary summary;

        if (train(&summary, ranks, "strategy={name: ssp, bound: 3}",
                  "optimizer={name: sgd, lr: 0.05, momentum: 0.5}") != CO_OK)
            fail_msg("%d ranks: %s", ranks, co_error_message());
        assert_true(summary.train_loss < 1.0);
        assert_staleness(summary.run_dir, summary.steps * (uint64_t)ranks);
    }
}

static void ssp_negative_bound_is_refused(void **state)
{
    (void)state;
    assert_int_equal(train(NULL, 2, "strategy={name: ssp, bound: -1}", "epochs=1"), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "bound"));
    assert_non_null(strstr(co_error_message(), "from 0"));
}

static void hogwild_on_ranks_lowers_loss(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 4; ranks++) {
        co_train_summary summary;

        if (train(&summary, ranks, "strategy=hogwild", "optimizer={name: sgd, lr: 0.05}") != CO_OK)
            fail_msg("%d ranks: %s", ranks, co_error_message());
        assert_true(summary.train_loss < 1.0); /* ln 10 = 2.3 at the start */
    }
}

/* ---- ranks that end or hang ---- */

static const char *const strategies[] = {"hogwild", "threads", "{name: ssp, bound: 2}"};

typedef struct fate {
    const char *strategy;
    void (*deed)(void); /* of rank 1 in its 20th step; NULL: it returns an error */
} fate;

/* The public training loop, for ever. */
static co_status loop(co_comm *world, co_dataset *data, co_sampler *sampler, const fate *f)
{
    co_loader *loader = NULL;
    co_model *model = NULL;
    co_distributed *optimizer = NULL;
    co_status st;

    CO_TRY(co_loader_create(
        &loader,
        &(co_loader_options){.dataset = data, .sampler = sampler, .rank = co_comm_rank(world)}));
    st = co_model_create(&model, &(co_model_options){.model = "{name: mlp, hidden: [20]}",
                                                     .backend = "ref",
                                                     .sample = *co_dataset_shape(data),
                                                     .classes = 10});
    if (st == CO_OK)
        st = co_distributed_create(
            &optimizer,
            &(co_distributed_options){.model = model, .comm = world, .strategy = f->strategy});
    for (int step = 0; st == CO_OK; step++) {
        co_batch batch;
        co_result result;

        if (step == 20 && co_comm_rank(world) == 1 && f->deed)
            f->deed();
        if (step == 20 && co_comm_rank(world) == 1)
            st = co_fail(CO_E_DATA, "sample 7 is damaged");
        if (st == CO_OK)
            st = co_loader_next(&batch, loader);
        if (st == CO_OK)
            st = co_model_forward(&result, model, &batch);
        if (st == CO_OK)
            st = co_distributed_backward(optimizer, &batch, false);
        if (st == CO_OK)
            st = co_distributed_step(optimizer);
        if (step % 50 == 49 && st == CO_OK) /* as at the end of an epoch */
            st = co_comm_barrier(world);
    }
    co_distributed_destroy(optimizer);
    co_model_destroy(model);
    co_loader_destroy(loader);
    return st;
}

static co_status rank_loops(co_comm *world, void *arg)
{
    co_dataset *data = NULL;
    co_sampler *sampler = NULL;
    co_status st;

    CO_TRY(co_dataset_open(&data, "{name: synthetic, samples: 100, shape: [1, 12, 12]}",
                           CO_SPLIT_TRAIN));
    st = co_sampler_create(
        &sampler, &(co_sampler_options){.count = 100, .batch = 24, .ranks = co_comm_size(world)});
    if (st == CO_OK)
        st = loop(world, data, sampler, arg);
    co_sampler_destroy(sampler);
    co_dataset_destroy(data);
    return st;
}

static void be_killed(void)
{
    raise(SIGKILL);
}

static void stand_still(void)
{
    for (;;)
        pause();
}

static void check_fate(void (*deed)(void), co_status status, const char *text)
{
    for (size_t i = 0; i < sizeof(strategies) / sizeof(strategies[0]); i++) {
        fate f = {.strategy = strategies[i], .deed = deed};
        const co_launch_options options = {.ranks = 3,
                                           .timeout_ms =
                                               deed == stand_still ? WAITS_SHORT_MS : 2 * WAITS_MS,
                                           .fork_one = true,
                                           .threads = strcmp(strategies[i], "threads") == 0};
        const uint64_t start = co_clock_ns();

        assert_int_equal(co_launch(&options, rank_loops, &f), status);
        if (!strstr(co_error_message(), text))
            fail_msg("%s: no \"%s\" in: %s", strategies[i], text, co_error_message());
        assert_true(co_clock_seconds(start, co_clock_ns()) < WAITS_S);
    }
}

static void shared_weights_failed_rank_ends_run(void **state)
{
    (void)state;
    check_fate(NULL, CO_E_DATA, "sample 7 is damaged");
}

static void shared_weights_killed_rank_ends_run(void **state)
{
    (void)state;
    check_fate(be_killed, CO_E_PEER, "killed by signal 9");
}

static void shared_weights_hanging_rank_ends_run(void **state)
{
    (void)state;
    check_fate(stand_still, CO_E_TIMEOUT, "waiting");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sync_update_parts_equals_whole),
        cmocka_unit_test(sync_update_zero_equals_whole),
        cmocka_unit_test(sync_early_updates_equal_late_ones),
        cmocka_unit_test(threads_on_any_ranks_equal_sync),
        cmocka_unit_test(threads_equal_sync_with_batch_norm),
        cmocka_unit_test(hogwild_of_one_rank_equals_sync),
        cmocka_unit_test(hogwild_on_ranks_lowers_loss),
        cmocka_unit_test(ssp_bound_0_has_losses_of_sync),
        cmocka_unit_test(ssp_on_ranks_lowers_loss_and_counts_staleness),
        cmocka_unit_test(ssp_negative_bound_is_refused),
        cmocka_unit_test(shared_weights_failed_rank_ends_run),
        cmocka_unit_test(shared_weights_killed_rank_ends_run),
        cmocka_unit_test(shared_weights_hanging_rank_ends_run),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
