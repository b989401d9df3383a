/*
 * recent_steps.h - loss, accuracy and speed of the last steps, over all ranks, for step events.
 *
 * Each rank adds up its own; where ranks synchronize in a step anyhow, a few numbers travel with
 * the strategy's data, and the sums of all are there when the step is done.
 */
#ifndef CO_STATE_RECENT_STEPS_H
#define CO_STATE_RECENT_STEPS_H

#include <cohort/train.h>

#include "data/data.h"
#include "step/distributed.h"
#include "telemetry/telemetry.h"

/* Steps since some moment. */
typedef struct co_recent_span {
    co_result sum;           /* of this rank's samples; with shards of all, on rank 0 alone */
    uint64_t steps, samples; /* samples: of all ranks */
    co_loader_reads reads;   /* by this rank's readers meanwhile */
    double begin_seconds;    /* of training, at its beginning */
} co_recent_span;

/* `all`: since the figures of all ranks were last known; `last`: since an event was last due. */
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
    const co_distributed *distributed;
    const co_loader *loader;
    uint64_t every;     /* steps from one event to the next */
    bool whole;         /* figures of a step are those of all ranks: with shards */
    bool top5;          /* there are more than five classes */
    bool learns_values; /* accuracies are NaN */
} co_recent_options;

typedef struct co_recent {
    co_recent_options options;
    co_recent_spans spans;
    co_loader_reads reads;        /* of this rank so far, as already counted */
    bool due, exchanged;          /* in this step: by its number; over all ranks */
    double term[CO_RECENT_TERMS]; /* what this rank adds, in the end the sum of all */
    co_request *request;          /* owned */
    co_recent_figures figures;    /* of the step that has just been made */
} co_recent;

/* At the start of a run, or after a state, whose spans are in `recent`; `seconds` of training so
   far. */
void co_recent_open(co_recent *recent, const co_recent_options *options, double seconds);
void co_recent_close(co_recent *recent);
/* Every sample of this rank has gone forward in step `step`, counted from 1; `figures` of it, NULL
   with shards. Before the gradient's last part is on its way. Ranks call it in the same place. */
co_status co_recent_post(co_recent *recent, uint64_t step, const co_result *figures);
/* The gradient has been exchanged, after `seconds` of training. `figures`: as before, or with
   shards those of all ranks; `samples` of all ranks. Sets recent->figures. */
co_status co_recent_finish(co_recent *recent, const co_result *figures, uint64_t samples,
                           double seconds);
/* Another number of ranks continues with the former ranks' figures: a former rank's steps without
   its sums; the sums of another one added. */
co_recent_spans co_recent_empty(const co_recent_spans *spans);
void co_recent_add(co_recent_spans *sum, const co_recent_spans *part);

#endif
