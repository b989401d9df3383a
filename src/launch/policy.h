/*
 * policy.h - callbacks by which a program decides about its ranks, while they run and after.
 *
 * The launcher does not know training. All callbacks run in the launcher's process.
 */
#ifndef CO_LAUNCH_POLICY_H
#define CO_LAUNCH_POLICY_H

#include <cohort/launch.h>

#include "comm/shm/shm.h"
#include "launch/control_socket.h"

/* How a generation of ranks ended. */
typedef struct co_launch_end {
    co_status status;  /* CO_OK: every rank returned CO_OK */
    int rank, ranks;   /* the rank at fault, -1: none; number of ranks */
    const char *cause; /* one line; "" with CO_OK */
} co_launch_end;

typedef struct co_launch_policy {
    void *arg;
    co_control *control; /* served while ranks run; NULL: none; borrowed */
    /* Ranks are about to start; `shm` is valid until `again`. */
    void (*started)(void *arg, const co_shm *shm, int ranks);
    /* Called at least ten times a second. */
    void (*tick)(void *arg);
    /* On the first SIGINT (CO_E_INTERRUPTED), SIGTERM or SIGHUP (CO_E_TERMINATED): returns whether
       ranks have been asked to end by themselves. A second signal ends them at once. */
    bool (*signalled)(void *arg, co_status status);
    /* No rank is alive. Returns true to start *ranks again; otherwise `end` is the result of the
       run. */
    bool (*again)(void *arg, int *ranks, const co_launch_end *end);
} co_launch_policy;

/* co_launch with a policy for ranks that are child processes; NULL: none. */
co_status co_launch_with(const co_launch_options *options, const co_launch_policy *policy,
                         co_rank_fn fn, void *arg);

#endif
