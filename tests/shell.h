/* shell.h - commands of the shell, which a test puts together from its folder and names. */
#ifndef CO_TESTS_SHELL_H
#define CO_TESTS_SHELL_H

#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Starts the command that `format` gives, its output going to `out` if that is not -1; -1 if it
   cannot be started or is longer than `line`. */
static inline pid_t shell_start(int out, const char *format, va_list args)
{
    char line[4608], *argv[] = {"sh", "-c", line, NULL};
    posix_spawn_file_actions_t actions;
    const int n = vsnprintf(line, sizeof(line), format, args);
    pid_t pid = -1;
    bool started;

    if (n < 0 || (size_t)n >= sizeof(line) || posix_spawn_file_actions_init(&actions) != 0)
        return -1;
    started = (out < 0 || posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO) == 0) &&
              posix_spawn(&pid, "/bin/sh", &actions, NULL, argv, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    return started ? pid : -1;
}

/* Its exit code; -1 if a signal has ended it or it was not started. */
static inline int shell_end(pid_t pid)
{
    int status = 0;

    if (pid < 0)
        return -1;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Runs a command to its end; its exit code, or -1. */
__attribute__((format(printf, 1, 2))) static inline int shell_run(const char *format, ...)
{
    va_list args;
    pid_t pid;

    va_start(args, format);
    pid = shell_start(-1, format, args);
    va_end(args);
    return shell_end(pid);
}

/* The same, with the first size - 1 bytes of what it prints in `out`, as text. */
__attribute__((format(printf, 3, 4))) static inline int shell_read(char *out, size_t size,
                                                                   const char *format, ...)
{
    FILE *from = NULL;
    int ends[2];
    va_list args;
    pid_t pid;
    size_t n;

    out[0] = '\0';
    if (pipe(ends) != 0)
        return -1;
    va_start(args, format);
    pid = shell_start(ends[1], format, args);
    va_end(args);
    close(ends[1]);
    from = fdopen(ends[0], "r");
    n = from ? fread(out, 1, size - 1, from) : 0;
    out[n] = '\0';
    if (from)
        fclose(from);
    else
        close(ends[0]);
    return shell_end(pid);
}

/* Whether there is a program of this name. */
static inline bool shell_has(const char *name)
{
    return shell_run("command -v %s >/dev/null 2>&1", name) == 0;
}

#endif
