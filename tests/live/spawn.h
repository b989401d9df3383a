/* spawn.h - the program in the background, in a test's folder. */
#ifndef TESTS_LIVE_SPAWN_H
#define TESTS_LIVE_SPAWN_H

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "folder.h"

/* Start `program` with at most 14 arguments, ended by NULL; it ends with this process. `out`: a
   pipe's end for its standard output; -1: none. */
static inline pid_t spawn_program(const char *program, const char *const *argument, int out)
{
    const char *argv[16] = {program};
    pid_t pid;

    fflush(stdout);
    pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    for (int i = 0; i < 14 && argument[i]; i++)
        argv[i + 1] = argument[i];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (chdir(folder) == 0 && (out < 0 || dup2(out, STDOUT_FILENO) >= 0))
        execv(program, (char *const *)(uintptr_t)argv);
    _exit(127);
}

static inline void spawn_wait(pid_t pid)
{
    int how;

    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

#endif
