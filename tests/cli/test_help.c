/* test_help.c - help texts, and hints in errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/program.h"

static const char *const help_commands[] = {
    "train",          "eval",          "list",    "doctor",      "data info",
    "data partition", "inspect",       "compare", "bench train", "bench comm",
    "bench ops",      "bench kernels", "export",  "import",      "ctl",
    "generate",       "slurm",         "watch",   "explain",     "init"};

/* The folder of the sources: the second argument. */
static const char *help_source = "";

#define HELP_COMMANDS (sizeof(help_commands) / sizeof(help_commands[0]))

static void assert_narrow(const char *text)
{
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        if (n > 100)
            fail_msg("wider than 100 columns: %.*s", (int)n, text);
    }
}

static void help_of_every_command_is_printed(void **state)
{
    (void)state;
    for (size_t i = 0; i < HELP_COMMANDS; i++) {
        char line[64], usage[64];
        const program_result *r;

        snprintf(line, sizeof(line), "%s --help", help_commands[i]);
        snprintf(usage, sizeof(usage), "\nUsage: cohort %s", help_commands[i]);
        r = program_line(line);
        program_assert_success(r);
        assert_string_equal(r->err, "");
        assert_non_null(strstr(r->out, usage));
        assert_non_null(strstr(r->out, "\nOptions:\n"));
        assert_non_null(strstr(r->out, "\nExit codes:\n"));
        assert_non_null(strstr(r->out, "\nExample:\n  cohort "));
        assert_narrow(r->out);
    }
}

static void help_in_any_spelling_is_same(void **state)
{
    char *text;

    (void)state;
    program_assert_success(program_line("train --help"));
    text = program_read("stdout.txt");
    assert_string_equal(program_line("train -h")->out, text);
    assert_string_equal(program_line("help train")->out, text);
    /* --help works anywhere in a line with errors */
    assert_string_equal(program_line("train nowhere.yaml --rnks 2 --help")->out, text);
    free(text);
}

static void help_of_program_lists_commands(void **state)
{
    static const char *const lines[] = {"", "--help", "-h", "help"};

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        const program_result *r = program_line(lines[i]);

        program_assert_success(r);
        assert_narrow(r->out);
        for (size_t k = 0; k < HELP_COMMANDS; k++)
            assert_non_null(strstr(r->out, help_commands[k]));
    }
    program_assert_success(program_line("bench --help"));
    assert_non_null(strstr(program_line("bench")->out, "bench comm"));
    assert_non_null(strstr(program_line("help bench")->out, "bench train"));
}

static void version_is_one_line(void **state)
{
    const program_result *r = program_line("--version");
    int major, minor, patch, n = 0;

    (void)state;
    program_assert_success(r);
    assert_int_equal(sscanf(r->out, "cohort %d.%d.%d\n%n", &major, &minor, &patch, &n), 3);
    assert_int_equal(n, strlen(r->out));
}

static void list_of_every_name_is_printed(void **state)
{
    static const struct {
        const char *name, *holds;
    } lists[] = {
        {"config", "batch"},        {"models", "mnist-net"},   {"ops", "conv2d"},
        {"kernels", "ref"},         {"datasets", "synthetic"}, {"partitions", "random"},
        {"optimizers", "momentum"}, {"schedules", "cosine"},   {"strategies", "sync"},
        {"compressors", "topk"},    {"transports", "shm"},     {"metrics", "r2"},
        {"sinks", "jsonl"},
    };
    const char *names = program_line("list")->out;

    (void)state;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        assert_non_null(strstr(names, lists[i].name));
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        char line[64];
        const program_result *r;

        snprintf(line, sizeof(line), "list %s", lists[i].name);
        r = program_line(line);
        program_assert_success(r);
        assert_non_null(strstr(r->out, lists[i].holds));
    }
}

static void doctor_reports_every_check(void **state)
{
    static const char *const checks[] = {"cpu",  "cores", "memory",  "limits", "ref",
                                         "self", "shm",   "gnuplot", "watch"};
    const program_result *r = program_line("doctor");

    (void)state;
    program_assert_success(r);
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
        assert_non_null(strstr(r->out, checks[i]));
    assert_non_null(strstr(r->out, " 0 failures\n"));
}

static void usage_error_names_remedy(void **state)
{
    static const struct {
        const char *line, *words;
    } cases[] = {
        {"trian", "did you mean 'train'"},
        {"bench tran", "did you mean 'bench train'"},
        {"frobnicate", "see `cohort --help`"},
        {"--nonsense", "unknown option '--nonsense'"},
        {"train", "CONFIG is missing"},
        {"train a.yaml b.yaml", "one argument too many"},
        {"train a.yaml --rank 2", "did you mean '--ranks'"},
        {"train a.yaml -z", "unknown option '-z'"},
        {"train a.yaml -n 0", "from 1 to 1024, not '0'"},
        {"train a.yaml -n -1", "from 1 to 1024, not '-1'"},
        {"train a.yaml -n two", "whole number"},
        {"train a.yaml -n 2x", "whole number"},
        {"train a.yaml -n 99999999999999999999", "whole number"},
        {"train a.yaml -n", "needs a value"},
        {"train a.yaml --run-dir --quiet", "needs a value"},
        {"train a.yaml --run-dir=", "needs a value"},
        {"train a.yaml --quiet=yes", "takes no value"},
        {"eval", "RUN_DIR|FILE is missing"},
        {"list colours", "there is no list 'colours'"},
        {"list optimizer", "did you mean 'optimizers'"},
        {"list models --why", "belong to `cohort list kernels`"},
        {"inspect", "FILE|DIR is missing"},
        {"bench comm --op alreduce", "did you mean allreduce"},
        {"bench comm --min-bytes 1024 --max-bytes 512", "larger than --max-bytes"},
        {"bench train", "CONFIG is missing"},
        {"compare", "CONFIG is missing"},
        {"data partition", "CONFIG is missing"},
        {"data partition a.yaml -n 0", "from 1 to 1024, not '0'"},
        {"doctor now", "one argument too many"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const program_result *r = program_line(cases[i].line);

        program_assert_error(r, 2, cases[i].words);
        assert_string_equal(r->out, "");
    }
}

static char *help_read_page(const char *name)
{
    char path[4096], *page;

    snprintf(path, sizeof(path), "%s/docs/%s", help_source, name);
    page = program_read(path);
    if (!page)
        fail_msg("cannot read %s", path);
    return page;
}

/* A key starts its line, indented by at most four. */
static void assert_page_knows_list(const char *page, char *list)
{
    char *line, *rest = list;

    while ((line = strtok_r(rest, "\n", &rest))) {
        size_t indent = strspn(line, " "), n = strcspn(line + indent, " ");
        char quoted[64];

        if (indent > 4 || !strstr(line + indent, "  ") || line[indent] == '`')
            continue;
        snprintf(quoted, sizeof(quoted), "`%.*s", (int)n, line + indent);
        if (!strstr(page, quoted))
            fail_msg("docs/configuration.md does not know %s`", quoted);
    }
}

static void configuration_page_has_every_key(void **state)
{
    static const char *const lists[] = {"config",        "models",     "ops",        "datasets",
                                        "partitions",    "schedules",  "optimizers", "strategies",
                                        "augmentations", "compressors"};
    char *page = help_read_page("configuration.md");

    (void)state;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        char line[64], *list;

        snprintf(line, sizeof(line), "list %s", lists[i]);
        program_assert_success(program_line(line));
        list = program_read("stdout.txt");
        assert_page_knows_list(page, list);
        free(list);
    }
    free(page);
}

/* Standard output on a full disk is an error, not a silent success. */
static void output_to_full_disk_is_an_error(void **state)
{
    static const char *const args[] = {"list", "ops", NULL};
    const program_options full = {.stdout_path = "/dev/full"};

    (void)state;
    if (!program_exists("/dev/full")) {
        print_message("skipped: no /dev/full here\n");
        skip();
    }
    program_assert_error(program_run(args, &full), 1, "standard output");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_of_every_command_is_printed),
        cmocka_unit_test(help_in_any_spelling_is_same),
        cmocka_unit_test(help_of_program_lists_commands),
        cmocka_unit_test(version_is_one_line),
        cmocka_unit_test(list_of_every_name_is_printed),
        cmocka_unit_test(doctor_reports_every_check),
        cmocka_unit_test(usage_error_names_remedy),
        cmocka_unit_test(configuration_page_has_every_key),
        cmocka_unit_test(output_to_full_disk_is_an_error),
    };
    int failed;

    if (argc > 2)
        help_source = argv[2];
    if (program_init(argc > 1 ? argv[1] : NULL) != 0)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    program_fini();
    return failed;
}
