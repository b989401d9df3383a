/*
 * watch.h - a rank's state, recorded by the rank where others can read it.
 *
 * Always on: the rank's phase with a heartbeat, its last operations, its last log lines. On one
 * machine it is in the ranks' shared region, so that a report can show the last operations of a
 * rank that hangs. Each word has one writer, the rank itself.
 */
#ifndef CO_COMM_WATCH_H
#define CO_COMM_WATCH_H

#include <stdatomic.h>
#include <stddef.h>

#include <cohort/ext/comm.h>

#include "core/log.h"

#define CO_WATCH_OPS    32   /* a power of two */
#define CO_WATCH_SAVING 10   /* saving may take this many times the timeout */
#define CO_WATCH_LEFT   (-1) /* the rank ended regularly */

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
    _Atomic int gone; /* 0: running; CO_WATCH_LEFT; else the signal that killed it */
    _Atomic uint64_t phase_ns, beat_ns; /* start of the phase; last sign of progress */
    _Atomic uint64_t step;              /* steps started; 0: none */
    _Atomic uint64_t waiting;           /* 1 + number of the operation that it waits for; 0: none */
    _Atomic uint64_t waiting_ns;        /* start of that wait */
    _Atomic uint64_t waited_ns;         /* total time of completed waits */
    _Atomic uint64_t posted;            /* operations so far; number i is in op[i % CO_WATCH_OPS] */
    co_watch_op op[CO_WATCH_OPS];
    co_log_tail tail;
} co_watch;

/* ---- for the rank itself; `comm` may have no watch ---- */

/* Record this thread, world rank `rank`, in `watch` from now on. */
void co_watch_attach(co_comm *comm, co_watch *watch, int rank);
void co_watch_phase(co_comm *comm, co_phase phase);
/* Heartbeat within a long phase. */
void co_watch_beat(co_comm *comm);
/* `steps`: number of steps started. Not while an operation is being waited for. */
void co_watch_step(co_comm *comm, uint64_t steps);
/* Total time that this rank has waited for others, without waits of microseconds. */
uint64_t co_watch_waited_ns(const co_comm *comm);

/* Called for each operation when this rank first sees that it is complete: in any call that makes
   progress, possibly long before it is waited for. */
typedef struct co_comm_observer {
    void (*done)(void *arg, const co_coll_args *args, uint64_t posted_ns, uint64_t done_ns);
    void *arg;
    co_request *pending; /* must be NULL at first */
    /* NULL, or called instead of `done`: before and after an operation on memory of a device is
       given to a queue, which does one after another. */
    void (*queued)(void *arg, const co_coll_args *args, co_queue *queue, bool begins);
} co_comm_observer;

/* No operation may be in flight. `observer` is borrowed; NULL: none. */
void co_watch_observe(co_comm *comm, co_comm_observer *observer);
/* "allreduce"; static. */
const char *co_comm_coll_name(co_coll coll);

/* For src/comm: an operation is given to a queue. */
void co_watch_queue(co_comm *comm, const co_coll_args *args, co_queue *queue, bool begins);
/* For src/comm, if there is an observer: after each successful progress; before a request is
   destroyed. */
void co_watch_progressed(co_comm_observer *observer);
void co_watch_forget(co_request *request);
/* Sets request->number. */
void co_watch_post(co_comm *comm, co_request *request, const co_coll_args *args);
void co_watch_done(co_request *request);
/* The same for an operation that took microseconds in all: does not read the clock. */
void co_watch_ran(co_request *request);
void co_watch_wait(co_request *request, uint64_t since_ns);
void co_watch_wait_over(co_request *request, uint64_t now_ns);

/* ---- for others ---- */

/* "rank 1 (process 42 on n3) is stopped by a signal, computing for 6.2 s in step 45; ...". Returns
   `out`. */
char *co_watch_describe(char *out, size_t size, const co_watch *watch);
/* How long the rank has waited for others in one operation, or shown no progress otherwise. */
uint64_t co_watch_stalled_ns(const co_watch *watch, uint64_t now_ns);
/* Record that the rank ended: CO_WATCH_LEFT, or a signal's number. The first call wins.
   Async-signal-safe. */
void co_watch_go(co_watch *watch, int how);
/* 0: running. If not, the rank's earlier writes are visible to the caller. */
int co_watch_gone(const co_watch *watch);
/* "killed by signal 9 (Killed), computing in step 3"; the second function appends only the last
   part. NULL: nothing is known of the rank. */
void co_watch_describe_killed(char *out, size_t size, const co_watch *watch, int signal);
void co_watch_add_step(char *out, size_t size, const co_watch *watch);
/* Whether a signal or a debugger has stopped its process. */
bool co_watch_is_stopped(const co_watch *watch);
const char *co_phase_name(co_phase phase);

#endif
