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
    co_control *control; /* borrowed; children close it */
    int signals;         /* borrowed descriptor; likewise */
    /* State that a child restores: the signals that were blocked, the handler of SIGCHLD. */
    const sigset_t *mask;
    const struct sigaction *chld;

    int ranks, processes, alive;
    co_shm *shm;            /* owned */
    pid_t *pids;            /* owned, by process; 0: has ended */
    pid_t *started;         /* by process, for messages */
    co_watchdog *watchdogs; /* owned, by rank */
    uint64_t kills;         /* the kernel's kills for memory, before */
    uint64_t killing_at;    /* when those still alive are killed; 0: not ending */
    uint64_t looked_ns;
} generation;

/* options->ranks children, or one with that many threads. Also after a failure co_generation_close
   frees what has been allocated. */
co_status co_generation_open(generation *g);
/* Fork. If one cannot be started the others are ended. */
void co_generation_start(generation *g);
/* Ranks notice in their next wait, and are killed if they have not ended soon. */
void co_generation_end(generation *g, int rank, co_status status, const char *cause);
void co_generation_kill(const generation *g);
/* Record ranks that have ended, and why; kill those whose time is over; look for ranks that
   hang. */
void co_generation_look(generation *g);
/* When none is alive: the result, as status and message. *rank: at fault, -1: none. */
co_status co_generation_status(const generation *g, int *rank);
void co_generation_close(generation *g);

#endif
