/* supervise.h - ranks as child processes of the caller, or as threads. */
#ifndef CO_LAUNCH_SUPERVISE_H
#define CO_LAUNCH_SUPERVISE_H

#include <cohort/launch.h>

#include "comm/shm/shm.h"
#include "launch/policy.h"

/* Fork the ranks, wait for all of them; on the first failure, death or signal end the rest. Then
   again, while the policy (NULL: none) asks for it. */
co_status co_supervise(const co_launch_options *options, const co_launch_policy *policy,
                       co_rank_fn fn, void *arg);

/* All ranks as threads of this process, to their end. A failure is recorded in the region, from
   which co_launch_threads, with a region of its own, makes the error message. */
co_status co_rank_threads(const co_launch_options *options, co_shm *shm, co_rank_fn fn, void *arg);
co_status co_launch_threads(const co_launch_options *options, co_rank_fn fn, void *arg);

/* One rank, to its end: fn with a communicator; a failure becomes the region's cause. */
co_status co_rank_run(const co_launch_options *options, co_shm *shm, int rank, co_rank_fn fn,
                      void *arg);

#endif
