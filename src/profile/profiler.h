/*
 * profiler.h - what a rank does with the time of a window of steps: kernels, phases of the loop,
 * operations between ranks, readers.
 *
 * Watches only: nothing that it does reaches a number of the training. Every function takes NULL
 * for "nobody profiles", and then costs a comparison.
 *
 * On a device with a clock all times but those of readers are the device's: kernels and phases are
 * what its queue spends between two points, one before and one after what the host queues. A phase
 * in which the host waits while the queue still has work takes no time there.
 */
#ifndef CO_PROFILE_PROFILER_H
#define CO_PROFILE_PROFILER_H

#include <cohort/data.h>
#include <cohort/ext/comm.h>

#include "graph/plan.h"
#include "telemetry/profile.h"

typedef struct co_profiler co_profiler;

/* Phases of a step; each has what is in none of those inside it, and in no kernel. */
typedef enum co_profile_phase {
    CO_PROFILE_STEP = 0,    /* the whole: what is in nothing below */
    CO_PROFILE_DATA,        /* waiting for the batch */
    CO_PROFILE_COPY_INPUT,  /* the batch into the plan's memory */
    CO_PROFILE_IN_FORWARD,  /* between its kernels */
    CO_PROFILE_IN_BACKWARD, /* likewise */
    CO_PROFILE_COMPILE,     /* a plan for a batch of a new size */
    CO_PROFILE_METRICS,     /* loss and accuracy */
    CO_PROFILE_POST,        /* the strategy, during backward: gradients that are ready */
    CO_PROFILE_SYNC,        /* the strategy, before and after the update: waiting for others */
    CO_PROFILE_UPDATE,      /* clipping and the optimizer */
    CO_PROFILE_EMA,
    CO_PROFILE_CHECKPOINT,
    CO_PROFILE_SUPERVISE, /* answering `cohort ctl`, agreeing on stops */
    CO_PROFILE_LOG,       /* metrics.jsonl, the console */
    CO_PROFILE_PHASES
} co_profile_phase;

typedef struct co_profiler_options {
    uint64_t skip, steps; /* of the run, for this process: steps before the window; in it */
    int readers;          /* threads of the loader; 0: none of its own */
    int ranks;            /* that share the memory for spans */
    co_queue *queue;      /* borrowed: of a device, with the work of steps. NULL: the host's */
} co_profiler_options;

co_status co_profiler_create(co_profiler **out, const co_profiler_options *options);
void co_profiler_destroy(co_profiler *profiler);

/* Around step `step` of the run. */
void co_profiler_begin_step(co_profiler *profiler, uint64_t step);
void co_profiler_end_step(co_profiler *profiler);
/* Around a phase within it; phases nest. */
void co_profiler_enter(co_profiler *profiler, co_profile_phase phase);
void co_profiler_leave(co_profiler *profiler);

/* A plan that this rank will run. */
void co_profiler_watch_plan(co_profiler *profiler, co_plan *plan);
/* To be notified of each operation between ranks that is complete; of what readers have read: the
   profiler outlives the loader, and is destroyed before the communicator. Not NULL. */
void co_profiler_watch_comm(co_profiler *profiler, co_comm *comm);
void co_profiler_watch_loader(co_profiler *profiler, co_loader *loader);

/* ---- what it saw ---- */

/* Before the rest: until the device has passed all that was queued. */
co_status co_profiler_settle(co_profiler *profiler);

/* Something that took from `begin_ns` to `end_ns` of co_clock_ns. */
typedef struct co_span {
    uint64_t begin_ns, end_ns;
    uint32_t what;  /* compute: the row; operations: co_coll */
    uint32_t step;  /* of the run */
    uint64_t value; /* operations: bytes; readers: samples */
} co_span;

/* Spans of one thread, in the order in which they ended. */
typedef struct co_span_list {
    const co_span *span;
    size_t n;
    uint64_t lost; /* for want of room */
} co_span_list;

uint64_t co_profiler_first_step(const co_profiler *profiler);
uint64_t co_profiler_steps(const co_profiler *profiler);
double co_profiler_step_seconds(const co_profiler *profiler);
/* Rows so far, means over the steps; the first CO_PROFILE_PHASES are the phases. `out` has room for
   co_profiler_row_count. */
size_t co_profiler_row_count(const co_profiler *profiler);
void co_profiler_rows(co_profile_row *out, const co_profiler *profiler);
/* Track 0: this thread; 1: operations between ranks; from 2 on: readers. */
int co_profiler_track_count(const co_profiler *p);
co_span_list co_profiler_track(const co_profiler *p, int i);

#endif
