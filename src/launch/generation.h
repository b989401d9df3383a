/*
 * generation.h - ranks that were started together and end together.
 */
#ifndef CO_LAUNCH_GENERATION_H
#define CO_LAUNCH_GENERATION_H

#include <signal.h>
#include <sys/types.h>

#include "launch/rank_process.h"
#include "launch/supervise.h"

typedef struct generation {
    const co_launch_options *options;
    co_rank_fn fn;
    void *arg;
    co_control *control; /* borrowed; children let go of it */
    int signals;         /* borrowed descriptor; likewise */
    /* What a child gets back: the signals that were blocked, what SIGCHLD did. */
    const sigset_t *mask;
    const struct sigaction *chld;

    int ranks, processes, alive;
    co_shm *shm;            /* owned */
    pid_t *pids;            /* owned, by process; 0: has ended */
    pid_t *started;         /* by process, for messages */
    co_watchdog *watchdogs; /* owned, by rank */
    uint64_t kills;         /* of the kernel, for memory, before */
    uint64_t killing_at;    /* when those still alive are killed; 0: not ending */
    uint64_t looked_ns;
} generation;

/* options->ranks children, or one with that many threads. After a failure too,
   co_generation_close frees what there is. */
co_status co_generation_open(generation *g);
/* Fork. What cannot be started ends the rest. */
void co_generation_start(generation *g);
/* Ranks hear of it in their next wait, and are killed if they have not ended soon. */
void co_generation_end(generation *g, int rank, co_status status, const char *cause);
void co_generation_kill(const generation *g);
/* Note who has ended, why; kill whose time is over; look for ranks that hang. */
void co_generation_look(generation *g);
/* When nobody is alive: how it ended, as status and message. *rank: at fault, -1: none. */
co_status co_generation_status(const generation *g, int *rank);
void co_generation_close(generation *g);

#endif
