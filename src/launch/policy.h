/*
 * policy.h - decisions of a program that starts ranks, while they run and when they have ended.
 *
 * The launcher knows no training: it asks. All functions are called in the launcher's process.
 */
#ifndef CO_LAUNCH_POLICY_H
#define CO_LAUNCH_POLICY_H

#include <cohort/launch.h>

#include "comm/shm/shm.h"
#include "launch/control_socket.h"

/* How a generation of ranks has ended. */
typedef struct co_launch_end {
    co_status status;  /* CO_OK: every rank has returned that */
    int rank, ranks;   /* at fault, -1: none in particular; how many there were */
    const char *cause; /* one line; "" with CO_OK */
} co_launch_end;

typedef struct co_launch_policy {
    void *arg;
    co_control *control; /* answered while ranks run; NULL: none; borrowed */
    /* Ranks have been started; `shm` is valid until `again`. */
    void (*started)(void *arg, const co_shm *shm, int ranks);
    /* At least ten times a second. */
    void (*tick)(void *arg);
    /* The first SIGINT (CO_E_INTERRUPTED), SIGTERM or SIGHUP (CO_E_TERMINATED): true if ranks have
       been asked to end by themselves. A second one ends them at once. */
    bool (*signalled)(void *arg, co_status status);
    /* No rank is alive. True: start *ranks again. Else `end` is the result of the run. */
    bool (*again)(void *arg, int *ranks, const co_launch_end *end);
} co_launch_policy;

/* co_launch, with a policy where ranks are children of this process; NULL: none. */
co_status co_launch_with(const co_launch_options *options, const co_launch_policy *policy,
                         co_rank_fn fn, void *arg);

#endif
