/*
 * main.c - the command line: the table of commands; turns a status into an exit code and prints the
 * error.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <cohort/version.h>

#include "cli/cli.h"
#include "core/config.h"
#include "core/isa.h"
#include "core/mem.h"

static const co_command *const main_commands[] = {
    /* runs */
    &co_command_train,
    &co_command_eval,
    &co_command_runs,
    &co_command_explain,
    &co_command_report,
    &co_command_watch,
    &co_command_compare,
    /* speed */
    &co_command_bench_train,
    &co_command_bench_comm,
    &co_command_bench_ops,
    &co_command_bench_kernels,
    &co_command_bench_data,
    &co_command_plan,
    &co_command_tune,
    /* networks and weights */
    &co_command_inspect,
    &co_command_generate,
    &co_command_predict,
    &co_command_export,
    &co_command_import,
    /* data */
    &co_command_init,
    &co_command_data_get,
    &co_command_data_info,
    &co_command_data_partition,
    &co_command_data_pack,
    &co_command_data_shard,
    &co_command_data_tokenize,
    /* this machine, and others */
    &co_command_list,
    &co_command_ctl,
    &co_command_slurm,
    &co_command_doctor,
    NULL,
};

#define MAIN_COMMANDS (sizeof(main_commands) / sizeof(main_commands[0]) - 1)

static void main_print_commands(FILE *out, const char *group)
{
    size_t n = group ? strlen(group) : 0;

    for (size_t i = 0; i < MAIN_COMMANDS; i++) {
        const co_command *c = main_commands[i];

        if (!group || (strncmp(c->name, group, n) == 0 && c->name[n] == ' '))
            fprintf(out, "  %-14s  %s\n", c->name, c->summary);
    }
}

static void main_print_usage(FILE *out)
{
    fprintf(out, "cohort - distributed data-parallel training of neural networks\n\n"
                 "Usage: cohort COMMAND [arguments] [options]\n\nCommands:\n");
    main_print_commands(out, NULL);
    fprintf(out, "\n`cohort COMMAND --help` explains a command; `cohort --version` names the "
                 "version.\n\nTo begin with:\n"
                 "  cohort train configs/fashion-mnist.yaml -n 2\n");
}

/* How many words of argv match the command's name; 0: none. */
static int main_match(const co_command *command, int argc, const char *const *argv)
{
    const char *space = strchr(command->name, ' ');
    size_t n = space ? (size_t)(space - command->name) : strlen(command->name);

    if (argc < 1 || strlen(argv[0]) != n || strncmp(argv[0], command->name, n) != 0)
        return 0;
    if (!space)
        return 1;
    return argc >= 2 && strcmp(argv[1], space + 1) == 0 ? 2 : 0;
}

/* Whether `word` is the first word of command names, as "bench" of "bench train". */
static bool main_is_group(const char *word)
{
    size_t n = strlen(word);

    for (const co_command *const *c = main_commands; *c; c++)
        if (strncmp((*c)->name, word, n) == 0 && (*c)->name[n] == ' ')
            return true;
    return false;
}

static co_status main_unknown(int argc, const char *const *argv)
{
    const char *names[MAIN_COMMANDS], *near;
    bool group = main_is_group(argv[0]);
    char name[64];

    for (size_t i = 0; main_commands[i]; i++)
        names[i] = main_commands[i]->name;
    snprintf(name, sizeof(name), group && argc > 1 ? "%s %s" : "%s", argv[0],
             argc > 1 ? argv[1] : "");
    near = co_nearest(name, names, MAIN_COMMANDS);
    if (argv[0][0] == '-')
        return co_fail(CO_E_USAGE,
                       "unknown option '%s'; options follow a command; see `cohort "
                       "--help`",
                       argv[0]);
    if (near)
        return co_fail(CO_E_USAGE, "unknown command '%s'; did you mean '%s'? See `cohort --help`",
                       name, near);
    return co_fail(CO_E_USAGE, "unknown command '%s'; see `cohort --help`", name);
}

/* The command that argv starts with, and the number of words in its name; NULL: none. */
static const co_command *main_find(int *words, int argc, const char *const *argv)
{
    for (size_t i = 0; i < MAIN_COMMANDS; i++) {
        *words = main_match(main_commands[i], argc, argv);
        if (*words)
            return main_commands[i];
    }
    return NULL;
}

/* Replace a CONFIG that names an installed config with its path, which `path` holds. */
static co_status main_find_config(char path[CLI_MAX_PATH], cli_parsed *parsed,
                                  const co_command *command)
{
    for (int i = 0; i < parsed->n_argument && command->arguments[i].name; i++)
        if (strcmp(command->arguments[i].name, "CONFIG") == 0) {
            CO_TRY(cli_config_find(path, parsed->argument[i]));
            parsed->argument[i] = path;
        }
    return CO_OK;
}

static co_status main_run(const co_command *command, int argc, const char *const *argv)
{
    char config[CLI_MAX_PATH];
    cli_parsed parsed = {0};
    co_status st;

    parsed.options = co_calloc(1, command->options_size ? command->options_size : 1);
    parsed.argument = co_calloc((size_t)argc + 1, sizeof(*parsed.argument));
    st = parsed.options && parsed.argument ? CO_OK : CO_E_NOMEM;
    if (st == CO_OK && command->defaults)
        memcpy(parsed.options, command->defaults, command->options_size);
    if (st == CO_OK)
        st = cli_parse(&parsed, command, argc, argv);
    if (st == CO_OK && !parsed.help)
        st = main_find_config(config, &parsed, command);
    if (st == CO_OK && !parsed.help)
        st = cli_plugins_load(command, parsed.options, parsed.argument);
    if (st == CO_OK && parsed.help)
        cli_print_help(stdout, command);
    else if (st == CO_OK)
        st = command->run(parsed.options, parsed.n_argument, parsed.argument);
    co_free(parsed.argument);
    co_free(parsed.options);
    return st;
}

static bool main_is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

/* `cohort help train`, and groups: `cohort bench`, `cohort bench --help`. */
static co_status main_help(int argc, const char *const *argv)
{
    int words;
    const co_command *command = main_find(&words, argc, argv);

    if (command) {
        cli_print_help(stdout, command);
        return CO_OK;
    }
    if (!main_is_group(argv[0]) || (argc > 1 && !main_is_help(argv[1])))
        return main_unknown(argc, argv);
    printf("Commands:\n");
    main_print_commands(stdout, argv[0]);
    return CO_OK;
}

static co_status main_dispatch(int argc, const char *const *argv)
{
    const co_command *command;
    int words;

    if (argc == 0 || (argc == 1 && main_is_help(argv[0]))) {
        main_print_usage(stdout);
        return CO_OK;
    }
    if (strcmp(argv[0], "--version") == 0) {
        printf("cohort %s\n", co_version());
        return CO_OK;
    }
    if (main_is_help(argv[0]))
        return main_help(argc - 1, argv + 1);
    CO_TRY(co_isa_check());
    command = main_find(&words, argc, argv);
    return command ? main_run(command, argc - words, argv + words) : main_help(argc, argv);
}

/* Such as `| head -1`, which is not an error. */
static bool main_reader_is_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};

    return poll(&out, 1, 0) > 0 && (out.revents & POLLERR);
}

/* Open missing standard descriptors on /dev/null, so that no file opened later gets their
   numbers. */
static void main_open_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            return;
}

/* The rest of the buffer may not fit on the disk, or the reader may be gone. */
static co_status main_flush(co_status st)
{
    bool failed = fflush(stdout) != 0 || ferror(stdout);

    if (failed && st == CO_OK && !main_reader_is_gone())
        return co_fail(CO_E_IO, "cannot write to standard output: %s", strerror(errno));
    return st;
}

/*
 * Under MPI all ranks stop for the same reason, and the root reports it. mpiexec ends the other
 * ranks once one exits with a code other than 0, so that must be the root, after it has printed its
 * message.
 */
static bool main_is_told_by_root(co_status st)
{
    return (st == CO_E_INTERRUPTED || st == CO_E_TERMINATED) && !co_launch_is_root();
}

static void main_complain(void)
{
    /* Clear a progress bar that a dead rank left on this line. */
    if (isatty(STDOUT_FILENO) && isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    fprintf(stderr, "cohort: error: %s\n", co_error_message());
}

int main(int argc, char **argv)
{
    co_status st;

    /* Make a closed reader and a file size limit errors of write() instead of signals. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    main_open_standard();
    st = main_dispatch(argc - 1, (const char *const *)argv + 1);
    st = main_flush(st);
    if (main_is_told_by_root(st))
        return 0;
    if (st != CO_OK)
        main_complain();
    return co_exit_code(st);
}
