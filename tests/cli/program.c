/*
 * program.c - starts, supervises and ends the program under test.
 *
 * The test is a subreaper, so that processes left behind by the program become its children.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/program.h"
#include "emulated.h"
#include "shell.h"
#include "waits.h"

#define PROGRAM_GRACE_S 30 /* for children to end after their parent */

static char program_path[4096], program_folder[4096];
static program_result program_last;

int program_init(const char *path)
{
    const char *tmp = getenv("TMPDIR");

    /* The program would inherit signals that are ignored. */
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    if (!path || !realpath(path, program_path)) {
        fprintf(stderr, "give the program to test as the only argument\n");
        return -1;
    }
    snprintf(program_folder, sizeof(program_folder), "%s/cohort-cli-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(program_folder) || chdir(program_folder) != 0)
        return -1;
    return adopt_orphans();
}

static int program_remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

void program_remove(const char *path)
{
    (void)nftw(path, program_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void program_fini(void)
{
    if (chdir("/") == 0)
        program_remove(program_folder);
}

static int program_open(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
}

/* In the child. `terminal` < 0: none. */
static void program_become(const char *const *argv, const program_options *o, int terminal)
{
    int out =
        terminal >= 0 ? terminal : program_open(o->stdout_path ? o->stdout_path : "stdout.txt");
    int err = program_open("stderr.txt"), in = open("/dev/null", O_RDONLY);

    if (out < 0 || err < 0 || in < 0)
        _exit(126);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    setpgid(0, 0);
    if (o->max_file_bytes) {
        const struct rlimit limit = {o->max_file_bytes, o->max_file_bytes};

        setrlimit(RLIMIT_FSIZE, &limit);
    }
    execvp(argv[0], (char *const *)argv);
    _exit(127);
}

static void program_open_terminal(int *master, int *slave)
{
    struct winsize size = {.ws_row = 24, .ws_col = 100};

    assert_int_equal(openpty(master, slave, NULL, NULL, &size), 0);
    assert_int_equal(fcntl(*master, F_SETFL, O_NONBLOCK), 0);
    setenv("TERM", "xterm", 1);
    remove("stdout.txt");
}

static bool program_has_bytes(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && info.st_size > 0;
}

/* The first child of `pid`, of whichever of its threads; `pid` itself if it has none. */
static pid_t program_child(pid_t pid)
{
    pid_t child = pid;
    char path[64];
    glob_t threads;

    snprintf(path, sizeof(path), "/proc/%d/task/*/children", (int)pid);
    if (glob(path, 0, NULL, &threads) != 0)
        return pid;
    for (size_t i = 0; i < threads.gl_pathc && child == pid; i++) {
        FILE *file = fopen(threads.gl_pathv[i], "r");

        if (file && fscanf(file, "%d", &child) != 1)
            child = pid;
        if (file)
            fclose(file);
    }
    globfree(&threads);
    return child;
}

/* Append the terminal's output to stdout.txt; an unread terminal would block the program. */
static void program_drain(int terminal, const char *path)
{
    char text[4096];
    ssize_t n;
    FILE *file = terminal >= 0 ? fopen(path, "a") : NULL;

    while (file && (n = read(terminal, text, sizeof(text))) > 0)
        (void)fwrite(text, 1, (size_t)n, file);
    if (file)
        fclose(file);
}

static int program_timeout_s(const program_options *o)
{
    return o->timeout_s ? o->timeout_s : WAITS_S;
}

/* Wait for `pid` within the time limit; sends the option's signal meanwhile. */
static int program_wait(pid_t pid, const program_options *o, int terminal)
{
    const uint64_t start = co_clock_ns();
    bool sent = o->signal == 0;
    int status;

    do {
        pid_t got = waitpid(pid, &status, WNOHANG);

        program_drain(terminal, "stdout.txt");
        if (got == pid)
            return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        if (!sent && program_has_bytes(o->signal_at)) {
            kill(o->signal_child ? program_child(pid) : pid, o->signal);
            sent = true;
        }
        co_clock_sleep_us(2000);
    } while (co_clock_seconds(start, co_clock_ns()) < program_timeout_s(o));
    kill(-pid, SIGKILL);
    waitpid(pid, &status, 0);
    return -1;
}

/* Count and end children that are still alive, so that they do not affect the next test. */
static int program_reap_orphans(pid_t group)
{
    const uint64_t start = co_clock_ns();
    int left = 0;

    while (co_clock_seconds(start, co_clock_ns()) < PROGRAM_GRACE_S) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
            return 0;
        co_clock_sleep_us(2000);
    }
    kill(-group, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0)
        left++;
    return left;
}

static void program_read_into(char *out, const char *path)
{
    FILE *file = fopen(path, "r");
    size_t n = file ? fread(out, 1, PROGRAM_MAX_TEXT - 1, file) : 0;

    out[n] = '\0';
    if (file)
        fclose(file);
}

const program_result *program_run(const char *const *args, const program_options *options)
{
    static const program_options none;
    const program_options *o = options ? options : &none;
    const char *argv[2 * PROGRAM_MAX_ARGS + 2];
    int n = 0, master = -1, slave = -1;
    pid_t pid;

    for (int i = 0; o->before[i]; i++)
        argv[n++] = o->before[i];
    argv[n++] = program_path;
    for (int i = 0; args[i] && i < PROGRAM_MAX_ARGS; i++)
        argv[n++] = args[i];
    argv[n] = NULL;
    if (o->terminal)
        program_open_terminal(&master, &slave);
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        program_become(argv, o, slave);
    if (slave >= 0)
        close(slave);
    program_last.exit_code = program_wait(pid, o, master);
    if (master >= 0)
        close(master);
    program_last.orphans = program_reap_orphans(pid);
    program_read_into(program_last.out, "stdout.txt");
    program_read_into(program_last.err, "stderr.txt");
    if (program_last.exit_code < 0)
        fail_msg("not done within %d s: %s %s", program_timeout_s(o), args[0], program_last.err);
    return &program_last;
}

const program_result *program_line(const char *line)
{
    const char *args[PROGRAM_MAX_ARGS + 1] = {NULL};
    char text[4096], *at = text;
    int n = 0;

    assert_true(strlen(line) < sizeof(text));
    snprintf(text, sizeof(text), "%s", line);
    while (*at && n < PROGRAM_MAX_ARGS) {
        const char *end = *at == '\'' ? "'" : " ";

        at += *at == '\'';
        args[n++] = at;
        at += strcspn(at, end);
        if (*at)
            *at++ = '\0';
        at += strspn(at, " ");
    }
    return program_run(args, NULL);
}

void program_assert_error(const program_result *r, int exit_code, const char *words)
{
    const char *line = strstr(r->err, "cohort: error: ");

    if (r->exit_code != exit_code)
        fail_msg("exit code %d, expected %d; stderr: %s", r->exit_code, exit_code, r->err);
    if (!line) {
        fail_msg("no error message; stderr: %s", r->err);
        return;
    }
    if ((line != r->err && line[-1] != '\n') || strchr(line, '\n') != line + strlen(line) - 1)
        fail_msg("the error is not one last line; stderr: %s", r->err);
    if (!strstr(line, words))
        fail_msg("the message lacks '%s': %s", words, line);
    assert_int_equal(r->orphans, 0);
}

void program_assert_success(const program_result *r)
{
    if (r->exit_code != 0)
        fail_msg("exit code %d; stderr: %s", r->exit_code, r->err);
    assert_int_equal(r->orphans, 0);
}

void program_need_mpi(void)
{
    const program_result *r = program_line("list transports");
    const char *mpi = strstr(r->out, "\nmpi ");

    if (mpi && !strstr(mpi, "not here") && shell_has("mpiexec"))
        return;
    print_message("skipped: this build or machine has no MPI\n");
    skip();
}

json_t *program_json(const char *line)
{
    const program_result *r = program_line(line);
    json_t *root;

    program_assert_success(r);
    root = json_loads(r->out, 0, NULL);
    assert_true(json_is_object(root));
    return root;
}

json_t *program_summary(const char *dir)
{
    json_error_t error;
    json_t *summary;
    char path[256];

    snprintf(path, sizeof(path), "%s/summary.json", dir);
    summary = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!summary)
        fail_msg("%s: %s", path, error.text);
    return summary;
}

void program_weights(char out[65], const char *dir)
{
    json_t *summary = program_summary(dir);
    const char *hash = json_string_value(json_object_get(summary, "weights_sha256"));

    assert_non_null(hash);
    assert_int_equal(strlen(hash), 64);
    memcpy(out, hash, 65);
    json_decref(summary);
}

void program_write(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

void program_write_text(const char *path, const char *text)
{
    program_write(path, text, strlen(text));
}

char *program_read(const char *path)
{
    char *text = calloc(1, PROGRAM_MAX_TEXT);

    assert_non_null(text);
    if (!program_exists(path)) {
        free(text);
        return NULL;
    }
    program_read_into(text, path);
    return text;
}

bool program_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

int program_count_entries(const char *path)
{
    DIR *dir = opendir(path);
    int n = 0;

    for (struct dirent *e; dir && (e = readdir(dir));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    if (dir)
        closedir(dir);
    return n;
}
