/*
 * test_callback.c - a program's callbacks: after each step, where it may stop the run, and for log
 * lines.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <cohort.h>

#include "folder.h"

/* 40 samples in batches of 10: 4 steps per epoch. */
static const char config[] =
    "layers: [flatten, {linear: 16}, relu, {linear: 4}]\n"
    "data: {name: synthetic, shape: [1, 8, 8], classes: 4, samples: 40}\n"
    "batch: 10\nepochs: 3\nevaluate_every: 3\noptimizer: {name: adam, lr: 0.01}\nthreads: 1\n";

/* Shared by all ranks. */
typedef struct calls {
    atomic_int n[2], lines;
    uint64_t stop_at; /* 0: never */
    bool wrong;
} calls;

static calls *shared;

static int share(void **state)
{
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? -1 : folder_make(state);
}

static int reset(void **state)
{
    (void)state;
    memset(shared, 0, sizeof(*shared));
    return 0;
}

/* Only rank 1 asks to stop. */
static bool on_step(void *arg, const co_step_info *info)
{
    calls *c = arg;
    const int n = ++c->n[info->rank];
    co_parameter first;

    if (info->size != sizeof(*info) || !(info->loss > 0) || !(info->lr > 0) || info->ranks != 2 ||
        info->epoch != (info->step - 1) / 4 || !co_model_parameter(&first, info->model, 0) ||
        (uint64_t)n > info->step)
        c->wrong = true;
    return info->rank == 1 && info->step == c->stop_at;
}

static void train(co_train_summary *out, const char *name, bool resume, const char *strategy)
{
    const char *const set[] = {strategy, NULL};
    const co_train_options options = {.config_text = config,
                                      .set = set,
                                      .ranks = 2,
                                      .run_dir = folder_path(name),
                                      .quiet = true,
                                      .resume = resume,
                                      .on_step = on_step,
                                      .on_step_arg = shared};

    if (co_train(out, &options) != CO_OK)
        fail_msg("%s", co_error_message());
}

static bool file_has(const char *path, const char *text)
{
    static char all[1 << 16];
    FILE *file = fopen(folder_path(path), "r");
    size_t n = file ? fread(all, 1, sizeof(all) - 1, file) : 0;

    if (file)
        fclose(file);
    all[n] = '\0';
    return strstr(all, text) != NULL;
}

static void callback_that_never_stops_sees_every_step(void **state)
{
    co_train_summary summary;

    (void)state;
    train(&summary, "whole", false, "strategy=sync");
    assert_int_equal(summary.steps, 12);
    assert_int_equal(shared->n[0], 12);
    assert_int_equal(shared->n[1], 12);
    assert_false(shared->wrong);
    assert_false(file_has("whole/summary.json", "stopped_by"));
}

/* Within an epoch and at its end, for strategies that synchronize in every step or rarely. */
static void callback_of_one_rank_stops_all_after_the_same_step(void **state)
{
    static const char *const strategies[] = {"strategy=sync", "strategy=local"};
    co_train_summary summary;
    char name[32], path[64];

    (void)state;
    for (int i = 0; i < 4; i++) {
        const int last = i % 2 ? 8 : 6;

        memset(shared, 0, sizeof(*shared));
        shared->stop_at = (uint64_t)last;
        snprintf(name, sizeof(name), "stopped-%d", i);
        train(&summary, name, false, strategies[i / 2]);
        assert_int_equal(summary.steps, last);
        assert_int_equal(shared->n[0], last);
        assert_int_equal(shared->n[1], last);
        assert_true(summary.test_accuracy >= 0);
        snprintf(path, sizeof(path), "%s/summary.json", name);
        assert_true(file_has(path, "\"stopped_by\": \"callback\""));
        snprintf(path, sizeof(path), "%s/final.safetensors", name);
        assert_int_equal(access(folder_path(path), F_OK), 0);
    }
}

static void callback_stopped_run_continues_to_the_same_weights(void **state)
{
    co_train_summary straight, resumed;

    (void)state;
    train(&straight, "straight", false, "strategy=sync");
    shared->stop_at = 6;
    train(&resumed, "again", false, "strategy=sync");
    assert_int_equal(resumed.steps, 6);
    shared->stop_at = 0;
    memset(shared, 0, sizeof(*shared));
    train(&resumed, "again", true, "strategy=sync");
    assert_int_equal(resumed.steps, 12);
    assert_string_equal(resumed.weights_sha256, straight.weights_sha256);
}

static void on_line(void *arg, co_log_level level, int rank, const char *line)
{
    calls *c = arg;

    c->lines++;
    if (level > CO_LOG_INFO || rank > 1 || strchr(line, '\n') || strncmp(line, "cohort:", 7) == 0)
        c->wrong = true;
}

/* A resumed run, because it logs. */
static void log_taken_leaves_standard_streams_alone(void **state)
{
    const char *const half[] = {"max_steps=5", NULL};
    co_train_options options = {.config_text = config, .set = half, .ranks = 2};
    const int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    const int file = open(folder_path("printed"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    co_status first, second;
    struct stat info;

    (void)state;
    options.run_dir = folder_path("logged");
    fflush(stdout);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    co_log_to(on_line, shared);
    first = co_train(NULL, &options);
    options.set = NULL;
    options.resume = true;
    second = co_train(NULL, &options);
    co_log_to(NULL, NULL);
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    close(out);
    close(err);
    assert_int_equal(first, CO_OK);
    assert_int_equal(second, CO_OK);
    assert_int_equal(fstat(file, &info), 0);
    close(file);
    assert_int_equal(info.st_size, 0);
    assert_true(shared->lines > 0);
    assert_false(shared->wrong);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(callback_that_never_stops_sees_every_step, reset),
        cmocka_unit_test_setup(callback_of_one_rank_stops_all_after_the_same_step, reset),
        cmocka_unit_test_setup(callback_stopped_run_continues_to_the_same_weights, reset),
        cmocka_unit_test_setup(log_taken_leaves_standard_streams_alone, reset),
    };

    return cmocka_run_group_tests(tests, share, folder_remove);
}
