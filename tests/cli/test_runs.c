/* test_runs.c - whole runs: files, output, exit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/fixtures.h"
#include "cli/program.h"

/* Long enough to be interrupted. */
#define RUNS_LONG FIXTURES_CONFIG "log_every: 1\n"

static double runs_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_number(value))
        fail_msg("'%s' is not a number", key);
    return json_number_value(value);
}

static const char *runs_text(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_string(value))
        fail_msg("'%s' is not a text", key);
    return json_string_value(value);
}

/* Train the small config on `ranks`; the run directory is "run<ranks>". */
static const program_result *runs_train(const char *ranks, const char *set)
{
    char dir[32];
    const char *args[] = {"train", "good.yaml", "-n", ranks, "--run-dir", dir, "--set", set, NULL};

    snprintf(dir, sizeof(dir), "run%s", ranks);
    program_remove(dir);
    if (!set)
        args[6] = NULL;
    return program_run(args, NULL);
}

static void train_writes_its_files_alone(void **state)
{
    static const char *const files[] = {"config.yaml",
                                        "metrics.jsonl",
                                        "data.json",
                                        "final.safetensors",
                                        "summary.json",
                                        "checkpoints/step-8/manifest.json",
                                        "checkpoints/step-16/manifest.json"};
    const program_result *r = runs_train("2", NULL);
    struct stat info;
    char path[64];

    (void)state;
    program_assert_success(r);
    assert_string_equal(r->err, "");
    assert_non_null(strstr(r->out, "epoch 2/2  loss "));
    assert_non_null(strstr(r->out, "\ndone: test accuracy "));
    assert_non_null(strstr(r->out, "results: run2 "));
    assert_null(strchr(r->out, '\r'));
    assert_int_equal(program_count_entries("run2"), 7); /* including .lock */
    assert_int_equal(program_count_entries("run2/checkpoints"), 2);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "run2/%s", files[i]);
        assert_int_equal(stat(path, &info), 0);
        assert_true(info.st_size > 0);
    }
}

static void summary_has_documented_fields(void **state)
{
    json_t *summary = program_summary("run2");

    (void)state;
    assert_int_equal(runs_number(summary, "ranks"), 2);
    assert_string_equal(runs_text(summary, "shards"), "auto");
    assert_string_equal(runs_text(summary, "strategy"), "sync");
    assert_string_equal(runs_text(summary, "model"), "mlp");
    assert_int_equal(runs_number(summary, "epochs"), 2);
    assert_int_equal(runs_number(summary, "steps"), 16);
    assert_int_equal(runs_number(summary, "parameter_count"), 64 * 16 + 16 + 16 * 4 + 4);
    assert_true(runs_number(summary, "wall_seconds") >= runs_number(summary, "train_seconds"));
    assert_true(runs_number(summary, "train_seconds") > 0);
    assert_true(runs_number(summary, "samples_per_second") > 0);
    assert_true(runs_number(summary, "bytes_sent") > 0);
    assert_true(runs_number(summary, "train_loss") < 1.4); /* ln 4 = 1.39 at the start */
    assert_true(runs_number(summary, "test_loss") < 1.4);
    assert_int_in_range(runs_number(summary, "train_accuracy") * 100, 50, 100);
    assert_int_in_range(runs_number(summary, "test_accuracy") * 100, 50, 100);
    assert_null(json_object_get(summary, "test_accuracy_top5")); /* 4 classes */
    assert_int_equal(strlen(runs_text(summary, "weights_sha256")), 64);
    json_decref(summary);
}

/* With five classes every answer is among the top 5. */
static void top5_is_reported_from_six_classes(void **state)
{
    json_t *summary;

    (void)state;
    program_write_text("top5.yaml", "model: {name: mlp, hidden: [8]}\nmax_steps: 1\n"
                                    "data: {name: synthetic, shape: [1, 4, 4], samples: 40}\n");
    program_assert_success(program_line("train top5.yaml -q -s data.classes=5 --run-dir five"));
    program_assert_success(program_line("train top5.yaml -q -s data.classes=6 --run-dir six"));
    summary = program_summary("five");
    assert_null(json_object_get(summary, "train_accuracy_top5"));
    json_decref(summary);
    summary = program_summary("six");
    assert_true(runs_number(summary, "train_accuracy_top5") <= 1);
    json_decref(summary);
}

static void metrics_lines_are_json(void **state)
{
    char *text = program_read("run2/metrics.jsonl"), *line, *rest = text;
    int starts = 0, epochs = 0, ends = 0;

    (void)state;
    assert_non_null(text);
    assert_int_equal(text[strlen(text) - 1], '\n');
    while ((line = strtok_r(rest, "\n", &rest))) {
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        const char *event;

        assert_true(json_is_object(object));
        event = runs_text(object, "event");
        starts += strcmp(event, "start") == 0;
        epochs += strcmp(event, "epoch") == 0;
        ends += strcmp(event, "end") == 0;
        if (strcmp(event, "epoch") == 0)
            assert_true(runs_number(object, "test_accuracy") <= 1);
        json_decref(object);
    }
    assert_int_equal(starts, 1);
    assert_int_equal(epochs, 2);
    assert_int_equal(ends, 1);
    free(text);
}

static json_t *runs_eval(const char *line)
{
    const program_result *r = program_line(line);
    json_t *object;

    program_assert_success(r);
    object = json_loads(r->out, 0, NULL);
    assert_true(json_is_object(object));
    return object;
}

/* Evaluation counts each sample once, so any number of ranks gives the result of training. */
static void eval_on_any_ranks_equals_training(void **state)
{
    static const char *const lines[] = {
        "eval run2 --json",
        "eval run2 --json -n 1",
        "eval run2 --json -n 3",
        "eval run2/final.safetensors --json",
        "eval run2/final.safetensors --config good.yaml --json",
    };
    json_t *summary = program_summary("run2");

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        json_t *found = runs_eval(lines[i]);

        assert_int_equal(runs_number(found, "test_samples"), 64);
        assert_true(runs_number(found, "test_accuracy") == runs_number(summary, "test_accuracy"));
        assert_true(fabs(runs_number(found, "test_loss") - runs_number(summary, "test_loss")) <
                    1e-6);
        json_decref(found);
    }
    json_decref(summary);
    assert_non_null(strstr(program_line("eval run2")->out, "accuracy       "));
}

/* Synchronous ranks make the steps of a single rank. */
static void train_on_any_ranks_has_same_result(void **state)
{
    json_t *one, *two;

    (void)state;
    program_assert_success(runs_train("1", NULL));
    one = program_summary("run1");
    two = program_summary("run2");
    assert_true(fabs(runs_number(one, "test_loss") - runs_number(two, "test_loss")) < 1e-4);
    assert_true(fabs(runs_number(one, "test_accuracy") - runs_number(two, "test_accuracy")) < 0.02);
    assert_int_equal(runs_number(one, "bytes_sent"), 0);
    json_decref(two);
    json_decref(one);
}

static void train_of_resolved_config_has_same_bytes(void **state)
{
    json_t *first = program_summary("run2"), *again;

    (void)state;
    program_remove("again");
    program_assert_success(program_line("train run2/config.yaml --run-dir again -q"));
    again = program_summary("again");
    assert_string_equal(runs_text(first, "weights_sha256"), runs_text(again, "weights_sha256"));
    assert_int_equal(runs_number(again, "ranks"), 2);
    json_decref(again);
    json_decref(first);
}

static void inspect_counts_weights_like_summary(void **state)
{
    json_t *summary = program_summary("run2");
    const program_result *r = program_line("inspect run2/final.safetensors");

    (void)state;
    program_assert_success(r);
    assert_non_null(strstr(r->out, runs_text(summary, "weights_sha256")));
    assert_non_null(strstr(r->out, "fc1.weight"));
    assert_non_null(strstr(r->out, "(16, 64)"));
    assert_non_null(strstr(r->out, "elements   1,108\n"));
    json_decref(summary);
}

static void inspect_config_shows_layers(void **state)
{
    const program_result *r = program_line("inspect good.yaml -n 2 --set batch=48");

    (void)state;
    program_assert_success(r);
    assert_non_null(strstr(r->out, "fc1 "));
    assert_non_null(strstr(r->out, "(16)"));
    assert_non_null(strstr(r->out, "1,108"));
    assert_non_null(strstr(r->out, "at 24 samples"));
    assert_non_null(strstr(r->out, "1 optimizer state"));
    program_assert_success(program_line("list kernels --config good.yaml --why"));
}

static void data_info_prints_counts(void **state)
{
    const program_result *r = program_line("data info good.yaml");

    (void)state;
    program_assert_success(r);
    assert_non_null(strstr(r->out, "samples          256\n"));
    assert_non_null(strstr(r->out, "shape            (1, 8, 8)\n"));
    assert_non_null(strstr(r->out, "classes          4\n"));
    r = program_line("data info '{name: synthetic, shape: [3, 4, 4], classes: 2, samples: 10}'");
    program_assert_success(r);
    assert_non_null(strstr(r->out, "    1                  5\n"));
}

static void train_quiet_prints_nothing(void **state)
{
    const program_result *r;

    (void)state;
    program_remove("quiet");
    r = program_line("train good.yaml -q --run-dir quiet");
    program_assert_success(r);
    assert_string_equal(r->out, "");
    assert_string_equal(r->err, "");
}

static void train_without_run_dir_writes_under_runs(void **state)
{
    const program_result *r;

    (void)state;
    program_remove("runs");
    r = program_line("train good.yaml --set max_steps=3");
    program_assert_success(r);
    assert_non_null(strstr(r->out, "results: runs/mlp-"));
    assert_int_equal(program_count_entries("runs"), 1);
}

static void bench_prints_json_lines(void **state)
{
    json_t *train = runs_eval("bench train good.yaml -n 2 --steps 3 --warmup 1 --rounds 2");
    char *line, *rest;
    int lines = 0;

    (void)state;
    assert_true(runs_number(train, "samples_per_second") > 0);
    assert_true(runs_number(train, "step_ms_min") <= runs_number(train, "step_ms_max"));
    assert_true(runs_number(train, "start_seconds") > 0);
    json_decref(train);
    rest = (char *)program_line("bench comm -n 2 --min-bytes 64 --max-bytes 128")->out;
    while ((line = strtok_r(rest, "\n", &rest))) {
        json_t *object = json_loads(line, 0, NULL);

        assert_true(json_is_object(object));
        assert_true(runs_number(object, "latency_us") > 0);
        json_decref(object);
        lines++;
    }
    assert_int_equal(lines, 2 * 9);
}

static void assert_stops(int signal, const char *ranks, int exit_code)
{
    const char *args[] = {"train", "long.yaml", "-n", ranks, "--run-dir", "stopped", NULL};
    const program_options options = {.signal = signal, .signal_at = "stopped/metrics.jsonl"};
    const program_result *r;

    program_remove("stopped");
    r = program_run(args, &options);
    assert_int_equal(r->exit_code, exit_code);
    assert_int_equal(r->orphans, 0);
    assert_false(program_exists("stopped/summary.json"));
    assert_false(program_exists("stopped/final.safetensors"));
}

/* A signal to the process that the user sees ends all of them. */
static void train_signal_ends_all_ranks(void **state)
{
    (void)state;
    program_write_text("long.yaml", RUNS_LONG);
    program_assert_success(program_line("train long.yaml --run-dir once --set max_steps=1"));
    program_write_text("long.yaml", "model: {name: mlp, hidden: [16]}\nepochs: 1000000\n"
                                    "data: {name: synthetic, shape: [1, 8, 8], classes: 4}\n"
                                    "log_every: 1\n");
    assert_stops(SIGINT, "2", 130);
    assert_stops(SIGTERM, "2", 143);
    assert_stops(SIGKILL, "2", 128 + SIGKILL);
    assert_stops(SIGINT, "1", 130);
    assert_stops(SIGTERM, "1", 143);
}

/* A rank is killed, or hangs: the others end, and the message names it. */
static void train_lost_rank_is_named(void **state)
{
    static const char *const args[] = {"train",   "long.yaml", "-n",        "2", "--run-dir",
                                       "stopped", "-s",        "timeout=5", NULL};
    program_options options = {
        .signal = SIGKILL, .signal_child = true, .signal_at = "stopped/metrics.jsonl"};

    (void)state;
    program_remove("stopped");
    program_assert_error(program_run(args, &options), 4, "rank 0 ");
    assert_false(program_exists("stopped/summary.json"));
    program_remove("stopped");
    options.signal = SIGSTOP;
    program_assert_error(program_run(args, &options), 4, "rank");
    assert_false(program_exists("stopped/summary.json"));
}

/* A progress bar that is redrawn in one line, and a line per epoch that stays. */
static void train_on_terminal_draws_bar(void **state)
{
    static const char *const args[] = {"train", "good.yaml",           "--run-dir", "bar",
                                       "-s",    "data.samples=600000", "-s",        "epochs=1",
                                       "-s",    "threads=1",           NULL};
    const program_options terminal = {.terminal = true};
    const program_result *r;

    (void)state;
    program_remove("bar");
    r = program_run(args, &terminal);
    program_assert_success(r);
    assert_non_null(strstr(r->out, "\r\033[Kepoch "));
    assert_non_null(strstr(r->out, "[##"));
    assert_non_null(strstr(r->out, " left\r\033[K"));
    assert_non_null(strstr(r->out, "epoch 1/1  loss "));
    assert_non_null(strstr(r->out, "results: bar "));
}

/* The same program as a rank of an MPI world gives the same bytes as over shared memory. */
static void train_over_mpi_has_same_bytes(void **state)
{
    static const char *const args[] = {"train", "good.yaml", "--run-dir", "mpi", NULL};
    const program_options options = {.before = {PROGRAM_MPIEXEC, "-n", "2"}};
    const program_result *r;
    json_t *shm, *mpi;

    (void)state;
    program_need_mpi();
    program_remove("mpi");
    r = program_run(args, &options);
    program_assert_success(r);
    assert_null(strstr(strstr(r->out, "results: ") + 1, "results: ")); /* only rank 0 prints */
    shm = program_summary("run2");
    mpi = program_summary("mpi");
    assert_string_equal(runs_text(mpi, "transport"), "mpi");
    assert_string_equal(runs_text(shm, "weights_sha256"), runs_text(mpi, "weights_sha256"));
    json_decref(mpi);
    json_decref(shm);
}

/* mpiexec's terminal is not the user's: no bar goes into a log. */
static void train_over_mpi_prints_plain_lines(void **state)
{
    static const char *const args[] = {"train", "good.yaml",           "--run-dir", "plain",
                                       "-s",    "data.samples=600000", "-s",        "epochs=1",
                                       "-s",    "threads=1",           NULL};
    const program_options options = {.before = {PROGRAM_MPIEXEC, "-n", "1"}};
    const program_result *r;

    (void)state;
    program_need_mpi();
    r = program_run(args, &options);
    program_assert_success(r);
    assert_null(strchr(r->out, '\033'));
}

/* Strategies that need shared memory are rejected over MPI before ranks start. */
static void train_over_mpi_with_shared_weights_is_refused(void **state)
{
    static const char *const strategies[] = {"strategy=hogwild", "strategy=ssp",
                                             "strategy=threads"};
    const program_options options = {.before = {PROGRAM_MPIEXEC, "-n", "2"}};

    (void)state;
    program_need_mpi();
    for (size_t i = 0; i < sizeof(strategies) / sizeof(strategies[0]); i++) {
        const char *const args[] = {"train", "good.yaml",   "--run-dir", "refused",
                                    "-s",    strategies[i], NULL};
        const program_result *r = program_run(args, &options);

        assert_int_equal(r->exit_code, 2);
        assert_non_null(strstr(r->err, "needs ranks that share memory"));
        assert_false(program_exists("refused"));
    }
}

static int runs_setup(void **state)
{
    (void)state;
    program_write_text("good.yaml", FIXTURES_CONFIG);
    return 0;
}

int main(int argc, char **argv)
{
    /* In this order: later ones use the run directory of the first. */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(train_writes_its_files_alone),
        cmocka_unit_test(summary_has_documented_fields),
        cmocka_unit_test(top5_is_reported_from_six_classes),
        cmocka_unit_test(metrics_lines_are_json),
        cmocka_unit_test(eval_on_any_ranks_equals_training),
        cmocka_unit_test(train_on_any_ranks_has_same_result),
        cmocka_unit_test(train_of_resolved_config_has_same_bytes),
        cmocka_unit_test(inspect_counts_weights_like_summary),
        cmocka_unit_test(inspect_config_shows_layers),
        cmocka_unit_test(data_info_prints_counts),
        cmocka_unit_test(train_quiet_prints_nothing),
        cmocka_unit_test(train_without_run_dir_writes_under_runs),
        cmocka_unit_test(bench_prints_json_lines),
        cmocka_unit_test(train_signal_ends_all_ranks),
        cmocka_unit_test(train_lost_rank_is_named),
        cmocka_unit_test(train_on_terminal_draws_bar),
        cmocka_unit_test(train_over_mpi_has_same_bytes),
        cmocka_unit_test(train_over_mpi_prints_plain_lines),
        cmocka_unit_test(train_over_mpi_with_shared_weights_is_refused),
    };
    int failed;

    if (program_init(argc > 1 ? argv[1] : NULL) != 0)
        return 1;
    failed = cmocka_run_group_tests(tests, runs_setup, NULL);
    program_fini();
    return failed;
}
