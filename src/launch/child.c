/*
 * child.c - runs another program to its end.
 *
 * Waits for signals with a time limit, so it needs no handler and no global state. Does not know
 * what the program is for.
 */
#include "launch/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/process.h"
#include "launch/group_guard.h"

#define CHILD_TICK_NS       500000000 /* between calls of `tick` */
#define CHILD_GRACE_SECONDS 6.0       /* from the request to end until SIGKILL */

typedef struct child_run {
    const co_child *child;
    pid_t pid;
    uint64_t start_ns;
    double asked_at; /* seconds after the start when it was asked to end; < 0: it was not */
    bool asked;      /* by child->ask, which gives it time */
    co_status why;   /* CO_E_INTERRUPTED, CO_E_TERMINATED: this process was asked to end */
    bool late;
} child_run;

void co_child_guard_enter(co_child_guard *guard)
{
    co_process_requests(&guard->watched);
    sigaddset(&guard->watched, SIGCHLD);
    signal(SIGCHLD, SIG_DFL); /* an inherited SIG_IGN would discard the child's exit status */
    sigprocmask(SIG_BLOCK, &guard->watched, &guard->before);
}

void co_child_guard_leave(const co_child_guard *guard)
{
    const struct timespec now = {0};

    /* Discard pending signals, which would end this process before its last message. */
    while (sigtimedwait(&guard->watched, NULL, &now) > 0)
        continue;
    sigprocmask(SIG_SETMASK, &guard->before, NULL);
}

/* In the child. Errors before exec are reported in the program's log. */
static _Noreturn void child_become(const co_child *child, const co_child_guard *guard, pid_t parent)
{
    int null = open("/dev/null", O_RDONLY);

    prctl(PR_SET_PDEATHSIG, child->ask ? SIGTERM : SIGKILL);
    if (child->ask)
        setpgid(0, 0);       /* Ctrl-C then reaches only this process, which passes it on */
    if (getppid() != parent) /* the parent died before prctl */
        _exit(1);
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
        (child->log < 0 ||
         (dup2(child->log, STDOUT_FILENO) >= 0 && dup2(child->log, STDERR_FILENO) >= 0)) &&
        (!child->folder || chdir(child->folder) == 0)) {
        sigprocmask(SIG_SETMASK, &guard->before, NULL);
        execvp(child->file, (char *const *)child->argv);
    }
    if (child->log >= 0)
        dprintf(child->log, "cohort: error: cannot start %s: %s\n", child->file, strerror(errno));
    _exit(127);
}

static double child_seconds(const child_run *run)
{
    return co_clock_seconds(run->start_ns, co_clock_ns());
}

/* Ask it to end soon; SIGKILL follows after the grace period. */
static void child_end(child_run *run, int signal)
{
    kill(run->pid, signal);
    if (run->asked_at < 0)
        run->asked_at = child_seconds(run);
}

static void child_ask(child_run *run, int signal)
{
    if (run->child->ask && !run->asked) {
        run->asked = true;
        kill(run->pid, run->child->ask);
        return;
    }
    child_end(run, run->child->ask ? SIGTERM : signal);
}

/* With `ask` the child leads a process group, so that its helpers for other hosts end with it. */
static void child_kill(const child_run *run)
{
    kill(run->child->ask ? -run->pid : run->pid, SIGKILL);
}

/* Wait for a signal, or for the next tick. */
static void child_wait(child_run *run, const co_child_guard *guard)
{
    const struct timespec limit = {.tv_nsec = CHILD_TICK_NS};
    int signal = sigtimedwait(&guard->watched, NULL, &limit);
    double seconds = child_seconds(run);

    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP) {
        run->why = signal == SIGINT ? CO_E_INTERRUPTED : CO_E_TERMINATED;
        child_ask(run, signal == SIGINT ? SIGINT : SIGTERM);
    } else if (run->child->limit_seconds > 0 && seconds > run->child->limit_seconds && !run->late) {
        run->late = true;
        child_ask(run, SIGTERM);
    }
    if (run->asked_at >= 0 && seconds > run->asked_at + CHILD_GRACE_SECONDS)
        child_kill(run);
    if (run->child->tick && signal < 0 && run->child->tick(run->child->arg, seconds) &&
        run->asked_at < 0)
        child_end(run, SIGTERM);
}

co_status co_child_run(co_child_ending *out, const co_child_guard *guard, const co_child *child)
{
    child_run run = {.child = child, .start_ns = co_clock_ns(), .asked_at = -1};
    pid_t parent = getpid(), got;
    co_group_guard group = {.line = -1};

    fflush(NULL); /* the child would otherwise write the same buffered text again */
    run.pid = fork();
    if (run.pid == 0)
        child_become(child, guard, parent);
    if (run.pid < 0)
        return co_fail(CO_E_FAILED, "cannot start %s: %s", child->file, strerror(errno));
    if (child->ask)
        co_group_guard_start(&group, run.pid);
    while ((got = waitpid(run.pid, &out->wait, WNOHANG)) == 0)
        child_wait(&run, guard);
    co_group_guard_end(&group);
    if (got < 0)
        return co_fail(CO_E_FAILED, "lost sight of %s: %s", child->file, strerror(errno));
    out->late = run.late;
    out->seconds = child_seconds(&run);
    if (run.why != CO_OK)
        return co_fail(run.why, run.why == CO_E_INTERRUPTED ? "interrupted" : "terminated");
    return CO_OK;
}
