/*
 * watch.h - the state of a rank, recorded by the rank itself where others can read it.
 *
 * Always on: the rank's phase with a heartbeat, its last operations, its last log lines. On one
 * machine it is in the region that ranks share, so that a report can show the last operations of a
 * rank that hangs. Each word has one writer, the rank itself.
 */
#ifndef CO_COMM_WATCH_H
#define CO_COMM_WATCH_H

#include <stdatomic.h>
#include <stddef.h>

#include <cohort/ext/comm.h>

#include "core/log.h"

#define CO_WATCH_OPS    32   /* a power of two */
#define CO_WATCH_SAVING 10   /* saving may take that many times as long as any other wait */
#define CO_WATCH_LEFT   (-1) /* the rank has ended regularly */

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
    _Atomic int gone; /* 0: running; CO_WATCH_LEFT; else the signal that ended it */
    _Atomic uint64_t phase_ns, beat_ns; /* since when; the last sign of progress */
    _Atomic uint64_t step;              /* steps begun; 0: none */
    _Atomic uint64_t waiting;           /* 1 + number of the operation it waits for; 0: none */
    _Atomic uint64_t waiting_ns;        /* since when */
    _Atomic uint64_t waited_ns;         /* total time of completed waits */
    _Atomic uint64_t posted;            /* operations so far; number i is in op[i % OPS] */
    co_watch_op op[CO_WATCH_OPS];
    co_log_tail tail;
} co_watch;

/* ---- for the rank itself; `comm` may have no watch ---- */

/* This thread is world rank `rank`, whose communicator records into `watch` from now on. */
void co_watch_attach(co_comm *comm, co_watch *watch, int rank);
void co_watch_phase(co_comm *comm, co_phase phase);
/* Heartbeat within a long phase. */
void co_watch_beat(co_comm *comm);
/* `steps` is how many have begun. No step may begin while `waited` is changing. */
void co_watch_step(co_comm *comm, uint64_t steps);
/* Time that this rank has waited for others so far, without waits of microseconds. */
uint64_t co_watch_waited_ns(const co_comm *comm);

/* An observer is notified of each operation when this rank first finds it complete: in some call of
   progress, perhaps long before the operation is waited for. */
typedef struct co_comm_observer {
    void (*done)(void *arg, const co_coll_args *args, uint64_t posted_ns, uint64_t done_ns);
    void *arg;
    co_request *pending; /* zero at first */
} co_comm_observer;

/* No operation may be in flight. `observer` is borrowed; NULL: none. */
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
/* The same for one that took microseconds from post to end: the clock is not read. */
void co_watch_ran(co_request *request);
void co_watch_wait(co_request *request, uint64_t since_ns);
void co_watch_wait_over(co_request *request, uint64_t now_ns);

/* ---- for others ---- */

/* "rank 1 (process 42 on host n3) is stopped (SIGSTOP), ... computing for 6.2 s, in step 45; ...".
   Returns `out`. */
char *co_watch_describe(char *out, size_t size, const co_watch *watch);
/* The rank has ended: CO_WATCH_LEFT, or a signal's number. The first call wins. Safe in a signal
   handler. */
void co_watch_go(co_watch *watch, int how);
/* 0: it is running. Its earlier writes are visible to the caller. */
int co_watch_gone(const co_watch *watch);
/* How a signal ends it: "killed by signal 9 (Killed), computing in step 3"; and the last part
   alone, appended. NULL: nothing is known of the rank. */
void co_watch_describe_killed(char *out, size_t size, const co_watch *watch, int signal);
void co_watch_add_step(char *out, size_t size, const co_watch *watch);
/* Whether a signal or a debugger holds its process. */
bool co_watch_is_stopped(const co_watch *watch);
const char *co_phase_name(co_phase phase);

#endif
