/* distributed_internal.h - the distributed optimizer's state, for its source files. */
#ifndef CO_STEP_DISTRIBUTED_INTERNAL_H
#define CO_STEP_DISTRIBUTED_INTERNAL_H

#include "model/model.h"
#include "optim/optim.h"
#include "step/distributed.h"
#include "strategy/strategy.h"

/* Steps that may be queued and not taken, and more. */
#define DISTRIBUTED_IN_FLIGHT 64 /* more than steps whose results may not have been taken */

struct co_distributed {
    co_distributed_options options; /* its texts are only used in create */
    co_config *config;              /* owned if `owns_config` */
    bool owns_config;
    co_optim *optim;
    co_schedule *schedule;
    co_strategy *strategy;
    uint64_t updates;      /* made by the optimizer, as far as the host knows */
    co_strategy_step step; /* current */
    float *grad;           /* owned; gradients in memory that ranks share; NULL: the store's own */
    bool begun;            /* the store's values are set for this step */
    bool current;          /* the store's values have the persistent ones */
    bool has_gradient;     /* store->grad was written in this step */
    bool announced;        /* all of it is final, and the strategy has it */
    int shards_done;       /* of this rank in this step: calls of co_distributed_next_shard */
    double lr;             /* of the last step, as far as the host knows */
    co_scaler scaler;
    co_segment *segment; /* owned; (n_segment): the model's tensors */
    size_t n_segment, n_frozen;
    uint64_t freezes;   /* the model's count when they were set */
    uint64_t counted;   /* updates by then: what is frozen has missed those since, too */
    uint64_t sync_ns;   /* spent in the strategy */
    uint64_t update_ns; /* in clipping and the optimizer */
    bool wants_norm;    /* of the gradient, in this step */
    double norm;        /* of the last step; NaN: not computed */
    /* With a queue: steps whose norm is queued, as number + 1, and what it takes. */
    uint64_t norm_queued[DISTRIBUTED_IN_FLIGHT];
    /* Owned, in the store's memory: of the whole gradient, where ranks sum parts of it and its norm
     * clips; NULL: elsewhere. */
    double *block_squares;
    double *norm_room; /* owned; (CO_VECTOR_PARTS), in the store's memory; NULL: not taken yet */
};

/* --- distributed_probe.c --- */
/* Whether gradients are kept for later steps; they would have the loss scale of their own step. */
bool distributed_keeps_gradients(const co_strategy *strategy);
/* CO_E_USAGE: they are, and have a scale. */
co_status distributed_check_scale(const co_strategy *strategy, const co_scaler *scaler);
/* CO_E_USAGE: the schedule needs a length that is unknown. Rank 0 warns of a warm-up longer than
   the run. */
co_status distributed_check_schedule(const co_distributed *d);
/* CO_E_USAGE: the run is over before its first gradient is used. */
co_status distributed_check_delay(const co_distributed *d);

/* --- distributed_begin.c --- */
/* Set the values of this step's update before its first gradient, unless that is done. */
co_status distributed_begin_step(co_distributed *distributed);

/* --- freeze.c --- */
/* Set the segments, and the optimizer's, from the model, after so many updates. CO_E_USAGE if
   nothing is left to train, or the strategy averages weights. */
co_status distributed_set_segments(co_distributed *distributed, uint64_t updates);
/* The same if the model's freezes have changed. */
co_status distributed_follow_freezes(co_distributed *distributed);
/* What each parameter of the graph had missed when a run was left that goes on now. */
co_status distributed_resume_missed(co_distributed *distributed, const uint64_t *missed);
/* Zero the frozen ranges of the gradients [begin, end). */
void distributed_drop_frozen(const co_distributed *distributed, size_t begin, size_t end);

/* --- update.c --- */
/* Update one range with the values of this step. */
co_status distributed_update_range(co_distributed *distributed, size_t begin, size_t end);
/* Decide about the update: norm and overflow. Call when the whole gradient is final. */
co_status distributed_judge(co_distributed *distributed);
/* Update what has not been updated yet, unless the step is skipped. */
co_status distributed_update(co_distributed *distributed);

#endif
