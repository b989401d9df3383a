/* supervise.h - ranks as child processes of the caller. */
#ifndef CO_LAUNCH_SUPERVISE_H
#define CO_LAUNCH_SUPERVISE_H

#include <cohort/launch.h>

/* Fork the ranks, wait for all of them; on the first failure, death or signal end the rest. */
co_status co_supervise(const co_launch_options *options, co_rank_fn fn, void *arg);

/* What every rank does with its communicator: limits, cores, its name in log lines. */
co_status co_rank_prepare(co_comm *comm, const co_launch_options *options, int local_rank,
                          int local_ranks);

#endif
