/*
 * group_guard.c - ends a process group whose master was killed.
 *
 * A process that is killed by SIGKILL notifies nobody, and a launcher of MPI that the kernel asks
 * to end may take its time, or have been started by a script, which ends alone. So a process waits
 * for the end of a pipe that only the master holds. Must not know what it ends.
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

#define KEEPER_GRACE_S 3.0
#define KEEPER_LOOK_US 50000

/* Whether it has been dismissed; otherwise the master is dead. */
static bool group_guard_is_dismissed(int line)
{
    char word;
    ssize_t n;

    do
        n = read(line, &word, 1);
    while (n < 0 && errno == EINTR);
    return n == 1;
}

/* It keeps no descriptor open whose closing others wait for. */
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
    while (kill(leader, 0) == 0 && co_clock_seconds(start, co_clock_ns()) < KEEPER_GRACE_S)
        co_clock_sleep_us(KEEPER_LOOK_US);
    kill(-leader, SIGKILL);
}

void co_group_guard_start(co_group_guard *guard, pid_t leader)
{
    sigset_t all, before;
    int ends[2];

    *guard = (co_group_guard){.line = -1};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    sigfillset(&all); /* Ctrl-C is not for it */
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
