/*
 * test_files.c - files of a run directory that are not regular, too large, or links: each command
 * reports that in one line, in time, and a link's target is not changed.
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
#include <sys/stat.h>
#include <unistd.h>

#include "cli/fixtures.h"
#include "cli/program.h"
#include "shell.h"

#define FILES_STEP     "run/checkpoints/step-8/"
#define FILES_PRECIOUS "the only copy\n"
#define FILES_CONFIG   FIXTURES_CONFIG "seed: 3\n"
#define FILES_MANY     ((off_t)1 << 40)

typedef enum files_kind {
    FILES_FIFO,
    FILES_DEVICE, /* a link to /dev/zero */
    FILES_LINK,   /* to a valid copy of itself */
    FILES_FOLDER,
    FILES_EMPTY,
    FILES_LONGER,  /* by one byte */
    FILES_ENDLESS, /* sparse, 1 TiB */
    FILES_KINDS
} files_kind;

static const char *const files_names[FILES_KINDS] = {
    "a pipe", "a link to a device", "a link", "a folder", "empty", "longer", "endless"};

static const program_result *files_run(const char *line)
{
    const char *args[PROGRAM_MAX_ARGS] = {NULL};
    static char text[1024];
    int n = 0;

    snprintf(text, sizeof(text), "%s", line);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        args[n++] = word;
    return program_run(args, NULL);
}

static void files_shell(const char *command)
{
    if (shell_run("%s", command) != 0)
        fail_msg("cannot run: %s", command);
}

/* "run": one epoch of 8 steps, with its checkpoint; a copy is kept as "sound". */
static void files_make_run(void)
{
    if (!program_exists("sound")) {
        program_write_text("good.yaml", FILES_CONFIG);
        program_assert_success(
            files_run("train good.yaml -n 1 --set epochs=1 --run-dir sound --quiet"));
    }
    files_shell("rm -rf run copy && cp -a sound run");
}

/* Returns whether the file system supports it. */
static bool files_put(const char *path, files_kind kind)
{
    char other[512];
    struct stat info;
    int fd = -1;

    assert_int_equal(stat(path, &info), 0);
    if (kind < FILES_EMPTY && kind != FILES_LINK)
        assert_int_equal(unlink(path), 0);
    switch (kind) {
    case FILES_FIFO:
        return mkfifo(path, 0600) == 0;
    case FILES_DEVICE:
        return symlink("/dev/zero", path) == 0;
    case FILES_LINK:
        snprintf(other, sizeof(other), "%s/copy", getenv("COHORT_TEST_FOLDER"));
        return rename(path, other) == 0 && symlink(other, path) == 0;
    case FILES_FOLDER:
        return mkdir(path, 0700) == 0;
    case FILES_EMPTY:
        return truncate(path, 0) == 0;
    case FILES_LONGER:
        fd = open(path, O_WRONLY | O_APPEND);
        assert_int_equal(write(fd, "\0", 1), 1);
        return close(fd) == 0;
    default:
        return truncate(path, FILES_MANY) == 0;
    }
}

/* `words` of the error; the first `kinds` of the enum are errors for this file. */
typedef struct files_case {
    const char *line, *path;
    int exit_code, kinds;
} files_case;

static void files_check(const files_case *c)
{
    for (int kind = 0; kind < c->kinds; kind++) {
        const program_result *r;

        files_make_run();
        print_message("  %s: %s is %s\n", c->line, c->path, files_names[kind]);
        if (!files_put(c->path, (files_kind)kind)) {
            print_message("  skipped: the file system has none\n");
            continue;
        }
        r = files_run(c->line);
        program_assert_error(r, c->exit_code, strrchr(c->path, '/') + 1);
        assert_int_equal(r->orphans, 0);
        assert_false(program_exists("made.safetensors"));
    }
}

static void resume_of_no_regular_file_is_refused(void **state)
{
    static const char line[] = "train good.yaml -n 1 --run-dir run --resume";
    static const files_case cases[] = {
        {line, FILES_STEP "weights.safetensors", 3, FILES_KINDS},
        {line, FILES_STEP "state.safetensors", 3, FILES_KINDS},
        {line, FILES_STEP "manifest.json", 3, FILES_KINDS},
        {line, "run/metrics.jsonl", 3, FILES_FOLDER},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        /* Each damaged checkpoint is reported before the last line, which says that none is
           valid. */
        for (int kind = 0; kind < cases[i].kinds; kind++) {
            const program_result *r;

            files_make_run();
            print_message("  %s is %s\n", cases[i].path, files_names[kind]);
            if (!files_put(cases[i].path, (files_kind)kind))
                continue;
            r = files_run(line);
            program_assert_error(r, 3, i == 3 ? "metrics.jsonl" : "no valid checkpoint among 1");
            assert_non_null(strstr(r->err, strrchr(cases[i].path, '/') + 1));
            assert_int_equal(r->orphans, 0);
        }
    }
    files_make_run(); /* and a line without a newline */
    assert_int_equal(truncate("run/metrics.jsonl", FILES_MANY), 0);
    program_assert_error(files_run(line), 3, "metrics.jsonl");
    files_make_run();
    program_assert_success(files_run(line));
}

static void inspect_of_no_regular_file_is_refused(void **state)
{
    static const char line[] = "inspect " FILES_STEP;
    static const files_case cases[] = {
        {line, FILES_STEP "weights.safetensors", 3, FILES_KINDS},
        {line, FILES_STEP "state.safetensors", 3, FILES_KINDS},
        {line, FILES_STEP "manifest.json", 3, FILES_KINDS},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        files_check(&cases[i]);
    files_make_run(); /* files named by the user may be links */
    assert_int_equal(symlink("run/final.safetensors", "copy"), 0);
    program_assert_success(files_run("inspect copy"));
}

static void inspect_name_with_control_characters_is_escaped(void **state)
{
    static const char line[] = "inspect run\x1b[2J\n";
    const program_result *r;

    (void)state;
    files_make_run();
    assert_int_equal(rename("run", line + sizeof("inspect ") - 1), 0);
    r = files_run(line);
    program_assert_success(r);
    assert_null(strchr(r->out, '\x1b'));
    assert_non_null(strstr(r->out, "run          run\\x1b[2J\\n\n"));
    assert_non_null(strstr(r->out, "config       run\\x1b[2J\\n/config.yaml\n"));
    assert_non_null(strstr(r->out, "`cohort eval run\\x1b[2J\\n`"));
}

static void eval_and_export_of_no_regular_file_are_refused(void **state)
{
    static const files_case cases[] = {
        {"eval run", "run/final.safetensors", 3, FILES_KINDS},
        {"eval run", "run/config.yaml", 2, FILES_FOLDER + 1},
        {"eval run --checkpoint latest", FILES_STEP "weights.safetensors", 3, FILES_KINDS},
        {"export run made.safetensors", "run/final.safetensors", 3, FILES_KINDS},
        {"export run made.safetensors --checkpoint 8", FILES_STEP "weights.safetensors", 3,
         FILES_KINDS},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        files_check(&cases[i]);
}

/* A cell with unreadable results is run again; a link's target is not changed. */
static void compare_of_no_regular_file_runs_cell_again(void **state)
{
    static const char line[] = "compare good.yaml --strategies sync -n 1 --set epochs=1 --out cmp "
                               "--resume --quiet";
    static const char *const files[] = {"cmp/sync-1/metrics.jsonl", "cmp/sync-1/summary.json",
                                        "cmp/sync-1/log.txt", "cmp/plots.log"};

    (void)state;
    program_write_text("good.yaml", FILES_CONFIG);
    program_assert_success(files_run(line));
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        for (int kind = FILES_FIFO; kind < FILES_FOLDER; kind++) {
            char *kept;

            print_message("  %s is %s\n", files[i], files_names[kind]);
            if (!program_exists(files[i]))
                program_write_text(files[i], "");
            program_write_text("copy", FILES_PRECIOUS);
            if (kind == FILES_LINK) {
                char *target = realpath("copy", NULL);

                assert_non_null(target);
                assert_int_equal(unlink(files[i]), 0);
                assert_int_equal(symlink(target, files[i]), 0);
                free(target);
            } else {
                assert_true(files_put(files[i], (files_kind)kind));
            }
            program_assert_success(files_run(line));
            kept = program_read("copy");
            assert_string_equal(kept, FILES_PRECIOUS);
            free(kept);
        }
    unlink("cmp/sync-1/config.yaml");
    assert_int_equal(mkfifo("cmp/sync-1/config.yaml", 0600), 0);
    program_assert_error(files_run(line), 3, "config.yaml");
}

/* ---- writing ---- */

static void train_does_not_write_through_links(void **state)
{
    static const char *const files[] = {".lock",
                                        "control.sock",
                                        "metrics.jsonl",
                                        "config.yaml",
                                        "final.safetensors",
                                        "summary.json",
                                        "checkpoints/.new-step-16",
                                        "checkpoints/.old-step-8"};
    char *target, *kept;

    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        const bool folder = strncmp(files[i], "checkpoints", 11) == 0;
        char path[128];

        files_make_run();
        print_message("  %s is a link\n", files[i]);
        program_remove("dear");
        mkdir("dear", 0700);
        program_write_text("dear/copy", FILES_PRECIOUS);
        target = realpath(folder ? "dear" : "dear/copy", NULL);
        snprintf(path, sizeof(path), "run/%s", files[i]);
        unlink(path);
        assert_int_equal(symlink(target, path), 0);
        (void)files_run("train good.yaml -n 1 --run-dir run --resume --quiet");
        kept = program_read("dear/copy");
        assert_non_null(kept);
        assert_string_equal(kept, FILES_PRECIOUS);
        assert_int_equal(program_count_entries("dear"), 1);
        free(kept);
        free(target);
    }
}

static void train_lock_that_is_a_link_is_refused(void **state)
{
    static const char line[] = "train good.yaml -n 1 --run-dir run --resume --quiet";
    char *kept;

    (void)state;
    files_make_run();
    unlink("run/.lock");
    assert_int_equal(symlink("/dev/null", "run/.lock"), 0);
    program_assert_error(files_run(line), 1, ".lock");
    unlink("run/.lock");
    assert_int_equal(mkfifo("run/.lock", 0600), 0);
    program_assert_error(files_run(line), 1, ".lock");
    unlink("run/.lock"); /* a hard link to a file that matters */
    program_write_text("copy", "7\n");
    assert_int_equal(link("copy", "run/.lock"), 0);
    program_assert_error(files_run(line), 2, ".lock");
    kept = program_read("copy");
    assert_string_equal(kept, "7\n");
    free(kept);
    unlink("run/.lock");
    program_write_text("run/.lock", "not the number of a process, but words that somebody wrote\n");
    program_assert_error(files_run(line), 2, ".lock");
    unlink("run/.lock");
    if (geteuid() == 0) { /* of a user who does not own the folder */
        program_write_text("run/.lock", "7\n");
        if (chown("run/.lock", 12345, 12345) == 0)
            program_assert_error(files_run(line), 2, ".lock");
        unlink("run/.lock");
    }
    program_write_text("run/control.sock", FILES_PRECIOUS);
    program_assert_error(files_run(line), 2, "control.sock");
    kept = program_read("run/control.sock");
    assert_string_equal(kept, FILES_PRECIOUS);
    free(kept);
}

static void run_dir_writable_by_all_is_reported(void **state)
{
    static const char line[] = "train good.yaml -n 1 --run-dir open --quiet --set epochs=1";
    const program_result *r;

    (void)state;
    program_write_text("good.yaml", FILES_CONFIG);
    mkdir("open", 0700);
    assert_int_equal(chmod("open", 0777), 0);
    r = files_run(line);
    program_assert_success(r);
    assert_non_null(strstr(r->err, "warning: open: every user of this machine"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resume_of_no_regular_file_is_refused),
        cmocka_unit_test(inspect_of_no_regular_file_is_refused),
        cmocka_unit_test(inspect_name_with_control_characters_is_escaped),
        cmocka_unit_test(eval_and_export_of_no_regular_file_are_refused),
        cmocka_unit_test(compare_of_no_regular_file_runs_cell_again),
        cmocka_unit_test(train_does_not_write_through_links),
        cmocka_unit_test(train_lock_that_is_a_link_is_refused),
        cmocka_unit_test(run_dir_writable_by_all_is_reported),
    };
    int failed;

    if (program_init(argc > 1 ? argv[1] : NULL) != 0)
        return 1;
    {
        char *here = getcwd(NULL, 0);

        setenv("COHORT_TEST_FOLDER", here, 1);
        free(here);
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    program_fini();
    return failed;
}
