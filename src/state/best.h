/* best.h - the best evaluation so far, and the decision to stop by `stop_at`. */
#ifndef CO_STATE_BEST_H
#define CO_STATE_BEST_H

#include "telemetry/telemetry.h"

/* A metric of an evaluation. */
typedef struct co_watched {
    const co_metric *metric;
    int at; /* index among the config's metrics; -1: part of every evaluation */
} co_watched;

/* NaN without an evaluation, or if the metric is not defined. */
double co_watched_value(const co_watched *watched, const co_event *event);

#define CO_STOP_MAX_TARGETS (CO_METRICS_MAX + 3)

/* Decoded config keys `stop_at` and `checkpoint.best`. */
typedef struct co_stop_at {
    int64_t patience;   /* evaluations without improvement before stopping; 0: never stop */
    co_watched awaited; /* metric that patience watches; NULL: accuracy, or loss without it */
    co_watched best;    /* metric that defines the best; NULL: likewise */
    int n;              /* number of targets */
    struct {
        co_watched of;
        double value;
    } target[CO_STOP_MAX_TARGETS];
} co_stop_at;

/* Plain numbers, stored in checkpoints. */
typedef struct co_best {
    co_best_figures figures; /* of the best evaluation */
    double value;            /* its metric value; NaN: no evaluation yet */
    double awaited;          /* best value of the metric that patience watches */
    double least_loss;       /* minimum of all evaluations; valid if `measured` */
    uint64_t waited;         /* evaluations since the last improvement of `awaited` */
    uint64_t by, awaited_by; /* which metrics these are; 0: written by a version that did not record
                                it */
    bool measured;
} co_best;

/* The metric that defines the best for this event. */
co_watched co_best_by(const co_stop_at *stop, const co_event *event);

/* The value before the first evaluation. */
co_best co_best_none(void);

/* Call after restoring a state: forgets values of metrics other than those now requested. */
void co_best_resume(co_best *best, const co_stop_at *stop);

/* Take an epoch's evaluation, if there was one. Returns whether it is the best so far. */
bool co_best_take(co_best *best, const co_stop_at *stop, const co_event *event);

/* Whether, and why, the run ends after `last`, the end of an epoch; *metric (may be NULL) is the
   metric whose target was reached. All ranks get the same answer, since they have the same sums. */
co_stop_reason co_best_find_stop(const char **metric, const co_best *best, const co_stop_at *stop,
                                 const co_event *last);
/* The reason in words, written to and returned as `out`. */
const char *co_best_stop_message(char *out, size_t size, const co_best *best,
                                 const co_stop_at *stop, const co_event *last);

#endif
