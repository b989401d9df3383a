/* child.h - run another program to its end, without a shell, and stay in control of it. */
#ifndef CO_LAUNCH_CHILD_H
#define CO_LAUNCH_CHILD_H

#include <signal.h>
#include <stdbool.h>

#include <cohort/status.h>

/* Ctrl-C and requests to end are blocked from enter to leave, so that none is lost between two
   programs. */
typedef struct co_child_guard {
    sigset_t watched, before;
} co_child_guard;
void co_child_guard_enter(co_child_guard *guard);
void co_child_guard_leave(const co_child_guard *guard);

typedef struct co_child {
    const char *file;        /* a path, or a name that is looked up in PATH */
    const char *const *argv; /* NULL-ended */
    const char *folder;      /* its working directory; NULL: the current one */
    int log; /* file for its standard output and standard error; -1: those of this process, and a
                program that cannot be started exits with 127 */
    /* The signal that asks it to end, for which it has time; a second request is SIGTERM, and kills
       it soon after. 0: the signal that has come, and it is killed soon after. */
    int ask;
    double limit_seconds; /* limit on its run time; 0: none */
    /* Called twice a second; true: end it, soon and finally. NULL: not called. */
    bool (*tick)(void *arg, double seconds);
    void *arg;
} co_child;

typedef struct co_child_ending {
    bool late; /* the limit ended it */
    int wait;  /* status of waitpid */
    double seconds;
} co_child_ending;

/* CO_OK however it ends. CO_E_INTERRUPTED, CO_E_TERMINATED: this process was asked to end, and the
   child has ended before. The child dies with this process; with `ask` it gets SIGTERM, and
   has seconds, then what it has started dies too. */
co_status co_child_run(co_child_ending *out, const co_child_guard *guard, const co_child *child);

#endif
