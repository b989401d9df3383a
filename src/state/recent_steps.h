/*
 * recent_steps.h - loss, accuracy and speed of the last steps over all ranks, for step events.
 *
 * Each rank sums its own figures. When ranks synchronize in a step anyway, a small all-reduce
 * travels with the strategy's data, so the totals are there when the step is done.
 */
#ifndef CO_STATE_RECENT_STEPS_H
#define CO_STATE_RECENT_STEPS_H

#include <cohort/train.h>

#include "data/data.h"
#include "step/distributed.h"
#include "telemetry/telemetry.h"

/* Sums over the steps of a span. */
typedef struct co_recent_span {
    co_result sum;           /* of this rank's samples; with shards of all ranks, on rank 0 only */
    uint64_t steps, samples; /* samples: of all ranks */
    co_loader_reads reads;   /* by this rank's loader */
    double begin_seconds;    /* training time at its start */
} co_recent_span;

/* `all`: since the last event over all ranks; `last`: since an event was last due. */
typedef struct co_recent_spans {
    co_recent_span all, last;
} co_recent_spans;

enum {
    CO_RECENT_COUNT,
    CO_RECENT_LOSS,
    CO_RECENT_CORRECT,
    CO_RECENT_CORRECT5,
    CO_RECENT_READ_SAMPLES,
    CO_RECENT_READ_BYTES,
    CO_RECENT_TERMS
};

/* All borrowed. */
typedef struct co_recent_options {
    co_comm *comm;
    const co_loader *loader;
    uint64_t every;     /* steps between events */
    bool whole;         /* with shards: a step's figures are of all ranks */
    bool top5;          /* more than five classes */
    bool learns_values; /* accuracies are NaN */
} co_recent_options;

typedef struct co_recent {
    co_recent_options options;
    co_recent_spans spans;
    co_loader_reads reads;        /* already counted reads of this rank */
    bool due, exchanged;          /* of this step: an event is due; figures are exchanged over all
                                     ranks */
    double term[CO_RECENT_TERMS]; /* this rank's terms, then the sum over ranks */
    co_request *request;          /* owned */
    co_recent_figures figures;    /* of the step just made */
} co_recent;

/* Call at the start of a run, or after restoring the spans of `recent` from a state. `seconds`:
   training time so far. */
void co_recent_open(co_recent *recent, const co_recent_options *options, double seconds);
void co_recent_close(co_recent *recent);
/* Call when all samples of this rank have gone forward in step `step` (from 1), before the last
   part of the gradient is sent, or on a device when the step's results are read; at the same point
   on all ranks. `meet`: ranks synchronize in that step (co_distributed_synchronizes). `figures`: of
   the step, NULL with shards. */
co_status co_recent_post(co_recent *recent, uint64_t step, bool meet, const co_result *figures);
/* Call when the gradient has been exchanged, after `seconds` of training. `figures`: as above, or
   with shards those of all ranks; `samples`: of all ranks. Sets recent->figures. */
co_status co_recent_finish(co_recent *recent, const co_result *figures, uint64_t samples,
                           double seconds);
/* To continue on another number of ranks: a former rank's spans without its sums; and add another's
   sums. */
co_recent_spans co_recent_empty(const co_recent_spans *spans);
void co_recent_add(co_recent_spans *sum, const co_recent_spans *part);

#endif
