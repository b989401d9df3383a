/*
 * test_files.c - metrics.jsonl and summary.json: every line parses, numbers read back, and a full
 * disk is an error that leaves complete lines and no partial summary.
 */
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
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/mem.h"
#include "run.h"

static char files_dir[64];

static char *files_path(const char *name)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/%s", files_dir, name);
    return path;
}

static int files_setup(void **state)
{
    (void)state;
    strcpy(files_dir, "/tmp/cohort-telemetry-XXXXXX");
    return mkdtemp(files_dir) ? 0 : -1;
}

static int files_teardown(void **state)
{
    (void)state;
    unlink(files_path("metrics.jsonl"));
    unlink(files_path("summary.json"));
    return rmdir(files_dir); /* fails if anything else was left behind */
}

static double files_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    assert_true(json_is_number(value));
    return json_number_value(value);
}

static const char *files_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    assert_non_null(text);
    return text;
}

/* Line `n` of metrics.jsonl as an object; NULL after the last. */
static json_t *files_line(int n)
{
    char line[4096];
    FILE *file = fopen(files_path("metrics.jsonl"), "r");
    json_t *object = NULL;

    assert_non_null(file);
    for (int i = 0; i <= n; i++)
        if (!fgets(line, sizeof(line), file))
            line[0] = '\0';
    fclose(file);
    if (line[0]) {
        assert_int_equal(line[strlen(line) - 1], '\n');
        object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(object);
    }
    return object;
}

static void jsonl_writes_every_nth_step(void **state)
{
    co_sink *sink;
    co_event event;
    json_t *line;

    (void)state;
    assert_int_equal(co_sink_jsonl.open(&sink, &run_info, &(co_sink_options){.run_dir = files_dir}),
                     CO_OK);
    for (uint64_t step = 1; step <= 25; step++) {
        event = run_step(step);
        event.recent.rank0 = step == 18;
        assert_int_equal(sink->ops->event(sink, &event), CO_OK);
    }
    event = run_epoch(0, CO_EVENT_EPOCH);
    assert_int_equal(sink->ops->event(sink, &event), CO_OK);
    sink->ops->close(sink);

    line = files_line(0);
    assert_string_equal(files_text(line, "event"), "start");
    assert_string_equal(files_text(line, "model"), "mnist-net");
    assert_int_equal((int)files_number(line, "parameter_count"), 21840);
    json_decref(line);
    line = files_line(9);
    assert_string_equal(files_text(line, "over"), "rank 0");
    json_decref(line);
    line = files_line(10);
    assert_string_equal(files_text(line, "event"), "step");
    assert_int_equal((int)files_number(line, "step"), 20);
    assert_int_equal((int)files_number(line, "steps"), 2);
    assert_float_equal((float)files_number(line, "train_loss"), 0.05, 1e-6);
    assert_float_equal((float)files_number(line, "samples_per_second"), 20000, 1e-6);
    assert_float_equal((float)files_number(line, "read_bytes_per_second"), 16056320, 1e-6);
    assert_null(json_object_get(line, "over"));
    assert_null(json_object_get(line, "test_loss"));
    json_decref(line);
    line = files_line(13);
    assert_string_equal(files_text(line, "event"), "epoch");
    assert_float_equal((float)files_number(line, "test_accuracy_top5"), 0.99, 1e-6);
    json_decref(line);
    assert_null(files_line(14));
}

static void jsonl_epoch_lists_figures_of_ranks(void **state)
{
    const co_rank_figures ranks[] = {{0.5, 0.8, 0.4, 0.9}, {NAN, NAN, 0.6, 0.7}};
    co_event event = run_epoch(0, CO_EVENT_EPOCH);
    co_sink *sink;
    json_t *line, *list;

    (void)state;
    event.rank = ranks;
    assert_int_equal(co_sink_jsonl.open(&sink, &run_info, &(co_sink_options){.run_dir = files_dir}),
                     CO_OK);
    assert_int_equal(sink->ops->event(sink, &event), CO_OK);
    event.has_test = false;
    assert_int_equal(sink->ops->event(sink, &event), CO_OK);
    sink->ops->close(sink);

    line = files_line(1);
    list = json_object_get(line, "ranks");
    assert_int_equal((int)json_array_size(list), 2);
    assert_float_equal((float)files_number(json_array_get(list, 0), "train_loss"), 0.5, 1e-6);
    assert_float_equal((float)files_number(json_array_get(list, 0), "train_accuracy"), 0.8, 1e-6);
    assert_true(json_is_null(json_object_get(json_array_get(list, 1), "train_loss")));
    assert_float_equal((float)files_number(json_array_get(list, 1), "test_loss"), 0.6, 1e-6);
    assert_float_equal((float)files_number(json_array_get(list, 1), "test_accuracy"), 0.7, 1e-6);
    json_decref(line);
    line = files_line(2);
    assert_null(json_object_get(json_array_get(json_object_get(line, "ranks"), 0), "test_loss"));
    json_decref(line);
}

static void jsonl_nan_is_written_as_null(void **state)
{
    co_sink *sink;
    co_event event = run_step(2);
    json_t *line;

    (void)state;
    event.recent.loss = NAN;
    assert_int_equal(co_sink_jsonl.open(&sink, &run_info, &(co_sink_options){.run_dir = files_dir}),
                     CO_OK);
    assert_int_equal(sink->ops->event(sink, &event), CO_OK);
    sink->ops->close(sink);
    line = files_line(1);
    assert_true(json_is_null(json_object_get(line, "train_loss")));
    json_decref(line);
}

static void jsonl_missing_folder_is_named(void **state)
{
    co_sink *sink = NULL;

    (void)state;
    assert_int_equal(
        co_sink_jsonl.open(&sink, &run_info, &(co_sink_options){.run_dir = "/nowhere/at/all"}),
        CO_E_IO);
    assert_non_null(strstr(co_error_message(), "/nowhere/at/all/metrics.jsonl"));
    assert_null(sink);
}

static void files_limit(rlim_t bytes)
{
    struct rlimit limit;

    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void jsonl_full_disk_leaves_whole_lines(void **state)
{
    co_sink *sink;
    co_status st = CO_OK;
    json_t *line;
    int n = 0;

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(co_sink_jsonl.open(&sink, &run_info, &(co_sink_options){.run_dir = files_dir}),
                     CO_OK);
    files_limit(1500);
    for (uint64_t step = 1; step <= 50 && st == CO_OK; step++) {
        co_event event = run_step(step);

        st = sink->ops->event(sink, &event);
    }
    files_limit(RLIM_INFINITY);
    assert_int_equal(st, CO_E_IO);
    assert_non_null(strstr(co_error_message(), "metrics.jsonl"));
    sink->ops->close(sink);
    while ((line = files_line(n)) != NULL) {
        json_decref(line);
        n++;
    }
    assert_int_in_range(n, 2, 20);
}

static co_summary files_summary(const co_event *last, uint64_t shards)
{
    return (co_summary){.info = &run_info,
                        .last = last,
                        .weights_sha256 = "00ff",
                        .shards = shards,
                        .start_seconds = 0.125};
}

static void summary_has_every_field(void **state)
{
    static const char *const numbers[] = {
        "ranks",          "epochs",          "steps",           "wall_seconds",
        "train_seconds",  "train_loss",      "train_accuracy",  "samples_per_second",
        "test_loss",      "bytes_sent",      "test_accuracy",   "test_accuracy_top5",
        "start_seconds",  "parameter_count", "compute_seconds", "sync_seconds",
        "data_wait_share"};
    co_event last = run_epoch(9, CO_EVENT_END);
    co_summary summary = files_summary(&last, 0);
    json_t *object;

    (void)state;
    assert_int_equal(co_summary_write(files_dir, &summary), CO_OK);
    object = json_load_file(files_path("summary.json"), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(object);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        (void)files_number(object, numbers[i]);
    assert_string_equal(files_text(object, "shards"), "auto");
    assert_string_equal(files_text(object, "strategy"), "sync");
    assert_string_equal(files_text(object, "weights_sha256"), "00ff");
    assert_int_equal((int)files_number(object, "steps"), 4690);
    assert_null(json_object_get(object, "reached_seconds"));
    json_decref(object);

    summary.shards = 4;
    summary.reached_seconds = 12.5;
    last.has_test = false;
    assert_int_equal(co_summary_write(files_dir, &summary), CO_OK);
    object = json_load_file(files_path("summary.json"), JSON_REJECT_DUPLICATES, NULL);
    assert_int_equal((int)files_number(object, "shards"), 4);
    assert_true(files_number(object, "reached_seconds") == 12.5);
    assert_null(json_object_get(object, "test_accuracy"));
    json_decref(object);

    last.train_loss = last.train_accuracy = (double)NAN; /* without samples */
    last.train_seconds = 0;
    assert_int_equal(co_summary_write(files_dir, &summary), CO_OK);
    object = json_load_file(files_path("summary.json"), JSON_REJECT_DUPLICATES, NULL);
    assert_true(json_is_null(json_object_get(object, "train_loss")));
    assert_true(json_is_null(json_object_get(object, "train_accuracy")));
    assert_true(json_is_null(json_object_get(object, "data_wait_share")));
    json_decref(object);
}

static void summary_full_disk_leaves_no_file(void **state)
{
    co_event last = run_epoch(9, CO_EVENT_END);
    co_summary summary = files_summary(&last, 0);
    co_status st;

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    files_limit(100);
    st = co_summary_write(files_dir, &summary);
    files_limit(RLIM_INFINITY);
    assert_int_equal(st, CO_E_IO);
    assert_int_not_equal(access(files_path("summary.json"), F_OK), 0);
}

static void jsonl_and_summary_failed_allocation_is_an_error(void **state)
{
    co_event last = run_epoch(9, CO_EVENT_END);
    co_summary summary = files_summary(&last, 0);
    co_status st = CO_E_NOMEM;
    co_sink *sink = NULL;

    (void)state;
    for (uint64_t k = 1; st != CO_OK && k < 100; k++) {
        co_mem_fail_at(k);
        st = co_sink_jsonl.open(&sink, &run_info, &(co_sink_options){.run_dir = files_dir});
    }
    co_mem_fail_at(0);
    assert_int_equal(st, CO_OK);
    sink->ops->close(sink);
    st = CO_E_NOMEM;
    for (uint64_t k = 1; st != CO_OK && k < 100; k++) {
        co_mem_fail_at(k);
        st = co_summary_write(files_dir, &summary);
    }
    co_mem_fail_at(0);
    assert_int_equal(st, CO_OK);
}

#define FILES_TEST(f) cmocka_unit_test_setup_teardown(f, files_setup, files_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILES_TEST(jsonl_writes_every_nth_step),
        FILES_TEST(jsonl_nan_is_written_as_null),
        FILES_TEST(jsonl_missing_folder_is_named),
        FILES_TEST(jsonl_full_disk_leaves_whole_lines),
        FILES_TEST(summary_has_every_field),
        FILES_TEST(summary_full_disk_leaves_no_file),
        FILES_TEST(jsonl_and_summary_failed_allocation_is_an_error),
        FILES_TEST(jsonl_epoch_lists_figures_of_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
