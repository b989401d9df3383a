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
    bool current;          /* what goes from step to step is in the store's values */
    bool has_gradient;     /* this step has written store->grad */
    double lr;
    co_scaler scaler;
    uint64_t sync_ns; /* spent in the strategy since the first step */
};

/* --- update.c --- */
/* One range, by the values of this step. */
co_status distributed_update_range(co_distributed *distributed, size_t begin, size_t end);
/* What decides about the update of this step, once the whole gradient is there. */
co_status distributed_judge(const co_distributed *distributed);
/* What has not been updated yet, unless the step is to be skipped. */
co_status distributed_update(co_distributed *distributed);

#endif
