/* test_live_runs.c - runs read as they grow: what is new adds up to what is there, and files that
   were cut, damaged, or have come since are known. */
#include "run_files.h"

#include <fcntl.h>
#include <math.h>

#include "live/runs.h"

static int runs_setup(void **state)
{
    (void)state;
    if (folder_make(state) != 0)
        return -1;
    run_make("a");
    return 0;
}

/* A path that stays. */
static const char *keep(char out[64], const char *name)
{
    snprintf(out, 64, "%s/%s", folder, name);
    return out;
}

static const json_t *column_of(const json_t *run, const char *table, const char *name)
{
    return json_object_get(json_object_get(run, table), name);
}

static size_t rows_of(const json_t *run)
{
    return json_array_size(column_of(run, "steps_table", "step"));
}

static co_page_source *open_run(size_t most)
{
    co_page_source *source;
    json_t *news;
    bool all;

    assert_int_equal(co_page_source_open(&source, folder_path("a"), most), CO_OK);
    assert_int_equal(co_page_source_update(source), CO_OK);
    assert_int_equal(co_page_source_news(&news, &all, source), CO_OK);
    json_decref(news);
    return source;
}

static json_t *news_of(co_page_source *source, bool *all)
{
    json_t *news;

    if (co_page_source_update(source) != CO_OK)
        fail_msg("%s", co_error_message());
    assert_int_equal(co_page_source_news(&news, all, source), CO_OK);
    return news;
}

static json_t *json_of(const co_page_source *source)
{
    json_t *run;

    assert_int_equal(co_page_source_json(&run, source), CO_OK);
    return run;
}

static void source_growing_file_gives_whole_lines(void **state)
{
    co_page_source *source = open_run(100);
    json_t *news;
    bool all;

    (void)state;
    news = news_of(source, &all);
    assert_true(json_is_null(news) && !all);
    run_write("a/metrics.jsonl", "a", "{\"event\":\"step\",\"step\":5,\"train_lo");
    news = news_of(source, &all);
    assert_true(json_is_null(news) && !all);
    run_write("a/metrics.jsonl", "a", "ss\":0.5}\n{\"event\":\"st");
    news = news_of(source, &all);
    assert_false(all);
    assert_int_equal(rows_of(json_object_get(news, "append")), 1);
    assert_int_equal(json_integer_value(json_object_get(news, "points_of")), 1);
    assert_true(json_number_value(json_object_get(news, "steps")) == 5);
    json_decref(news);
    co_page_source_close(source);
}

/* As the page's script adds them. */
static void merge_column(json_t *to, const json_t *more, const char *table, const char *name)
{
    json_t *column = json_object_get(json_object_get(to, table), name);
    const json_t *rows = column_of(more, table, name);

    for (size_t i = 0; i < json_array_size(column_of(more, table, "step")); i++)
        json_array_append(column,
                          i < json_array_size(rows) ? json_array_get(rows, i) : json_null());
}

static void source_news_add_up_to_everything(void **state)
{
    co_page_source *source;
    json_t *sum, *whole;

    (void)state;
    run_add_steps("a", 1, 2, 3.0);
    source = open_run(1000);
    sum = json_of(source);
    for (int i = 2; i < 300; i += 1 + i % 7) {
        bool all;
        json_t *news;

        run_add_steps("a", i, i + 1 + i % 7, 100.0 / i);
        news = news_of(source, &all);
        assert_false(all);
        merge_column(sum, json_object_get(news, "append"), "steps_table", "step");
        merge_column(sum, json_object_get(news, "append"), "steps_table", "train_loss");
        json_decref(news);
    }
    whole = json_of(source);
    assert_true(rows_of(whole) > 290);
    assert_true(
        json_equal(column_of(sum, "steps_table", "step"), column_of(whole, "steps_table", "step")));
    assert_true(json_equal(column_of(sum, "steps_table", "train_loss"),
                           column_of(whole, "steps_table", "train_loss")));
    json_decref(sum);
    json_decref(whole);
    co_page_source_close(source);
}

/* A run that resumes writes another file; one that is cut in place, and has grown since, has other
   bytes where reading had come to. */
static void source_other_file_is_read_anew(void **state)
{
    co_page_source *source;
    json_t *run, *news;
    bool all;

    (void)state;
    run_add_steps("a", 1, 11, 2.0);
    source = open_run(100);
    run_make("b");
    run_add_steps("b", 1, 6, 1.0);
    assert_int_equal(rename(folder_path("b/metrics.jsonl"), folder_path("a/metrics.jsonl")), 0);
    news = news_of(source, &all);
    assert_true(all && json_is_null(news));
    run = json_of(source);
    assert_int_equal(rows_of(run), 5);
    json_decref(run);

    run_make("a"); /* the same file, cut */
    run_add_steps("a", 1, 31, 7.0);
    news = news_of(source, &all);
    assert_true(all && json_is_null(news));
    run = json_of(source);
    assert_int_equal(rows_of(run), 30);
    json_decref(run);

    unlink(folder_path("a/metrics.jsonl"));
    news = news_of(source, &all);
    assert_true(all && json_is_null(news));
    run = json_of(source);
    assert_int_equal(rows_of(run), 0);
    json_decref(run);
    co_page_source_close(source);
}

static void source_long_run_keeps_extremes(void **state)
{
    co_page_source *source = open_run(1000);
    const json_t *step, *loss;
    size_t n, early = 0;
    bool all, spike = false, low = false;
    json_t *run;

    (void)state;
    for (int i = 0; i < 100; i++) {
        run_add_steps("a", 1 + 500 * i, 250 + 500 * i, 1.0);
        run_add_steps("a", 250 + 500 * i, 251 + 500 * i, i == 3 ? 77.0 : i == 60 ? 0.1 : 1.0);
        run_add_steps("a", 251 + 500 * i, 501 + 500 * i, 1.0);
        json_decref(news_of(source, &all));
    }
    run = json_of(source);
    step = column_of(run, "steps_table", "step");
    loss = column_of(run, "steps_table", "train_loss");
    n = json_array_size(step);
    assert_int_in_range(n, 500, 2000);
    for (size_t i = 0; i < n; i++) {
        early += json_number_value(json_array_get(step, i)) <= 25000;
        spike = spike || json_number_value(json_array_get(loss, i)) == 77;
        low = low || json_number_value(json_array_get(loss, i)) == 0.1;
    }
    assert_true(spike && low);
    /* Those that came last have not been thinned yet. */
    assert_int_in_range(early, n / 5, n / 2 + 10);
    assert_int_equal(json_integer_value(json_object_get(run, "points_of")), 50000);
    json_decref(run);
    co_page_source_close(source);
}

static void runs_damaged_line_is_shown(void **state)
{
    char dir[64];
    const char *const folders[] = {keep(dir, "a")};
    co_live_runs runs;
    json_t *message;
    const json_t *run;
    bool all;

    (void)state;
    assert_int_equal(co_live_runs_open(&runs, folders, 1), CO_OK);
    run_add_steps("a", 1, 3, 1.0);
    run_write("a/metrics.jsonl", "a", "this is no event\n");
    assert_int_equal(co_live_runs_update(&runs, &message, &all), CO_OK);
    run = json_array_get(json_object_get(message, "runs"), 0);
    assert_non_null(
        strstr(json_string_value(json_object_get(run, "damage")), "metrics.jsonl:4: not a JSON"));
    assert_int_equal(rows_of(json_object_get(run, "append")), 2);
    json_decref(message);
    co_live_runs_close(&runs);
}

static const char *damage_of(const json_t *list, size_t run)
{
    const char *damage = json_string_value(json_object_get(json_array_get(list, run), "damage"));

    return damage ? damage : "";
}

/* Whatever is damaged, the rest of the folder is shown, and what can be read of that run. */
static void runs_open_shows_what_is_damaged(void **state)
{
    char dir[64];
    const char *const folders[] = {keep(dir, "many")};
    co_live_runs runs;
    json_t *list, *message;
    bool all;

    (void)state;
    mkdir(folder_path("many"), 0700);
    for (int i = 0; i < 4; i++) {
        char name[32];

        snprintf(name, sizeof(name), "many/%d", i);
        run_make(name);
        run_add_steps(name, 1, 3, 1.0);
    }
    run_write("many/0/metrics.jsonl", "w", "this is no event\n");
    run_write("many/1/metrics.jsonl", "a", "this is no event\n");
    run_write("many/1/summary.json", "w", "{");
    run_write("many/2/summary.json", "w", "[1]");
    run_write("many/2/profile.json", "w", "{");
    assert_int_equal(co_live_runs_open(&runs, folders, 1), CO_OK);
    assert_int_equal(runs.n, 4);
    assert_int_equal(co_live_runs_json(&list, &runs), CO_OK);
    assert_non_null(strstr(damage_of(list, 0), "many/0/metrics.jsonl:1: not a JSON"));
    assert_non_null(strstr(damage_of(list, 1), "many/1/metrics.jsonl:4: not a JSON"));
    assert_non_null(strstr(damage_of(list, 2), "many/2/summary.json: is not a JSON object"));
    assert_string_equal(damage_of(list, 3), "");
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(rows_of(json_array_get(list, i)), i ? 2 : 0);
    json_decref(list);
    for (int again = 0; again < 2; again++) { /* nothing is new, and nothing is forgotten */
        runs.scan_ns = 0;
        assert_int_equal(co_live_runs_update(&runs, &message, &all), CO_OK);
        assert_false(all);
        if (again)
            assert_true(json_is_null(message));
        json_decref(message);
        assert_non_null(strstr(runs.run[2]->damage, "summary.json"));
    }
    run_write("many/2/summary.json", "w", "{}");
    run_write("many/2/profile.json", "w", "{}");
    assert_int_equal(co_live_runs_update(&runs, &message, &all), CO_OK);
    json_decref(message);
    assert_string_equal(runs.run[2]->damage, "");
    co_live_runs_close(&runs);
}

static void runs_coming_later_are_shown(void **state)
{
    char name[32], dir[64];
    const char *const folders[] = {keep(dir, "many")};
    co_live_runs runs;
    json_t *message, *list;
    bool all;

    (void)state;
    mkdir(folder_path("many"), 0700);
    assert_int_equal(co_live_runs_open(&runs, folders, 1), CO_OK);
    assert_int_equal(runs.n, 0);
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof(name), "many/run-%02d", i);
        run_make(name);
        runs.scan_ns = 0;
        assert_int_equal(co_live_runs_update(&runs, &message, &all), CO_OK);
        json_decref(message);
        assert_true(all);
        assert_int_equal(runs.n, i + 1);
    }
    for (int i = 2; i < 20; i++) {
        const struct timespec times[2] = {{2000000000 + i, 0}, {2000000000 + i, 0}};

        snprintf(name, sizeof(name), "many/run-%02d", i);
        run_make(name);
        stpcpy(strchr(name, '\0'), "/metrics.jsonl");
        assert_int_equal(utimensat(AT_FDCWD, folder_path(name), times, 0), 0);
    }
    runs.scan_ns = 0;
    assert_int_equal(co_live_runs_update(&runs, &message, &all), CO_OK);
    json_decref(message);
    assert_true(all);
    assert_int_equal(runs.n, CO_LIVE_RUNS);
    assert_int_equal(co_live_runs_json(&list, &runs), CO_OK);
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "name")),
                        "run-08");
    json_decref(list);
    co_live_runs_close(&runs);
}

/* A page does not ask for everything each time that one is found. */
static void runs_damaged_one_is_new_once(void **state)
{
    char dir[64];
    const char *const folders[] = {keep(dir, "many")};
    co_live_runs runs;
    json_t *message;
    bool all;

    (void)state;
    mkdir(folder_path("many"), 0700);
    run_make("many/good");
    assert_int_equal(co_live_runs_open(&runs, folders, 1), CO_OK);
    run_make("many/bad");
    run_write("many/bad/metrics.jsonl", "a", "this is no event\n");
    for (int again = 0; again < 2; again++) {
        runs.scan_ns = 0;
        assert_int_equal(co_live_runs_update(&runs, &message, &all), CO_OK);
        json_decref(message);
        assert_int_equal(all, !again);
        assert_int_equal(runs.n, 2);
        assert_non_null(strstr(runs.run[0]->damage, "metrics.jsonl:2: not a JSON"));
    }
    run_make("many/bad");
    assert_int_equal(co_live_runs_update(&runs, &message, &all), CO_OK);
    json_decref(message);
    assert_string_equal(runs.run[0]->damage, "");
    co_live_runs_close(&runs);
}

static void runs_end_is_shown_as_state(void **state)
{
    char dir[64];
    const char *const folders[] = {keep(dir, "a")};
    co_live_runs runs;
    json_t *message;
    const json_t *run;
    bool all;

    (void)state;
    assert_int_equal(co_live_runs_open(&runs, folders, 1), CO_OK);
    assert_int_equal(co_live_runs_update(&runs, &message, &all), CO_OK);
    run = json_array_get(json_object_get(message, "runs"), 0);
    assert_string_equal(json_string_value(json_object_get(run, "state")), "stopped");
    assert_string_equal(json_string_value(json_object_get(run, "model")), "secret-model");
    json_decref(message);
    run_write("a/summary.json", "w", "{\"steps\": 1000, \"test_accuracy\": 0.75}");
    assert_int_equal(co_live_runs_update(&runs, &message, &all), CO_OK);
    run = json_array_get(json_object_get(message, "runs"), 0);
    assert_string_equal(json_string_value(json_object_get(run, "state")), "finished");
    assert_true(json_number_value(
                    json_object_get(json_object_get(run, "summary"), "test_accuracy")) == 0.75);
    json_decref(message);
    co_live_runs_close(&runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(source_growing_file_gives_whole_lines, runs_setup,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(source_news_add_up_to_everything, runs_setup,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(source_other_file_is_read_anew, runs_setup, folder_remove),
        cmocka_unit_test_setup_teardown(source_long_run_keeps_extremes, runs_setup, folder_remove),
        cmocka_unit_test_setup_teardown(runs_damaged_line_is_shown, runs_setup, folder_remove),
        cmocka_unit_test_setup_teardown(runs_open_shows_what_is_damaged, runs_setup, folder_remove),
        cmocka_unit_test_setup_teardown(runs_coming_later_are_shown, runs_setup, folder_remove),
        cmocka_unit_test_setup_teardown(runs_damaged_one_is_new_once, runs_setup, folder_remove),
        cmocka_unit_test_setup_teardown(runs_end_is_shown_as_state, runs_setup, folder_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
