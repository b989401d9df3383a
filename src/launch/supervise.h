/* supervise.h - runs ranks as child processes or as threads. */
#ifndef CO_LAUNCH_SUPERVISE_H
#define CO_LAUNCH_SUPERVISE_H

#include <cohort/launch.h>

#include "comm/shm/shm.h"
#include "launch/policy.h"

/* Fork the ranks and wait for all; the first failure, death or signal ends the rest. Repeats while
   the policy (NULL: none) asks for it. */
co_status co_supervise(const co_launch_options *options, const co_launch_policy *policy,
                       co_rank_fn fn, void *arg);

/* Run all ranks as threads of this process. Failures are recorded in the region; co_launch_threads
   creates its own region and turns the record into the error message. */
co_status co_rank_threads(const co_launch_options *options, co_shm *shm, co_rank_fn fn, void *arg);
co_status co_launch_threads(const co_launch_options *options, co_rank_fn fn, void *arg);

/* Run fn as one rank with a communicator; a failure is recorded in the region. */
co_status co_rank_run(const co_launch_options *options, co_shm *shm, int rank, co_rank_fn fn,
                      void *arg);

#endif
