/*
 * mpiexec.h - ranks that a launcher of MPI starts, watched, and started again when one has died.
 */
#ifndef CO_LAUNCH_MPIEXEC_H
#define CO_LAUNCH_MPIEXEC_H

#include <stdint.h>

#include "core/arena.h"
#include "launch/child.h"
#include "launch/on_failure.h"

/* All borrowed. */
typedef struct co_mpiexec {
    const char *launcher;       /* its command: "mpiexec --oversubscribe" */
    const char *hosts;          /* "n1,n2:2"; NULL: the launcher chooses */
    int ranks;                  /* >= 1, of the first start */
    const char *const *program; /* what each rank runs, NULL-ended; the first word is a path */
    const char *const *again;   /* the same for every start but the first */
    const char *notes;          /* folder in which ranks note how they end (launch/rank_notes.h) */
    co_on_failure on_failure;
    int64_t max_restarts;
    int64_t max_seconds; /* 0: no limit */
    /* The step after the last one that is on the disk; 0: unknown. NULL: 0. */
    uint64_t (*reached)(void *arg);
    void *arg;
    co_arena *arena;
} co_mpiexec;

/* Until the ranks have left in good order, or there is no further start. `guard` is entered. Ends
   with the first cause as error. CO_E_INTERRUPTED, CO_E_TERMINATED: as requested. */
co_status co_mpiexec_run(const co_mpiexec *m, const co_child_guard *guard);

#endif
