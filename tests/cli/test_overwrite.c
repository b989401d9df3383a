/*
 * test_overwrite.c - the user's own files are kept, and two commands in the same second get
 * different folders.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/fixtures.h"
#include "cli/program.h"

#define OVERWRITE_WORDS "a file of somebody's\n"
#define OVERWRITE_QUICK FIXTURES_CONFIG "# my own words\nmax_steps: 2\n"

static const char *overwrite_program;

static void overwrite_assert_kept(const char *path, const char *text)
{
    char *kept = program_read(path);

    assert_non_null(kept);
    assert_string_equal(kept, text);
    free(kept);
}

/* Each file that a run writes, in a folder that is not a run's. */
static void train_into_used_folder_leaves_its_files(void **state)
{
    static const char *const files[] = {"config.yaml",       "metrics.jsonl", "summary.json",
                                        "final.safetensors", "profile.json",  "trained.safetensors",
                                        "trace.json",        "control.sock",  "checkpoints"};

    (void)state;
    program_write_text("good.yaml", OVERWRITE_QUICK);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[64];

        program_remove("mine");
        mkdir("mine", 0700);
        snprintf(path, sizeof(path), "mine/%s", files[i]);
        program_write_text(path, OVERWRITE_WORDS);
        program_assert_error(program_line("train good.yaml -n 1 --run-dir mine"), 2, path);
        overwrite_assert_kept(path, OVERWRITE_WORDS);
        program_assert_error(program_line("train good.yaml -n 1 --run-dir mine --resume"), 2, path);
        overwrite_assert_kept(path, OVERWRITE_WORDS);
        assert_int_equal(program_count_entries("mine"), 1);
    }
    program_remove("mine"); /* other files are no problem */
    mkdir("mine", 0700);
    program_write_text("mine/notes.txt", OVERWRITE_WORDS);
    program_write_text("mine/.lock", "123\n"); /* of another program */
    program_assert_success(program_line("train good.yaml -n 1 --run-dir mine --quiet"));
    overwrite_assert_kept("mine/notes.txt", OVERWRITE_WORDS);
    program_assert_error(program_line("train good.yaml -n 1 --run-dir mine"), 2, "earlier run");
}

static void train_into_folder_of_config_leaves_it(void **state)
{
    (void)state;
    program_remove("here");
    mkdir("here", 0700);
    program_write_text("here/config.yaml", OVERWRITE_QUICK);
    assert_int_equal(chdir("here"), 0);
    program_assert_error(program_line("train config.yaml -n 1 --run-dir ."), 2, "./config.yaml");
    overwrite_assert_kept("config.yaml", OVERWRITE_QUICK);
    /* A run that had not started, and whose config has since been changed by hand. */
    program_write_text(".lock", "123 cohort\n");
    program_assert_error(program_line("train config.yaml -n 1 --run-dir ."), 2, "own config");
    overwrite_assert_kept("config.yaml", OVERWRITE_QUICK);
    program_write_text("other.yaml", OVERWRITE_QUICK);
    program_assert_success(program_line("train other.yaml -n 1 --run-dir . --quiet"));
    unlink(".lock"); /* as in a copy without dot files */
    program_assert_success(
        program_line("train other.yaml -n 1 --run-dir . --quiet --resume --set max_steps=4"));
    assert_int_equal(chdir(".."), 0);
}

static void compare_into_used_folder_leaves_its_files(void **state)
{
    static const char line[] = "compare good.yaml --strategies sync -n 1 --out mine";
    char resume[128];

    (void)state;
    snprintf(resume, sizeof(resume), "%s --resume", line);
    program_write_text("good.yaml", OVERWRITE_QUICK);
    program_remove("mine");
    mkdir("mine", 0700);
    program_write_text("mine/table.txt", OVERWRITE_WORDS);
    program_assert_error(program_line(line), 2, "mine/table.txt");
    program_assert_error(program_line(resume), 2, "mine/table.txt");
    overwrite_assert_kept("mine/table.txt", OVERWRITE_WORDS);
    unlink("mine/table.txt");
    program_assert_success(program_line(line));
    program_remove("mine/sync-1");
    program_assert_success(program_line(resume));
}

static void output_over_file_of_other_kind_is_refused(void **state)
{
    static const struct {
        const char *line, *path;
    } cases[] = {
        {"export run mine.safetensors", "mine.safetensors"},
        {"export run mine.onnx", "mine.onnx"},
        {"import run/final.safetensors mine.safetensors --config good.yaml", "mine.safetensors"},
        {"data pack good.yaml mine.pack", "mine.pack"},
        {"data pack good.yaml good.yaml", "good.yaml"},
        {"data partition good.yaml -n 2 --png mine.png", "mine.png"},
        {"data partition good.yaml -n 2 --svg mine.svg", "mine.svg"},
    };
    char *before, *after;

    (void)state;
    program_write_text("good.yaml", OVERWRITE_QUICK);
    program_remove("run");
    program_assert_success(program_line("train good.yaml -n 1 --run-dir run --quiet"));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const bool config = strcmp(cases[i].path, "good.yaml") == 0;

        if (!config)
            program_write_text(cases[i].path, OVERWRITE_WORDS);
        program_assert_error(program_line(cases[i].line), 2, cases[i].path);
        overwrite_assert_kept(cases[i].path, config ? OVERWRITE_QUICK : OVERWRITE_WORDS);
    }
    before = program_read("run/final.safetensors");
    program_assert_error(program_line("export run run/final.safetensors"), 2, "what is read");
    program_assert_error(
        program_line("import run/final.safetensors run/final.safetensors --config good.yaml"), 2,
        "what is read");
    after = program_read("run/final.safetensors");
    assert_string_equal(before, after);
    free(before);
    free(after);
    unlink("mine.safetensors");
    for (int again = 0; again < 2; again++)
        program_assert_success(program_line("export run mine.safetensors"));
    unlink("mine.pack");
    for (int again = 0; again < 2; again++)
        program_assert_success(program_line("data pack good.yaml mine.pack"));
}

/* ---- simultaneously ---- */

#define OVERWRITE_AT_ONCE 3

static int overwrite_count(const char *folder, const char *prefix, const char *file)
{
    DIR *dir = opendir(folder);
    int n = 0;

    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        char path[512];

        if (strncmp(e->d_name, prefix, strlen(prefix)) != 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s/%s", folder, e->d_name, file);
        if (!program_exists(path))
            fail_msg("%s is missing", path);
        n++;
    }
    closedir(dir);
    return n;
}

/* Run the same command that many times at once. */
static void overwrite_at_once(const char *const *args, const char *prefix, const char *file)
{
    pid_t pid[OVERWRITE_AT_ONCE];

    program_remove("runs");
    for (int i = 0; i < OVERWRITE_AT_ONCE; i++) {
        pid[i] = fork();
        assert_true(pid[i] >= 0);
        if (pid[i] == 0) {
            alarm(300);
            if (!freopen("/dev/null", "w", stdout))
                _exit(126);
            execv(overwrite_program, (char *const *)args);
            _exit(127);
        }
    }
    for (int i = 0; i < OVERWRITE_AT_ONCE; i++) {
        int status;

        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    assert_int_equal(overwrite_count("runs", prefix, file), OVERWRITE_AT_ONCE);
}

static void run_directories_of_one_second_differ(void **state)
{
    static const char *const train[] = {"cohort", "train", "good.yaml", "-n", "1", NULL};
    static const char *const compare[] = {"cohort", "compare",      "good.yaml", "-n",
                                          "1",      "--strategies", "sync",      NULL};

    (void)state;
    program_write_text("good.yaml", OVERWRITE_QUICK);
    overwrite_at_once(train, "mlp-", "summary.json");
    overwrite_at_once(compare, "compare-", "table.json");
    assert_int_equal(overwrite_count("runs", "compare-", "sync-1/summary.json"), OVERWRITE_AT_ONCE);
}

static void compare_refused_at_start_leaves_no_folder(void **state)
{
    (void)state;
    program_write_text("bad.yaml", FIXTURES_CONFIG "epoch: 3\n");
    program_remove("runs");
    program_assert_error(program_line("compare bad.yaml --strategies sync -n 1"), 2, "epochs");
    assert_int_equal(program_count_entries("runs"), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(train_into_used_folder_leaves_its_files),
        cmocka_unit_test(train_into_folder_of_config_leaves_it),
        cmocka_unit_test(compare_into_used_folder_leaves_its_files),
        cmocka_unit_test(output_over_file_of_other_kind_is_refused),
        cmocka_unit_test(run_directories_of_one_second_differ),
        cmocka_unit_test(compare_refused_at_start_leaves_no_folder),
    };
    char path[4096] = "";
    int failed;

    if (argc < 2 || !realpath(argv[1], path) || program_init(argv[1]) != 0)
        return 1;
    overwrite_program = path;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    program_fini();
    return failed;
}
