/*
 * best.h - the best evaluation so far, and whether the run ends by `stop_at`.
 */
#ifndef CO_STATE_BEST_H
#define CO_STATE_BEST_H

#include "telemetry/telemetry.h"

/* The metric that decides: the accuracy of the test split, or its loss. */
typedef enum co_stop_metric { CO_STOP_METRIC_ACCURACY = 0, CO_STOP_METRIC_LOSS } co_stop_metric;

/* The config key `stop_at`. */
typedef struct co_stop_at {
    double accuracy;  /* 0: never */
    double loss;      /* likewise */
    int64_t patience; /* evaluations without a better one; 0: any number */
    int metric;       /* co_stop_metric: what `patience` is about */
} co_stop_at;

/* Plain numbers, in checkpoints. */
typedef struct co_best {
    co_best_figures figures; /* of the highest accuracy */
    double least_loss;       /* of any evaluation; counts where there was one */
    uint64_t waited;         /* evaluations since the one from which `patience` counts */
    bool measured;
} co_best;

/* Before the first evaluation. */
co_best co_best_none(void);

/* An epoch's evaluation, if it had one. Whether its accuracy is the best so far. */
bool co_best_take(co_best *best, const co_stop_at *stop, const co_event *event);

/* Why a run of which this was the last epoch ends. The same on all ranks, as they have added up the
   same figures. */
co_stop_reason co_best_find_stop(const co_best *best, const co_stop_at *stop, const co_event *last);
/* Why it stops, in words; returns `out`. */
const char *co_best_stop_message(char *out, size_t size, const co_best *best,
                                 const co_stop_at *stop, const co_event *last);

#endif
