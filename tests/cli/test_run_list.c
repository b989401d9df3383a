/*
 * test_run_list.c - `cohort runs`: a row for each run, the keys of configs that differ and no
 * others, the states of runs, and a large folder in little time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "fixtures.h"
#include "program.h"

#define MANY         500
#define MANY_SECONDS 0.5

static int run_list_setup(void **state)
{
    (void)state;
    program_write_text("good.yaml", FIXTURES_CONFIG);
    mkdir("runs", 0700);
    program_assert_success(program_line("train good.yaml --run-dir runs/a --quiet"));
    program_assert_success(program_line("train good.yaml --run-dir runs/b --quiet "
                                        "--set optimizer.lr=0.01 --set schedule=cosine"));
    program_assert_success(program_line("compare good.yaml --strategies sync -n 1 --out runs/both "
                                        "--set seed=7"));
    return 0;
}

static json_t *run_list_json(const char *line)
{
    const program_result *r = program_line(line);
    json_t *root;

    program_assert_success(r);
    root = json_loads(r->out, 0, NULL);
    assert_true(json_is_array(json_object_get(root, "runs")));
    return root;
}

static const json_t *run_list_at(const json_t *root, size_t i)
{
    return json_array_get(json_object_get(root, "runs"), i);
}

static void assert_text(const json_t *object, const char *key, const char *want)
{
    const char *text = json_string_value(json_object_get(object, key));

    if (!text || strcmp(text, want) != 0)
        fail_msg("%s: '%s' instead of '%s'", key, text ? text : "nothing", want);
}

static void runs_differing_keys_are_shown(void **state)
{
    json_t *root = run_list_json("runs --json");
    const json_t *a = json_object_get(run_list_at(root, 0), "config");
    const json_t *b = json_object_get(run_list_at(root, 1), "config");
    const program_result *r;

    (void)state;
    assert_int_equal(json_array_size(json_object_get(root, "runs")), 3);
    assert_text(run_list_at(root, 0), "run_dir", "runs/a");
    assert_text(run_list_at(root, 2), "run_dir", "runs/both/sync-1");
    assert_text(a, "optimizer.lr", "0.1");
    assert_text(b, "optimizer.lr", "0.01");
    assert_text(a, "schedule", "~");
    assert_text(b, "schedule", "cosine");
    assert_null(json_object_get(a, "batch"));
    assert_null(json_object_get(a, "optimizer.momentum"));
    json_decref(root);
    r = program_line("runs");
    program_assert_success(r);
    assert_true(strncmp(r->out, "run ", 4) == 0);
    assert_non_null(strstr(r->out, "\nboth/sync-1 "));
    assert_non_null(strstr(r->out, " optimizer.lr"));
    assert_null(strstr(r->out, "momentum"));
}

/* Of a finished run the figures of its summary. */
static void runs_figures_equal_the_summary(void **state)
{
    json_t *root = run_list_json("runs runs/a --json"), *summary = program_summary("runs/a");
    const json_t *run = run_list_at(root, 0);

    (void)state;
    assert_text(run, "state", "finished");
    assert_true(json_number_value(json_object_get(run, "test_accuracy")) ==
                json_number_value(json_object_get(summary, "best_test_accuracy")));
    assert_true(json_number_value(json_object_get(run, "wall_seconds")) ==
                json_number_value(json_object_get(summary, "wall_seconds")));
    assert_true(json_integer_value(json_object_get(run, "steps")) ==
                json_integer_value(json_object_get(summary, "steps")));
    json_decref(root);
    json_decref(summary);
}

static void runs_sorted_by_accuracy_has_best_first(void **state)
{
    json_t *root = run_list_json("runs --sort accuracy --json");
    double before = 2;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const double accuracy =
            json_number_value(json_object_get(run_list_at(root, i), "test_accuracy"));

        assert_true(accuracy <= before);
        before = accuracy;
    }
    json_decref(root);
    program_assert_error(program_line("runs --sort size"), 2, "--sort takes name, accuracy");
}

/* Without its summary a run is stopped, and running while its lock is held. */
static void runs_unfinished_has_state_of_lock(void **state)
{
    json_t *root;
    int fd;

    (void)state;
    rename("runs/a/summary.json", "summary.json");
    root = run_list_json("runs runs/a --json");
    assert_text(run_list_at(root, 0), "state", "stopped");
    assert_int_equal(json_integer_value(json_object_get(run_list_at(root, 0), "steps")), 16);
    json_decref(root);
    fd = open("runs/a/.lock", O_RDWR);
    assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
    root = run_list_json("runs runs/a --json");
    assert_text(run_list_at(root, 0), "state", "running");
    json_decref(root);
    close(fd);
    rename("summary.json", "runs/a/summary.json");
}

/* The start and the last epoch are there, however many steps are between them and the end. */
static void runs_unfinished_of_many_steps_has_names_and_accuracy(void **state)
{
    FILE *out;
    json_t *root;

    (void)state;
    program_assert_success(program_line("train good.yaml --run-dir long --quiet"));
    remove("long/summary.json");
    out = fopen("long/metrics.jsonl", "a");
    assert_non_null(out);
    for (int i = 0; i < 5000; i++)
        fprintf(out, "{\"event\":\"step\",\"epoch\":9,\"step\":%d,\"train_loss\":0.5}\n", 100 + i);
    assert_int_equal(fclose(out), 0);
    root = run_list_json("runs long --json");
    assert_text(run_list_at(root, 0), "state", "stopped");
    assert_text(run_list_at(root, 0), "model", "mlp");
    assert_text(run_list_at(root, 0), "strategy", "sync");
    assert_int_equal(json_integer_value(json_object_get(run_list_at(root, 0), "steps")), 5099);
    assert_true(json_is_number(json_object_get(run_list_at(root, 0), "test_accuracy")));
    json_decref(root);
}

static void runs_wrong_folder_is_refused(void **state)
{
    (void)state;
    mkdir("empty", 0700);
    program_assert_error(program_line("runs empty"), 3, "empty: holds no run directory");
    program_assert_error(program_line("runs none"), 3, "none: No such file");
    program_assert_error(program_line("runs good.yaml"), 3, "good.yaml: is a file");
}

/* Files that no run has written give a row with what is known. */
static void runs_damaged_run_is_a_row(void **state)
{
    const program_result *r;

    (void)state;
    mkdir("bad", 0700);
    mkdir("bad/x\x1b[2J", 0700);
    program_write_text("bad/x\x1b[2J/config.yaml", "optimizer: {name: [\nbatch");
    program_write_text("bad/x\x1b[2J/summary.json", "[1, 2");
    r = program_line("runs bad");
    program_assert_success(r);
    assert_non_null(strstr(r->out, "\nx\\x1b[2J"));
    assert_null(strchr(r->out, '\x1b'));
}

/* JSON has a name as it is, if it is UTF-8; what a terminal would obey is in JSON's escapes. */
static void runs_json_has_names_as_they_are(void **state)
{
    static const char *const names[] = {"odd/a\n\x1b\xc2\x9b\xc3\xa4", "odd/b\xff"};
    static const char *const want[] = {"odd/a\n\x1b\xc2\x9b\xc3\xa4", "odd/b\\xff"};
    const program_result *r;
    json_t *root;

    (void)state;
    mkdir("odd", 0700);
    for (size_t i = 0; i < 2; i++) {
        char file[64];

        mkdir(names[i], 0700);
        snprintf(file, sizeof(file), "%s/config.yaml", names[i]);
        program_write_text(file, "batch: 32\n");
        snprintf(file, sizeof(file), "%s/metrics.jsonl", names[i]);
        program_write_text(file, "");
    }
    root = run_list_json("runs odd --json");
    for (size_t i = 0; i < 2; i++)
        assert_text(run_list_at(root, i), "run_dir", want[i]);
    json_decref(root);
    r = program_line("runs odd --json");
    for (const char *c = r->out; *c; c++)
        assert_true(*c == '\n' || (*c >= ' ' && *c <= '~'));
}

static void runs_name_of_umlauts_is_aligned(void **state)
{
    static const char *const names[] = {"wide/\xc3\xa4", "wide/b"};
    const program_result *r;

    (void)state;
    mkdir("wide", 0700);
    for (size_t i = 0; i < 2; i++) {
        char file[64];

        mkdir(names[i], 0700);
        snprintf(file, sizeof(file), "%s/config.yaml", names[i]);
        program_write_text(file, "batch: 32\n");
        snprintf(file, sizeof(file), "%s/.lock", names[i]);
        program_write_text(file, "1 cohort\n");
    }
    r = program_line("runs wide");
    program_assert_success(r);
    assert_non_null(strstr(r->out, "\n\xc3\xa4    stopped"));
    assert_non_null(strstr(r->out, "\nb    stopped"));
}

static double children_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_CHILDREN, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* By processor time, of the best of three: other work on the machine does not count. */
static void runs_of_many_take_little_time(void **state)
{
    char *config = program_read("runs/a/config.yaml"), *lr = strstr(config, "lr: 0.1");
    char *summary = program_read("runs/a/summary.json"), path[64];
    double best = 1e9;

    (void)state;
    assert_non_null(lr);
    mkdir("many", 0700);
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof(path), "many/%d", i);
        mkdir(path, 0700);
        lr[6] = (char)('1' + i % 9); /* lr: 0.1 to 0.9 */
        snprintf(path, sizeof(path), "many/%d/config.yaml", i);
        program_write_text(path, config);
        snprintf(path, sizeof(path), "many/%d/summary.json", i);
        program_write_text(path, summary);
    }
    for (int i = 0; i < 3; i++) {
        const double before = children_seconds();
        const program_result *r = program_line("runs many");
        const double took = children_seconds() - before;

        program_assert_success(r);
        assert_non_null(strstr(r->out, "\n499 "));
        best = took < best ? took : best;
    }
    printf("%d runs in %.3f s of processor time\n", MANY, best);
    assert_true(best < MANY_SECONDS);
    free(config);
    free(summary);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_differing_keys_are_shown),
        cmocka_unit_test(runs_figures_equal_the_summary),
        cmocka_unit_test(runs_sorted_by_accuracy_has_best_first),
        cmocka_unit_test(runs_unfinished_has_state_of_lock),
        cmocka_unit_test(runs_unfinished_of_many_steps_has_names_and_accuracy),
        cmocka_unit_test(runs_wrong_folder_is_refused),
        cmocka_unit_test(runs_damaged_run_is_a_row),
        cmocka_unit_test(runs_json_has_names_as_they_are),
        cmocka_unit_test(runs_name_of_umlauts_is_aligned),
        cmocka_unit_test(runs_of_many_take_little_time),
    };
    int failed;

    if (argc < 2 || program_init(argv[1]) != 0)
        return 1;
    failed = cmocka_run_group_tests_name("cli_run_list", tests, run_list_setup, NULL);
    program_fini();
    return failed;
}
