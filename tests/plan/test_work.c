/* test_work.c - a rank's work from the files of a run; damaged ones are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan/work.h"

static char work_dir[] = "/tmp/cohort-work-XXXXXX";

#define WORK_ROW(name, op, pass, us)                                                               \
    "{\"name\": \"" name "\", \"op\": \"" op "\", \"pass\": \"" pass "\", \"time_us\": " us "}"
#define WORK_ROWS                                                                                  \
    WORK_ROW("optimizer", "", "none", "100")                                                       \
    ",\n" WORK_ROW("wait for data", "", "none", "5000") ",\n" WORK_ROW(                            \
        "post gradients", "", "none",                                                              \
        "7") ",\n" WORK_ROW("log", "", "none",                                                     \
                            "50") ",\n" WORK_ROW("conv1", "conv2d", "forward",                     \
                                                 "1000") ",\n" WORK_ROW("fc", "linear",            \
                                                                        "backward",                \
                                                                        "500") ",\n" WORK_ROW("co" \
                                                                                              "nv" \
                                                                                              "1", \
                                                                                              "co" \
                                                                                              "nv" \
                                                                                              "2"  \
                                                                                              "d", \
                                                                                              "ba" \
                                                                                              "ck" \
                                                                                              "wa" \
                                                                                              "r"  \
                                                                                              "d", \
                                                                                              "15" \
                                                                                              "0"  \
                                                                                              "0")
#define WORK_PROFILE                                                                               \
    "{\"model\": \"m\", \"batch\": 64, \"ranks\": 2, \"per_rank\": [{\"rows\": [" WORK_ROWS "]},"  \
    " {\"rows\": [" WORK_ROWS "]}]}"

static void work_put(const char *name, const char *text)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", work_dir, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static const char *work_names_of[] = {"fc.weight", "fc.bias", "conv1.weight"};
static size_t work_ends[] = {100, 110, 200};
static const co_work_names work_names = {3, work_names_of, work_ends};

static void profile_gives_means_over_ranks_and_when_gradients_are_final(void **state)
{
    co_plan_work w = {.n = 208};

    (void)state;
    work_put("profile.json", WORK_PROFILE);
    assert_int_equal(co_work_read(&w, work_dir, &work_names), CO_OK);
    assert_int_equal(w.ranks, 2);
    assert_true(w.batch == 32);
    assert_true(fabs(w.forward - 1e-3) < 1e-12 && fabs(w.backward - 2e-3) < 1e-12);
    assert_true(fabs(w.update - 1e-4) < 1e-12 && fabs(w.rest - 5e-5) < 1e-12);
    assert_true(fabs(w.post - 7e-6) < 1e-12);
    assert_int_equal(w.n_segment, 2);
    assert_int_equal(w.segment[0].end, 110);
    assert_int_equal(w.segment[1].end, 208);
    assert_true(fabs(w.segment[0].seconds - 5e-4) < 1e-12);
    co_work_fini(&w);
}

static void steps_in_the_log_are_draws_without_waits(void **state)
{
    co_plan_work w = {.n = 208};
    char text[8192] = "";

    (void)state;
    for (int i = 1; i <= 60; i++) /* 10 ms each, the last 40; all wait 5 ms */
        snprintf(text + strlen(text), sizeof(text) - strlen(text),
                 "{\"event\":\"step\",\"step\":%d,\"train_seconds\":%.3f,\"sync_seconds\":%.3f}\n",
                 i, 0.015 * i + (i == 60 ? 0.03 : 0), 0.005 * i);
    work_put("profile.json", WORK_PROFILE);
    work_put("metrics.jsonl", text);
    assert_int_equal(co_work_read(&w, work_dir, &work_names), CO_OK);
    assert_int_equal(w.n_draw, 54);
    assert_true(fabs(w.draw[53] / w.draw[0] - 4) < 1e-6);
    co_work_fini(&w);
    work_put("metrics.jsonl", "");
}

static void readers_of_the_trace_are_counted(void **state)
{
    co_plan_work w = {.n = 208};

    (void)state;
    work_put("profile.json", WORK_PROFILE);
    work_put("trace.json",
             "{\"traceEvents\": [\n"
             "{\"cat\": \"reader\", \"dur\": 300, \"args\": {\"samples\": 10}},\n"
             "{\"cat\": \"forward\", \"dur\": 900, \"args\": {\"samples\": 10}},\n"
             "{\"cat\": \"reader\", \"dur\": 100, \"args\": {\"samples\": 10}}\n]}\n");
    assert_int_equal(co_work_read(&w, work_dir, &work_names), CO_OK);
    assert_true(fabs(w.read - 20e-6) < 1e-12);
    co_work_fini(&w);
}

static void work_refuses(const char *profile)
{
    co_plan_work w = {.n = 208};

    work_put("profile.json", profile);
    assert_int_equal(co_work_read(&w, work_dir, &work_names), CO_E_DATA);
    assert_non_null(strstr(co_error_message(), "profile.json"));
    co_work_fini(&w);
}

static void profile_damaged_is_named(void **state)
{
    (void)state;
    work_refuses("");
    work_refuses("{\"per_rank\": [");
    work_refuses("[]");
    work_refuses("{\"batch\": 64, \"per_rank\": []}");
    work_refuses("{\"batch\": 64, \"per_rank\": [{\"rows\": []}]}");
    work_refuses("{\"batch\": -1, \"per_rank\": [{\"rows\": [" WORK_ROWS "]}]}");
    work_refuses("{\"batch\": 1, \"per_rank\": [{\"rows\": [3, null, {\"name\": 4}]}]}");
}

static int work_start(void **state)
{
    (void)state;
    return mkdtemp(work_dir) ? 0 : -1;
}

static int work_end(void **state)
{
    static const char *const files[] = {"profile.json", "metrics.jsonl", "trace.json"};
    char path[128];

    (void)state;
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/%s", work_dir, files[i]);
        (void)unlink(path);
    }
    return rmdir(work_dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profile_gives_means_over_ranks_and_when_gradients_are_final),
        cmocka_unit_test(steps_in_the_log_are_draws_without_waits),
        cmocka_unit_test(readers_of_the_trace_are_counted),
        cmocka_unit_test(profile_damaged_is_named),
    };

    return cmocka_run_group_tests(tests, work_start, work_end);
}
