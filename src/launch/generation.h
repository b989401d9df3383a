/* generation.h - ranks that are started and ended together. */
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
    int signals;         /* borrowed descriptor; children close it */
    /* Signal state that children restore: blocked signals, handler of SIGCHLD. */
    const sigset_t *mask;
    const struct sigaction *chld;

    int ranks, processes, alive;
    co_shm *shm;            /* owned */
    pid_t *pids;            /* owned, by process; 0: ended */
    pid_t *started;         /* by process, for messages */
    co_watchdog *watchdogs; /* owned, by rank */
    uint64_t kills;         /* OOM kills counted before the start */
    uint64_t killing_at;    /* when to kill the remaining processes; 0: not ending */
    uint64_t looked_ns;
} generation;

/* Allocate for options->ranks children, or one with as many threads. co_generation_close frees what
   exists, also after a failure. */
co_status co_generation_open(generation *g);
/* Fork the ranks. If one cannot be started, end the others. */
void co_generation_start(generation *g);
/* Make ranks fail in their next wait; those that do not end soon are killed. */
void co_generation_end(generation *g, int rank, co_status status, const char *cause);
void co_generation_kill(const generation *g);
/* Reap ended ranks and record why they ended, kill those whose time is up, detect ranks that
   hang. */
void co_generation_look(generation *g);
/* The result as status and message, once none is alive. *rank: the one at fault; -1: none. */
co_status co_generation_status(const generation *g, int *rank);
void co_generation_close(generation *g);

#endif
