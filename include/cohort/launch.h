/*
 * launch.h - start ranks, watch them, end them.
 *
 * Threads: one launch at a time in a process; ranks are forked, so best while there is no other
 * thread.
 */
#ifndef COHORT_LAUNCH_H
#define COHORT_LAUNCH_H

#include <cohort/comm.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The function that every rank runs. `world` is borrowed; the rank ends with the returned
 *  status. */
typedef co_status (*co_rank_fn)(co_comm *world, void *arg);

typedef struct co_launch_options {
    int ranks;     /* 0: 1, or the size of the MPI world when started by mpiexec */
    bool bind;     /* give each rank its share of the cores and bind it */
    bool fork_one; /* run even a single rank in a separate process */
    bool threads;  /* ranks are threads of the caller; with fork_one, of one separate process */
    uint32_t timeout_ms; /* limit of every wait; 0: 300,000 */
} co_launch_options;

/** co_launch by the size of the program's options: see version.h. */
CO_API co_status co_launch_sized(const co_launch_options *options, size_t size, co_rank_fn fn,
                                 void *arg);

/**
 * Run `fn` on every rank.
 *
 * Started by mpiexec (or srun) the process joins that world as one rank; otherwise it forks
 * `ranks` children that talk over shared memory, and waits for them. One rank without MPI runs
 * in the calling process, unless `fork_one`. Memory written before the call is seen by every rank;
 * ranks that are threads share it from then on too.
 *
 * A rank that fails or dies ends the others at once: the call returns its status, with a message
 * that names rank, process and cause. CO_E_PEER: a rank was killed, or had returned while another
 * one waited for it; ranks that nobody waits for may end when they like. SIGINT and SIGTERM to the
 * caller end the ranks, with CO_E_INTERRUPTED and CO_E_TERMINATED; one that the calling thread had
 * blocked is pending again when the call returns. Ranks die with the caller.
 */
static inline co_status co_launch(const co_launch_options *options, co_rank_fn fn, void *arg)
{
    return co_launch_sized(options, sizeof(*options), fn, arg);
}

/** Whether mpiexec or srun started this process, so that co_launch would join an MPI job. */
CO_API bool co_launch_under_mpi(void);

#ifdef __cplusplus
}
#endif
#endif
