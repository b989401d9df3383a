/* mpiexec.h - ranks started by an MPI launcher, supervised, and restarted when one dies. */
#ifndef CO_LAUNCH_MPIEXEC_H
#define CO_LAUNCH_MPIEXEC_H

#include <stdint.h>

#include "core/arena.h"
#include "launch/child.h"
#include "launch/on_failure.h"

/* All borrowed. */
typedef struct co_mpiexec {
    const char *launcher;       /* command, "mpiexec --oversubscribe" */
    const char *hosts;          /* "n1,n2:2"; NULL: the launcher chooses */
    int ranks;                  /* >= 1; of the first start */
    const char *const *program; /* command of each rank, NULL-ended; the first word is a path */
    const char *const *again;   /* likewise for restarts */
    const char *notes;          /* folder for the ranks' notes (launch/rank_notes.h) */
    co_on_failure on_failure;
    int64_t max_restarts;
    int64_t max_seconds; /* 0: no limit */
    int64_t timeout_s;   /* of ranks for each other */
    /* 1 + step of the last checkpoint; 0: none. May be NULL. */
    uint64_t (*reached)(void *arg);
    void *arg;
    co_arena *arena;
} co_mpiexec;

/* Returns when the ranks have left in order, or cannot be restarted; a failure has the first cause.
   `guard` is entered. CO_E_INTERRUPTED, CO_E_TERMINATED: stopped as requested. */
co_status co_mpiexec_run(const co_mpiexec *m, const co_child_guard *guard);

#endif
