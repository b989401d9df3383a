/* test_pipe.c - a run whose output nobody reads continues. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "cli/fixtures.h"
#include "cli/program.h"

#define PIPE_CONFIG FIXTURES_CONFIG "log_every: 1\n"

/* `script` runs "$@", the program and its arguments; the run completes without errors. */
static void pipe_runs(const char *script, const char *more, const char *value)
{
    const char *args[] = {"train", "pipe.yaml", "-n", "2", "--run-dir", "run", more, value, NULL};
    const program_options options = {.before = {"bash", "-c", script, "pipe", NULL}};
    const program_result *r;
    json_t *summary;

    print_message("  %s%s%s\n", script, more ? " " : "", more ? more : "");
    program_remove("run");
    program_write_text("pipe.yaml", PIPE_CONFIG);
    if (!more)
        args[6] = NULL;
    r = program_run(args, &options);
    program_assert_success(r);
    assert_string_equal(r->err, "");
    summary = program_summary("run");
    assert_non_null(json_object_get(summary, "train_loss"));
    json_decref(summary);
    assert_true(program_exists("run/checkpoints/step-16/manifest.json"));
    assert_true(program_exists("run/final.safetensors"));
}

static const char *const pipe_scripts[] = {
    "set -o pipefail; \"$@\" | head -1 >/dev/null", /* a reader that ends */
    "set -o pipefail; \"$@\" | true",
    "set -o pipefail; \"$@\" 2>&1 | true", /* of both streams */
    "\"$@\" >&-",                          /* closed from the start: no file gets its number */
    "\"$@\" <&- >&- 2>&-",
};

static void run_without_reader_continues(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(pipe_scripts) / sizeof(pipe_scripts[0]); i++)
        pipe_runs(pipe_scripts[i], NULL, NULL);
    pipe_runs(pipe_scripts[0], "--set", "log=lines");
}

/* The launcher keeps standard output open for its ranks. */
static void run_of_mpiexec_without_reader_continues(void **state)
{
    (void)state;
    program_need_mpi();
    pipe_runs(pipe_scripts[0], "--mpiexec", PROGRAM_MPIEXEC_LINE);
    pipe_runs(pipe_scripts[1], "--mpiexec", PROGRAM_MPIEXEC_LINE);
}

/* Of commands that print as they go. */
static void output_without_reader_is_no_error(void **state)
{
    static const char *const lines[][12] = {
        {"generate", "run", "--prompt", "w", "--tokens", "100000000", NULL},
        {"bench", "comm", "-n", "1", "--op", "allreduce", "--max-bytes", "65536", NULL},
        {"bench", "comm", "-n", "2", "--op", "allreduce", "--max-bytes", "65536", NULL},
        {"bench", "comm", "-n", "2", "--tune", "--max-bytes", "1048576", NULL}};
    const program_options options = {.before = {"bash", "-c", pipe_scripts[1], "pipe", NULL}};

    (void)state;
    program_remove("run");
    program_write_text("text.txt", "what is learned here is no more than a few words of text");
    program_write_text("text.yaml",
                       "model: {name: gpt2, layers: 1, heads: 1, width: 8, dropout: 0}\n"
                       "data: {name: text, path: text.txt, context: 4}\n"
                       "batch: 4\nmax_steps: 2\nevaluate: false\n");
    program_assert_success(program_line("train text.yaml --quiet --run-dir run"));
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        const program_result *r = program_run(lines[i], &options);

        program_assert_success(r);
        assert_string_equal(r->err, "");
    }
}

/* A full disk is still an error. */
static void output_that_cannot_be_written_is_an_error(void **state)
{
    const char *args[] = {"list", "models", NULL};
    const program_options full = {.stdout_path = "/dev/full"};
    const program_options gone = {
        .before = {"bash", "-c", "set -o pipefail; \"$@\" | true", "pipe", NULL}};

    (void)state;
    program_assert_error(program_run(args, &full), 1, "standard output");
    program_assert_success(program_run(args, &gone));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_without_reader_continues),
        cmocka_unit_test(run_of_mpiexec_without_reader_continues),
        cmocka_unit_test(output_without_reader_is_no_error),
        cmocka_unit_test(output_that_cannot_be_written_is_an_error),
    };
    int failed;

    if (program_init(argc > 1 ? argv[1] : NULL) != 0)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    program_fini();
    return failed;
}
