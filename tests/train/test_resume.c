/*
 * test_resume.c - resuming runs from their checkpoints; damaged checkpoints and changed configs are
 * found before anything is written.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <cohort.h>

#include "folder.h"
#include "shell.h"

#define MAX_SET 8

/* 37 samples in batches of 12: 4 steps per epoch, the last one short. */
static const char config[] =
    "model: {name: mnist-net, batch_norm: true}\n"
    "data: {name: synthetic, shape: [1, 28, 28], classes: 10, samples: 37}\n"
    "batch: 12\n"
    "epochs: 4\n"
    "optimizer: {name: adam, lr: 0.01}\n"
    "checkpoint: {every: 3 steps, keep: 2}\n"
    "log_every: 1\n"
    "threads: 1\n";

static co_status train(co_train_summary *out, const char *name, int ranks, bool resume,
                       const char *const *set)
{
    const co_train_options options = {.config_text = config,
                                      .set = set,
                                      .ranks = ranks,
                                      .run_dir = folder_path(name),
                                      .quiet = true,
                                      .resume = resume};

    return co_train(out, &options);
}

static void trains(co_train_summary *out, const char *name, int ranks, bool resume,
                   const char *const *set)
{
    if (train(out, name, ranks, resume, set) != CO_OK)
        fail_msg("%s: %s", name, co_error_message());
}

static bool there(const char *path)
{
    return access(folder_path(path), F_OK) == 0;
}

static void shell(const char *format, const char *argument)
{
    if (shell_run(format, argument) != 0)
        fail_msg("%s, with %s", format, argument);
}

/* A run stopped after 5 steps, within an epoch, and after 9, gives the bits of an uninterrupted
   one. */
static void check_same_bits(int ranks, const char *extra)
{
    const char *set[MAX_SET] = {extra, NULL}, *cut[MAX_SET] = {extra, "max_steps=5", NULL};
    co_train_summary whole, part;

    trains(&whole, "whole", ranks, false, set);
    assert_int_equal(whole.steps, 16);
    trains(&part, "parts", ranks, true, cut);
    assert_int_equal(part.steps, 5);
    assert_true(there("parts/checkpoints/step-5/manifest.json"));
    cut[1] = "max_steps=9";
    trains(&part, "parts", ranks, true, cut);
    assert_int_equal(part.steps, 9);
    trains(&part, "parts", ranks, true, set);
    assert_int_equal(part.steps, 16);
    assert_string_equal(part.weights_sha256, whole.weights_sha256);
    assert_true(part.train_loss == whole.train_loss);
    assert_true(part.test_loss == whole.test_loss);
    shell("rm -rf %s/*", folder);
}

static void resume_on_same_ranks_gives_same_bits(void **state)
{
    (void)state;
    check_same_bits(1, "strategy=sync");
    check_same_bits(2, "strategy=sync");
    check_same_bits(2, "ema={every: 2}");
    check_same_bits(2, "optimizer={name: sgd, lr: 0.05, momentum: 0.9}");
    check_same_bits(2, "strategy={name: local, period: 3}");
    check_same_bits(2, "strategy={name: stale, k: 2}");
    check_same_bits(2, "strategy=one-shot");
    check_same_bits(2, "strategy=threads");
    check_same_bits(2, "strategy={name: sync, update: parts}");
    check_same_bits(3, "strategy={name: sync, update: zero}");
    check_same_bits(2, "schedule={name: step, every: 2, gamma: 0.5}");
    check_same_bits(2, "strategy={name: sync, compress: topk}");
    check_same_bits(3, "strategy={name: sync, compress: bf16}");
    check_same_bits(3, "strategy={name: sync, compress: {name: powersgd, start: 6}}");
    check_same_bits(2, "strategy={name: sync, compress: {name: powersgd, warm_start: false}}");
}

/* With shards, on any number of ranks. */
static void resume_with_shards_on_other_ranks_gives_same_bits(void **state)
{
    const char *const set[] = {"shards=4", NULL}, *const cut[] = {"shards=4", "max_steps=5", NULL};
    co_train_summary whole, part;

    (void)state;
    trains(&whole, "whole", 2, false, set);
    trains(&part, "parts", 3, false, cut);
    trains(&part, "parts", 1, true, set);
    assert_string_equal(part.weights_sha256, whole.weights_sha256);
}

/* Losses before the cut count once, on whatever ranks the run continues. */
static void resume_on_other_ranks_gives_same_losses(void **state)
{
    const char *const set[] = {"shards=4", "max_steps=8", NULL};
    const char *const cut[] = {"shards=4", "max_steps=5", NULL};
    co_train_summary whole, part;
    double apart;

    (void)state;
    trains(&whole, "whole", 2, false, set);
    trains(&part, "parts", 2, false, cut);
    trains(&part, "parts", 3, true, set);
    apart = part.train_loss - whole.train_loss;
    assert_true(apart < 1e-9 && apart > -1e-9);
    assert_true(part.train_accuracy == whole.train_accuracy);
}

static int events(const char *kind)
{
    FILE *file = fopen(folder_path("run/metrics.jsonl"), "r");
    char line[4096], want[64];
    int n = 0;

    assert_non_null(file);
    snprintf(want, sizeof(want), "\"event\":\"%s\"", kind);
    while (fgets(line, sizeof(line), file))
        n += strstr(line, want) != NULL;
    fclose(file);
    return n;
}

static void resume_writes_no_event_twice(void **state)
{
    const char *const cut[] = {"max_steps=9", NULL};

    (void)state;
    trains(NULL, "run", 2, false, cut);
    assert_int_equal(events("step"), 9);
    assert_int_equal(events("epoch"), 3);
    /* Remove the last one, so that the run continues after step 8. */
    shell("rm -r %s/run/checkpoints/step-9", folder);
    trains(NULL, "run", 2, true, NULL);
    assert_int_equal(events("start"), 1);
    assert_int_equal(events("resume"), 1);
    assert_int_equal(events("step"), 16);
    assert_int_equal(events("epoch"), 4);
    assert_int_equal(events("end"), 1);
}

static double figure(const char *line, const char *name)
{
    const char *at = strstr(line, name);

    assert_non_null(at);
    return strtod(at + strlen(name), NULL);
}

/* Earlier parts of a run are included, so no total decreases, and the parts add up to it. */
static void resume_times_and_bytes_add_up(void **state)
{
    static const char *const names[] = {
        "\"train_seconds\":", "\"compute_seconds\":", "\"sync_seconds\":", "\"data_wait_seconds\":",
        "\"bytes_sent\":"};
    const char *const cut[] = {"max_steps=9", NULL};
    double seen[5] = {0}, sum;
    co_train_summary summary;
    char line[4096];
    int resumes = 0, n = 0;
    FILE *file;

    (void)state;
    trains(&summary, "run", 2, false, cut);
    trains(&summary, "run", 2, true, NULL);
    file = fopen(folder_path("run/metrics.jsonl"), "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        resumes += strstr(line, "\"event\":\"resume\"") != NULL;
        if (!strstr(line, names[1]))
            continue;
        for (int i = 0; i < 5; i++) {
            const double now = figure(line, names[i]);

            if (now < seen[i])
                fail_msg("%s falls from %g to %g: %s", names[i], seen[i], now, line);
            seen[i] = now;
        }
        sum = seen[1] + seen[2] + seen[3];
        /* after the last step the strategy runs for a moment longer */
        assert_true(sum > 0 && (sum < 1.01 * seen[0] || strstr(line, "\"end\"")));
        n++;
    }
    fclose(file);
    assert_int_equal(resumes, 1);
    assert_true(n >= 5);
}

static void retention_keeps_latest_and_best(void **state)
{
    int n = 0;

    (void)state;
    trains(NULL, "run", 1, false, NULL);
    assert_true(there("run/checkpoints/step-16"));
    assert_true(there("run/checkpoints/step-15"));
    for (int step = 0; step <= 16; step++) {
        char path[64];

        snprintf(path, sizeof(path), "run/checkpoints/step-%d", step);
        n += there(path);
    }
    assert_int_in_range(n, 2, 3);
    shell("test -z \"$(ls -A %s/run/checkpoints | grep '^[.]')\"", folder);
}

/* Of equals the first is the best, so the best is not the latest. */
static void retention_keeps_best_however_old(void **state)
{
    const char *const set[] = {"epochs=12", "checkpoint={every: 1 epoch, keep: 1}", NULL};
    double best = -1;
    int steps = 0, first = 0;
    char line[4096], path[64];
    FILE *file;

    (void)state;
    trains(NULL, "run", 1, false, set);
    file = fopen(folder_path("run/metrics.jsonl"), "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file))
        if (strstr(line, "\"event\":\"epoch\"")) {
            const double accuracy = figure(line, "\"test_accuracy\":");

            steps += 4;
            first = accuracy > best ? steps : first;
            best = accuracy > best ? accuracy : best;
        }
    fclose(file);
    assert_int_in_range(first, 4, 40);
    for (int step = 4; step <= 48; step += 4) {
        snprintf(path, sizeof(path), "run/checkpoints/step-%d", step);
        assert_int_equal(there(path), step == first || step == 48);
    }
}

/* As good as any, by the figures that the run reports. */
static void retention_counts_end_within_epoch(void **state)
{
    const char *const set[] = {"max_steps=6", "checkpoint={every: 1 epoch, best: loss}", NULL};
    co_train_summary summary;

    (void)state;
    trains(&summary, "run", 2, false, set);
    shell("grep -q '\"best_by\": \"loss\"' %s/run/checkpoints/step-6/manifest.json", folder);
    shell("! grep -q '\"best_value\": null' %s/run/checkpoints/step-6/manifest.json", folder);
}

static void resume_of_complete_run_changes_nothing(void **state)
{
    co_train_summary first, again;
    struct stat before, after;

    (void)state;
    trains(&first, "run", 1, false, NULL);
    assert_int_equal(stat(folder_path("run/final.safetensors"), &before), 0);
    trains(&again, "run", 1, true, NULL);
    assert_int_equal(stat(folder_path("run/final.safetensors"), &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(again.steps, first.steps);
    assert_true(again.test_accuracy == first.test_accuracy);
}

static void fails(co_status want, const char *message, bool resume, const char *extra)
{
    const char *const set[] = {extra, NULL};

    assert_int_equal(train(NULL, "run", 1, resume, set), want);
    if (!strstr(co_error_message(), message))
        fail_msg("'%s' is not in '%s'", message, co_error_message());
}

/* A hash of the run directory's contents. */
static void fingerprint(char out[64])
{
    assert_int_equal(shell_read(out, 64,
                                "cd %s/run && find . -type f ! -name .lock | sort | "
                                "xargs sha256sum | sha256sum | cut -c 1-60",
                                folder),
                     0);
}

static void resume_with_changed_config_is_refused(void **state)
{
    static const struct {
        const char *set, *message;
        co_status status;
    } cases[] = {
        {"seed=7", "seed: 1234 -> 7", CO_E_USAGE},
        {"optimizer=sgd", "optimizer: {name: adam, lr: 0.01} -> sgd", CO_E_USAGE},
        {"strategy=local", "strategy: ~ -> local", CO_E_USAGE},
        {"data.samples=38", "data: ", CO_E_USAGE},
        {"ema={decay: 0.9}", "ema: ~ -> ", CO_E_USAGE},
        {"shards=2", "shards: ", CO_E_USAGE},
        {"batch=6", "12 samples a step", CO_E_USAGE},
        {"model=lenet5", "model: {name: mnist-net, batch_norm: true} -> lenet5", CO_E_USAGE},
        {"model.batch_norm=false", "-> {name: mnist-net, batch_norm: false}", CO_E_USAGE},
    };
    const char *const cut[] = {"max_steps=6", NULL};
    const char *const allowed[] = {"optimizer={lr: 0.02, name: adam}", "model.name=mnist-net",
                                   "max_steps=7", NULL};
    char before[64], after[64];

    (void)state;
    trains(NULL, "run", 1, false, cut);
    fingerprint(before);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fails(cases[i].status, cases[i].message, true, cases[i].set);
        fingerprint(after);
        if (strcmp(before, after) != 0)
            fail_msg("%s has changed the run directory", cases[i].set);
    }
    fails(CO_E_USAGE, "holds an earlier run", false, "max_steps=6");
    trains(NULL, "run", 1, true, allowed);
}

/* If the latest checkpoint is damaged, the one before it is used, with the same result. */
static void resume_after_damage_takes_checkpoint_before(void **state)
{
    static const char *const damage[] = {
        "cd %s/run/checkpoints/step-6 && printf x | dd of=weights.safetensors bs=1 seek=3000 "
        "conv=notrunc 2>/dev/null",
        "cd %s/run/checkpoints/step-6 && truncate -s -1 state.safetensors",
        "cd %s/run/checkpoints/step-6 && rm state.safetensors",
        "cd %s/run/checkpoints/step-6 && truncate -s 100 manifest.json",
        "cd %s/run/checkpoints/step-6 && rm manifest.json",
        "cd %s/run/checkpoints/step-6 && sed -i 's/\"epoch_step\": 2/\"epoch_step\": 3/' "
        "manifest.json",
        "cd %s/run/checkpoints/step-6 && sed -i 's#\"weights.saf#\"../../weights.saf#' "
        "manifest.json",
        "cd %s/run/checkpoints && rm -r step-6 && mkdir step-6",
    };
    const char *const cut[] = {"max_steps=6", NULL};
    co_train_summary whole, part;

    (void)state;
    trains(&whole, "whole", 1, false, NULL);
    for (size_t i = 0; i < sizeof(damage) / sizeof(damage[0]); i++) {
        trains(NULL, "run", 1, false, cut);
        shell(damage[i], folder);
        trains(&part, "run", 1, true, NULL);
        assert_string_equal(part.weights_sha256, whole.weights_sha256);
        shell("rm -rf %s/run", folder);
    }
}

/* Damaged checkpoints do not count towards `keep`, so an older intact one is kept. */
static void retention_damaged_checkpoint_is_not_counted(void **state)
{
    static const char every[] = "checkpoint={every: 1 steps, keep: 3, best: false}";
    static const char fewer[] = "checkpoint={every: 5 steps, keep: 2, best: false}";
    const char *const cut[] = {"max_steps=9", every, NULL};
    const char *const on[] = {"max_steps=10", fewer, NULL};

    (void)state;
    trains(NULL, "run", 1, false, cut);
    assert_true(there("run/checkpoints/step-9") && there("run/checkpoints/step-7"));
    shell("truncate -s 100 %s/run/checkpoints/step-9/manifest.json", folder);
    trains(NULL, "run", 1, true, on);
    assert_true(there("run/checkpoints/step-10") && there("run/checkpoints/step-8"));
    assert_false(there("run/checkpoints/step-7"));
}

static void resume_without_valid_checkpoint_is_an_error(void **state)
{
    const char *const cut[] = {"max_steps=6", NULL};
    char before[64], after[64];

    (void)state;
    trains(NULL, "run", 1, false, cut);
    shell("sed -i 's/\"version\": 1/\"version\": 2/' %s/run/checkpoints/step-6/manifest.json",
          folder);
    fingerprint(before);
    fails(CO_E_DATA, "has format version 2, and this program reads up to 1", true, "epochs=4");
    shell("for f in %s/run/checkpoints/*/weights.safetensors; do printf x >> $f; done", folder);
    shell("sed -i 's/\"version\": 2/\"version\": 1/' %s/run/checkpoints/step-6/manifest.json",
          folder);
    fails(CO_E_DATA, "no valid checkpoint among 2", true, "epochs=4");
    shell("rm -r %s/run/checkpoints", folder);
    fingerprint(after);
    assert_string_not_equal(before, after);
    fails(CO_E_USAGE, "holds a finished run without checkpoints", true, "epochs=4");
}

static void resume_of_locked_run_is_refused(void **state)
{
    int lock;

    (void)state;
    assert_int_equal(mkdir(folder_path("run"), 0777), 0);
    lock = open(folder_path("run/.lock"), O_RDWR | O_CREAT, 0666);
    assert_int_equal(flock(lock, LOCK_EX), 0);
    assert_int_equal(write(lock, "4711\n", 5), 5);
    fails(CO_E_USAGE, "another job is running in this run directory (process 4711)", true,
          "epochs=4");
    fails(CO_E_USAGE, "another job is running", false, "epochs=4");
    assert_false(there("run/config.yaml"));
    close(lock);
    trains(NULL, "run", 1, false, NULL);
}

/* Put files where checkpoint folders would be created, so that none can be written, in the run
   directory of a run that ended before its first checkpoint. */
static void put_in_the_way(void)
{
    FILE *lock;

    assert_int_equal(mkdir(folder_path("run"), 0777), 0);
    assert_int_equal(mkdir(folder_path("run/checkpoints"), 0777), 0);
    lock = fopen(folder_path("run/.lock"), "w");
    assert_non_null(lock);
    fprintf(lock, "%10d cohort\n", 1);
    assert_int_equal(fclose(lock), 0);
    for (int step = 1; step <= 16;
         step++) { /* a folder within is not a checkpoint's, and is not removed */
        char name[64];

        snprintf(name, sizeof(name), "run/checkpoints/.new-step-%d", step);
        assert_int_equal(mkdir(folder_path(name), 0777), 0);
        snprintf(name, sizeof(name), "run/checkpoints/.new-step-%d/x", step);
        assert_int_equal(mkdir(folder_path(name), 0777), 0);
    }
}

static void checkpoint_failed_write_is_reported_at_end(void **state)
{
    (void)state;
    put_in_the_way();
    fails(CO_E_IO, "the run is complete, but 6 of its 6 checkpoints could not be written", true,
          "checkpoint.best=false");
    assert_true(there("run/final.safetensors"));
    assert_true(there("run/summary.json"));
}

static void checkpoint_failed_write_with_stop_ends_run(void **state)
{
    (void)state;
    put_in_the_way();
    fails(CO_E_IO, "no checkpoint: ", true, "checkpoint.on_error=stop");
    assert_false(there("run/summary.json"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(resume_on_same_ranks_gives_same_bits),
        TEST(resume_with_shards_on_other_ranks_gives_same_bits),
        TEST(resume_on_other_ranks_gives_same_losses),
        TEST(resume_writes_no_event_twice),
        TEST(resume_times_and_bytes_add_up),
        TEST(retention_keeps_latest_and_best),
        TEST(retention_keeps_best_however_old),
        TEST(retention_counts_end_within_epoch),
        TEST(resume_of_complete_run_changes_nothing),
        TEST(resume_with_changed_config_is_refused),
        TEST(resume_after_damage_takes_checkpoint_before),
        TEST(retention_damaged_checkpoint_is_not_counted),
        TEST(resume_without_valid_checkpoint_is_an_error),
        TEST(resume_of_locked_run_is_refused),
        TEST(checkpoint_failed_write_is_reported_at_end),
        TEST(checkpoint_failed_write_with_stop_ends_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
