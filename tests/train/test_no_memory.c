/*
 * test_no_memory.c - if any allocation of a run fails, the run ends with an error about memory: no
 * crash, no hang, no leak (under the address sanitizer), no other rank left behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cohort.h>

#include "core/mem.h"

#include "emulated.h"
#include "shell.h"

/* Under qemu, which keeps notes on all pages that ranks ever shared, every so many fail. */
#define EMULATED_STEP 16

/* Every so many allocations fail; with the argument `all` each does. */
static uint64_t apart = 2;

static const char config[] = "layers:\n"
                             "- conv2d: {name: conv1, out: 3, kernel: 3}\n"
                             "- batchnorm\n"
                             "- maxpool: 2\n"
                             "- relu\n"
                             "- flatten\n"
                             "- dropout: 0.2\n"
                             "- linear: {name: fc1, out: 10}\n"
                             "data: {name: synthetic, shape: [1, 8, 8], classes: 10, samples: 20}\n"
                             "batch: 8\n"
                             "epochs: 2\n"
                             "max_steps: 3\n"
                             "optimizer: {name: adam, lr: 0.05}\n"
                             "schedule: cosine\n"
                             "checkpoint: {every: 2 steps, on_error: stop}\n"
                             "threads: 1\n";

/* Remove the files that a run may leave, each of them complete. With several ranks also an
   unfinished checkpoint, since a rank that outlives its peer is ended at any point. */
static void remove_run(const char *run_dir, int ranks)
{
    static const char *const files[] = {"config.yaml", "data.json", "metrics.jsonl",
                                        "final.safetensors", "summary.json"};
    char path[300];

    /* incomplete checkpoints would remain, and rmdir fail */
    assert_int_equal(shell_run("rm -rf %s/checkpoints/step-* %s/.lock", run_dir, run_dir), 0);
    if (ranks > 1)
        assert_int_equal(shell_run("rm -rf %s/checkpoints/.new-step-*", run_dir), 0);
    snprintf(path, sizeof(path), "%s/checkpoints", run_dir);
    rmdir(path);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", run_dir, files[i]);
        unlink(path);
    }
    if (access(run_dir, F_OK) == 0 && rmdir(run_dir) != 0)
        fail_msg("%s holds more than it should", run_dir);
}

/* The k-th allocation of each rank fails; the run succeeds if it makes fewer. */
static co_status train_without(uint64_t k, int ranks, const char *strategy, const char *run_dir)
{
    const char *const set[] = {strategy, NULL};
    const co_train_options options = {
        .config_text = config, .set = set, .ranks = ranks, .run_dir = run_dir, .quiet = true};
    co_status st;

    co_mem_fail_at(k);
    st = co_train(NULL, &options);
    co_mem_fail_at(0);
    return st;
}

static void runs_end_with_an_error(int ranks, const char *strategy)
{
    char folder[] = "/tmp/cohort-no-memory-XXXXXX", run_dir[64];
    co_status st = CO_E_NOMEM;
    const uint64_t step = is_emulated() ? EMULATED_STEP : apart;
    uint64_t k;

    assert_non_null(mkdtemp(folder));
    snprintf(run_dir, sizeof(run_dir), "%s/run", folder);
    for (k = 1; st != CO_OK && k < 5000; k += step) {
        st = train_without(k, ranks, strategy, run_dir);
        /* a failed fsync reports the system's error text */
        if (st != CO_OK && st != CO_E_NOMEM && !strstr(co_error_message(), "allocate memory"))
            fail_msg("allocation %d failed: status %d, %s", (int)k, (int)st, co_error_message());
        remove_run(run_dir, ranks);
    }
    assert_int_equal(st, CO_OK);
    assert_true(k > 100);
    assert_int_equal(rmdir(folder), 0);
}

static void train_failed_allocation_on_one_rank_is_an_error(void **state)
{
    (void)state;
    runs_end_with_an_error(1, "strategy=sync");
}

static void train_failed_allocation_on_two_ranks_is_an_error(void **state)
{
    (void)state;
    runs_end_with_an_error(2, "strategy=sync");
}

static void train_failed_allocation_with_shards_is_an_error(void **state)
{
    (void)state;
    runs_end_with_an_error(2, "shards=5");
}

/* With sums in flight, and with an average, when a rank fails. */
static void train_failed_allocation_of_strategy_is_an_error(void **state)
{
    (void)state;
    runs_end_with_an_error(2, "strategy={name: stale, k: 2}");
    runs_end_with_an_error(2, "strategy={name: local, period: 2, outer: {momentum: 0.5}}");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(train_failed_allocation_on_one_rank_is_an_error),
        cmocka_unit_test(train_failed_allocation_on_two_ranks_is_an_error),
        cmocka_unit_test(train_failed_allocation_with_shards_is_an_error),
        cmocka_unit_test(train_failed_allocation_of_strategy_is_an_error),
    };

    if (argc > 1 && strcmp(argv[1], "all") == 0)
        apart = 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
