/* distributed_internal.h - the distributed optimizer's state, for its files. */
#ifndef CO_STEP_DISTRIBUTED_INTERNAL_H
#define CO_STEP_DISTRIBUTED_INTERNAL_H

#include "model/model.h"
#include "optim/optim.h"
#include "step/distributed.h"
#include "strategy/strategy.h"

struct co_distributed {
    co_distributed_options options; /* texts are not used after create */
    co_config *config;              /* owned if `owns_config` */
    bool owns_config;
    co_optim *optim;
    co_schedule *schedule;
    co_strategy *strategy;
    uint64_t updates;      /* made by the optimizer so far, as the host knows */
    co_strategy_step step; /* under way */
    float *grad;           /* owned; gradients where all ranks can read them; NULL: the store's */
    bool begun;            /* this step: the store's values are set */
    bool current;          /* persistent values are in the store's values */
    bool has_gradient;     /* this step has written store->grad */
    double lr;
    co_scaler scaler;
    co_segment *frozen; /* owned; (n_frozen) tensors that are not trained */
    size_t n_frozen;
    uint64_t freezes; /* of the model, when these were found */
    uint64_t sync_ns; /* spent in the strategy since the first step */
};

/* --- freeze.c --- */
/* What the optimizer updates and what is frozen, from the model. CO_E_USAGE where that cannot be.
 */
co_status distributed_set_segments(co_distributed *distributed);
/* The same if it has changed since. */
co_status distributed_follow_freezes(co_distributed *distributed);
/* Gradients [begin, end) are those of the rank's part: zeros for what is frozen. */
void distributed_drop_frozen(const co_distributed *distributed, size_t begin, size_t end);

/* --- update.c --- */
/* One range, by the values of this step. */
co_status distributed_update_range(co_distributed *distributed, size_t begin, size_t end);
/* Determines the update of this step, once the whole gradient is final. */
co_status distributed_judge(const co_distributed *distributed);
/* What has not been updated yet, unless the step is skipped. */
co_status distributed_update(co_distributed *distributed);

#endif
