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
    uint64_t updates;      /* made by the optimizer so far */
    co_strategy_step step; /* under way */
    float *grad;           /* owned; gradients where all ranks can read them; NULL: the store's */
    bool begun;            /* this step: `update` is set */
    co_optim_step update;
    bool has_gradient; /* this step has written store->grad */
    double lr;
    co_scaler scaler;
    bool overflow;    /* known before the gradients are looked at */
    uint64_t sync_ns; /* spent in the strategy since the first step */
};

#endif
