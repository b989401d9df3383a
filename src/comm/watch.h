/*
 * watch.h - what a rank is doing, written down by itself where others can read it.
 *
 * Always on: the rank's phase with a heartbeat, its last operations, its last log lines. On one
 * machine it is in the region that ranks share, so that a report can say of a rank that hangs
 * still what it did last. Each word has one writer, the rank itself.
 */
#ifndef CO_COMM_WATCH_H
#define CO_COMM_WATCH_H

#include <stdatomic.h>
#include <stddef.h>

#include <cohort/ext/comm.h>

#include "core/log.h"

#define CO_WATCH_OPS    32   /* a power of two */
#define CO_WATCH_SAVING 10   /* saving may take that many times as long as any other wait */
#define CO_WATCH_LEFT   (-1) /* the rank has come to its end, as it should */

typedef enum co_phase {
    CO_PHASE_STARTING = 0,
    CO_PHASE_READING, /* waiting for data */
    CO_PHASE_COMPUTING,
    CO_PHASE_EVALUATING,
    CO_PHASE_SAVING,
    CO_PHASE_ENDING,
    CO_PHASE_COUNT
} co_phase;

/* Times are co_clock_ns; 0: not yet. */
typedef struct co_watch_op {
    _Atomic uint64_t
        what; /* coll | dtype << 8 | reduction << 16 | peer, or leaves of a tree, << 32 */
    _Atomic uint64_t count, posted_ns, done_ns;
} co_watch_op;

typedef struct co_watch {
    _Alignas(64) _Atomic int pid;
    _Atomic int tid, rank;
    _Atomic unsigned phase;
    _Atomic int gone; /* 0: running; CO_WATCH_LEFT; else the signal that it dies of */
    _Atomic uint64_t phase_ns, beat_ns; /* since when; the last sign of progress */
    _Atomic uint64_t step;              /* steps begun; 0: none */
    _Atomic uint64_t waiting;           /* 1 + number of the operation it waits for; 0: none */
    _Atomic uint64_t waiting_ns;        /* since when */
    _Atomic uint64_t waited_ns;         /* waits that are over, all together */
    _Atomic uint64_t posted;            /* operations so far; number i is in op[i % OPS] */
    co_watch_op op[CO_WATCH_OPS];
    co_log_tail tail;
} co_watch;

/* ---- for the rank itself; `comm` may have no watch ---- */

/* This thread is world rank `rank`, whose communicator writes into `watch` from now on. */
void co_watch_attach(co_comm *comm, co_watch *watch, int rank);
void co_watch_phase(co_comm *comm, co_phase phase);
/* Within a long phase: it gets on. */
void co_watch_beat(co_comm *comm);
/* `steps` is how many have begun. Nobody begins a step while `waited` is changing. */
void co_watch_step(co_comm *comm, uint64_t steps);
/* Time that this rank has waited for others so far, without what took microseconds. */
uint64_t co_watch_waited_ns(const co_comm *comm);

/* Whoever measures is notified of each operation when this rank first knows that it is complete: in
   some call of progress, perhaps long before anybody waits for it. */
typedef struct co_comm_observer {
    void (*done)(void *arg, const co_coll_args *args, uint64_t posted_ns, uint64_t done_ns);
    void *arg;
    co_request *pending; /* zero at first */
} co_comm_observer;

/* No operation may be under way. `observer` is borrowed; NULL: nobody is notified. */
void co_watch_observe(co_comm *comm, co_comm_observer *observer);
/* "allreduce"; static. */
const char *co_comm_coll_name(co_coll coll);

/* Within src/comm; only where there is an observer. After each successful progress; before a
   request is destroyed. */
void co_watch_progressed(co_comm_observer *observer);
void co_watch_forget(co_request *request);
/* A request's number is kept in request->number. */
void co_watch_post(co_comm *comm, co_request *request, const co_coll_args *args);
void co_watch_done(co_request *request);
/* The same for one that was over microseconds after it was posted: no look at the clock. */
void co_watch_ran(co_request *request);
void co_watch_wait(co_request *request, uint64_t since_ns);
void co_watch_wait_over(co_request *request, uint64_t now_ns);

/* ---- for others ---- */

/* "rank 1 (process 42 on host n3) is stopped (SIGSTOP), ... computing for 6.2 s, in step 45; ...".
   Returns `out`. */
char *co_watch_describe(char *out, size_t size, const co_watch *watch);
/* It waits for nobody and answers nobody any more: CO_WATCH_LEFT, or a signal's number. The first
   word stays. Safe in a signal handler. */
void co_watch_go(co_watch *watch, int how);
/* 0: it is running. What it has done before is seen by whoever asks. */
int co_watch_gone(const co_watch *watch);
/* How a signal ends it: "killed by signal 9 (Killed), computing in step 3"; and the last part
   alone, after what is there. NULL: nothing is known of the rank. */
void co_watch_describe_killed(char *out, size_t size, const co_watch *watch, int signal);
void co_watch_add_step(char *out, size_t size, const co_watch *watch);
/* Whether a signal or a debugger holds its process. */
bool co_watch_is_stopped(const co_watch *watch);
const char *co_phase_name(co_phase phase);

#endif
