/*
 * group_guard.c - kills a process group when its owner was killed.
 *
 * A process killed by SIGKILL cannot notify anybody, and an MPI launcher that is asked to end may
 * take its time, or be a script's child that survives the script. So a separate process waits for
 * EOF on a pipe whose write end only the owner has. Does not know what it kills.
 */
#include "launch/group_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"

#define GUARD_GRACE_S 3.0
#define GUARD_POLL_US 50000

/* Whether the owner sent a byte; EOF means that it died. */
static bool group_guard_is_dismissed(int line)
{
    char word;
    ssize_t n;

    do
        n = read(line, &word, 1);
    while (n < 0 && errno == EINTR);
    return n == 1;
}

/* Closes all other descriptors, since somebody may wait for their EOF. */
static void group_guard_watch(int line, pid_t leader)
{
    uint64_t start;

    setsid();
    prctl(PR_SET_NAME, "cohort-keep");
    if (line != 3 && dup2(line, 3) != 3)
        return;
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    syscall(SYS_close_range, 4u, ~0u, 0u);
    if (group_guard_is_dismissed(3))
        return;
    start = co_clock_ns();
    while (kill(leader, 0) == 0 && co_clock_seconds(start, co_clock_ns()) < GUARD_GRACE_S)
        co_clock_sleep_us(GUARD_POLL_US);
    kill(-leader, SIGKILL);
}

void co_group_guard_start(co_group_guard *guard, pid_t leader)
{
    sigset_t all, before;
    int ends[2];

    *guard = (co_group_guard){.line = -1};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    sigfillset(&all); /* it must survive Ctrl-C */
    sigprocmask(SIG_SETMASK, &all, &before);
    guard->pid = fork();
    if (guard->pid == 0) {
        close(ends[1]);
        group_guard_watch(ends[0], leader);
        _exit(0);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(ends[0]);
    guard->line = ends[1];
    if (guard->pid > 0)
        return;
    close(ends[1]);
    *guard = (co_group_guard){.line = -1};
}

void co_group_guard_end(co_group_guard *guard)
{
    if (guard->pid <= 0)
        return;
    (void)!write(guard->line, "", 1);
    close(guard->line);
    while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    *guard = (co_group_guard){.line = -1};
}
