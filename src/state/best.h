/*
 * best.h - the best evaluation so far, and whether the run ends by `stop_at`.
 */
#ifndef CO_STATE_BEST_H
#define CO_STATE_BEST_H

#include "telemetry/telemetry.h"

/* A figure of an evaluation. */
typedef struct co_watched {
    const co_metric *metric;
    int at; /* its number among those that the config asks for; -1: every evaluation has it */
} co_watched;

/* NaN where there was no evaluation, or the figure is not defined. */
double co_watched_value(const co_watched *watched, const co_event *event);

#define CO_STOP_MAX_TARGETS (CO_METRICS_MAX + 3)

/* The config keys `stop_at` and `best` of `checkpoint`. */
typedef struct co_stop_at {
    int64_t patience;   /* evaluations without a better one; 0: any number */
    co_watched awaited; /* which figure they wait for; loss where it is not defined */
    co_watched best;    /* which is best; metric NULL: accuracy, or loss where there is none */
    int n;              /* values that end the run */
    struct {
        co_watched of;
        double value;
    } target[CO_STOP_MAX_TARGETS];
} co_stop_at;

/* Plain numbers, in checkpoints. */
typedef struct co_best {
    co_best_figures figures; /* of the best evaluation */
    double value;            /* of it, by which it is the best; NaN: there was none */
    double awaited;          /* the best value of what `patience` waits for */
    double least_loss;       /* of any evaluation; counts where there was one */
    uint64_t waited;         /* evaluations since the one from which `patience` counts */
    uint64_t by, awaited_by; /* which figures these are; 0: by a version that did not say */
    bool measured;
} co_best;

/* Which figure of an evaluation says what is best. */
co_watched co_best_by(const co_stop_at *stop, const co_event *event);

/* Before the first evaluation. */
co_best co_best_none(void);

/* After a state: what it says of another figure than is asked for now does not count. */
void co_best_resume(co_best *best, const co_stop_at *stop);

/* An epoch's evaluation, if it had one. Whether it is the best so far. */
bool co_best_take(co_best *best, const co_stop_at *stop, const co_event *event);

/* Why a run of which this was the last epoch ends; `metric` (NULL: not wanted): whose
   target is reached. The same on all ranks, as they have added up the same figures. */
co_stop_reason co_best_find_stop(const char **metric, const co_best *best, const co_stop_at *stop,
                                 const co_event *last);
/* Why it stops, in words; returns `out`. */
const char *co_best_stop_message(char *out, size_t size, const co_best *best,
                                 const co_stop_at *stop, const co_event *last);

#endif
