/* child.h - runs another program to its end, without a shell, and supervises it. */
#ifndef CO_LAUNCH_CHILD_H
#define CO_LAUNCH_CHILD_H

#include <signal.h>
#include <stdbool.h>

#include <cohort/status.h>

/* Blocks Ctrl-C and requests to end from enter to leave, so that none is lost between two
   programs. */
typedef struct co_child_guard {
    sigset_t watched, before;
} co_child_guard;
void co_child_guard_enter(co_child_guard *guard);
void co_child_guard_leave(const co_child_guard *guard);

typedef struct co_child {
    const char *file;        /* a path, or a name to look up in PATH */
    const char *const *argv; /* NULL-ended */
    const char *folder;      /* its working directory; NULL: the current one */
    int log; /* descriptor for its standard output and error; -1: inherit them, and exit with 127 if
                the program cannot be started */
    /* Signal that asks it to end and leaves it time; a second request is SIGTERM, followed by
       SIGKILL. 0: pass the received signal on, followed by SIGKILL. */
    int ask;
    double limit_seconds; /* on its run time; 0: none */
    /* Called twice a second; returns true to end it for good. NULL: not called. */
    bool (*tick)(void *arg, double seconds);
    void *arg;
} co_child;

typedef struct co_child_ending {
    bool late; /* it exceeded the limit */
    int wait;  /* waitpid's status */
    double seconds;
} co_child_ending;

/* CO_OK however the child ends. CO_E_INTERRUPTED, CO_E_TERMINATED: this process was asked to end,
   and the child has ended. The child dies with this process; with `ask` it gets SIGTERM first, and
   after some seconds its process group is killed. */
co_status co_child_run(co_child_ending *out, const co_child_guard *guard, const co_child *child);

#endif
