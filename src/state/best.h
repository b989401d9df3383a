/*
 * best.h - the best evaluation so far, and whether the run ends by `stop_at`.
 */
#ifndef CO_STATE_BEST_H
#define CO_STATE_BEST_H

#include "telemetry/telemetry.h"

struct trainer;
struct co_spec;

/* Plain numbers, in checkpoints. */
typedef struct co_best {
    co_best_figures figures; /* of the highest accuracy */
    double least_loss;       /* of any evaluation; counts where there was one */
    uint64_t waited;         /* evaluations since the one that `patience` waits from */
    bool measured;
} co_best;

/* Before the first evaluation. */
co_best co_best_none(void);

/* An epoch's evaluation, if it had one. Whether its accuracy is the best so far. */
bool co_best_take(co_best *best, const struct co_spec *spec, const co_event *event);

/* Why a run of which this was the last epoch goes no further. The same on all ranks, as they have
   added up the same figures. */
co_stop_reason co_best_find_stop(const co_best *best, const struct co_spec *spec,
                                 const co_event *last);

/* Ends the run where it is to stop, and says why. */
void co_best_check(struct trainer *t, const co_event *last);

#endif
