/* distributed.h - the distributed optimizer. */
#ifndef CO_STEP_DISTRIBUTED_H
#define CO_STEP_DISTRIBUTED_H

#include <cohort/ext/strategy.h>
#include <cohort/train.h>

#include "core/config.h"
#include "step/loss_scale.h"

#define CO_DISTRIBUTED_MAX_NAME 32

/* co_distributed_options with config values instead of text; borrowed. */
typedef struct co_distributed_values {
    const co_value *optimizer, *schedule, *strategy;
    co_config *config;
    const co_precision *precision; /* to check with; NULL: not known */
    int shards;                    /* to check with; 0: auto */
    int ranks;                     /* likewise; 0: not known */
} co_distributed_values;

co_status co_distributed_create_from(co_distributed **out, const co_distributed_values *values,
                                     const co_distributed_options *options);

/* The ranks that share this rank's weights, including itself; NULL: it has its own. */
co_comm *co_distributed_sharers(const co_distributed *distributed);
/* The ranks that divide the update, and the optimizer's state with it; NULL: each has all. */
co_comm *co_distributed_dividers(const co_distributed *distributed);
/* Give the memory of the optimizer's state for others' parts back; its values are lost. */
co_status co_distributed_forget_others(const co_distributed *distributed);
/* Whether ranks currently have their own weights. */
bool co_distributed_is_local(const co_distributed *distributed);
/* Whether all ranks synchronize in the current step. */
bool co_distributed_synchronizes(const co_distributed *distributed);
/* Whether co_distributed_finish may change the weights. */
bool co_distributed_ends_with_finish(const co_distributed *distributed);
/* A persistent array besides weights and running statistics: state of the optimizer or of the
   strategy, with the length of the store. */
typedef struct co_distributed_array {
    char name[CO_DISTRIBUTED_MAX_NAME]; /* "momentum_buffer", "local.0" */
    float *data;
    bool divided; /* a rank has the parts alone that it updates */
    bool own;     /* each rank has its own */
    bool share;   /* likewise, and it is a part of a sum over ranks */
    bool carry;   /* belongs to the strategy; else to the optimizer */
} co_distributed_array;
/* Get array i; false after the last. */
bool co_distributed_array_at(co_distributed_array *out, const co_distributed *distributed, int i);
/* Whether array i is divided; not where there is no such array. */
bool co_distributed_is_divided(const co_distributed *distributed, int i);
/* Part i that a rank of those that divide the update has of it; false: there are no more. */
bool co_distributed_part(size_t *begin, size_t *end, const co_distributed *distributed, int rank,
                         size_t i);
/* Whether a rank's gradient after a step is the sum over ranks in its own parts alone. */
bool co_distributed_sums_slices(const co_distributed *distributed);
/* What the strategy's finish would make of the ranks' weights now (ext/strategy.h). */
co_strategy_merge co_distributed_merge(const co_distributed *distributed);
/* The strategy's counters on this rank; NULL: none. */
uint64_t *co_distributed_counters(const co_distributed *distributed, size_t *n);
/* Whether ranks may have their own weights after an update. */
bool co_distributed_owns_weights(const co_distributed *distributed);
/* Complete operations in flight between steps, so that the arrays above are the whole state.
   Collective. */
co_status co_distributed_quiesce(co_distributed *distributed);
/* Whether co_distributed_quiesce is free: replicas are in sync and nothing is in flight. */
bool co_distributed_is_settled(const co_distributed *distributed);
/* Number of updates made by this rank's optimizer. */
uint64_t co_distributed_updates(const co_distributed *distributed);
/* Of each parameter of the model's graph, how many of them went by while it was frozen. Those of
   running statistics are left as they are. */
void co_distributed_missed(uint64_t *missed, const co_distributed *distributed);
/* Continue after `step` steps, of which `updates` were updates, `missed` by each parameter; all
   arrays and counters must have been restored. Collective. */
co_status co_distributed_resume(co_distributed *distributed, uint64_t step, uint64_t updates,
                                const uint64_t *missed);

/* The loss scale; checkpoints store its state. */
co_scaler *co_distributed_scaler(co_distributed *distributed);
/* A step has three parts, so that a device can capture the second: decide what differs from step to
   step and send it to the store's values; queue the work, which is the same in every step, from the
   copy of the batch to the update (co_distributed_backward, co_distributed_step); read the results.
   This is the first part, for a batch that the model need not have seen. Without it the first
   backward does the same. */
co_status co_distributed_begin(co_distributed *distributed, const co_batch *batch);
/* The first part for steps that are queued together, after at least one that was not: keep the
   values of the step that comes `ahead` steps after the next one at a place (co_values_keep); and
   begin the next step by the values of a place, which is queued work. */
void co_distributed_foresee(const co_distributed *distributed, const co_batch *batch,
                            uint64_t ahead, int place);
co_status co_distributed_use(co_distributed *distributed, int place);
/* Before the forward pass of a batch that co_distributed_backward gets next: lets the model compute
   gradients in it (co_model_announce). */
co_status co_distributed_announce(co_distributed *distributed, const co_batch *batch);
/* Whether the second part is the same in each step of a single rank. */
bool co_distributed_repeats(const co_distributed *distributed);
/* Call instead of co_distributed_step if the second part was replayed. */
void co_distributed_count_step(co_distributed *distributed);
/* Take the results of a step, after co_distributed_step. With a device the host gets them later, in
   step order; otherwise this has been done. CO_E_FAILED as for co_scaler_take. */
co_status co_distributed_take(co_distributed *distributed, const co_step_values *values);
/* This rank's loss in the current step is not finite, so treat its gradients as overflowed. Only if
   the host may write the store's values. */
void co_distributed_note_overflow(co_distributed *distributed);

/* The strategy's report, after co_distributed_finish. */
co_strategy_counts co_distributed_report(const co_distributed *distributed);

/* Compute the norm of the gradient in the current step: of the whole gradient that the optimizer
   gets, before clipping. Before co_distributed_step. */
void co_distributed_want_norm(co_distributed *distributed);
/* Queue that, after the step's work and outside of it; nothing where there is no queue. */
co_status co_distributed_queue_norm(co_distributed *distributed);
/* That of the last step taken; NaN: not wanted, or not computed, where a rank has a part of the
   gradient alone. */
double co_distributed_norm(const co_distributed *distributed);

/* Time that this rank has spent on updates: clipping and the optimizer. */
uint64_t co_distributed_update_ns(const co_distributed *distributed);
/* Time that this rank has spent in its strategy: posting, reducing, waiting. */
uint64_t co_distributed_sync_ns(const co_distributed *distributed);

/* List the arrays that a config will have, without a model: `out` (max), data NULL. */
co_status co_distributed_list(co_distributed_array *out, int *n, bool *own_weights, int max,
                              const co_distributed_values *values);
/* Check the config's plugins and their keys. Also returns the strategy's requirements
   (co_strategy_needs), whether replicas are in sync after every step, and whether ranks synchronize
   in every step and leave nothing in flight. */
co_status co_distributed_check(unsigned *needs, bool *common, bool *in_step,
                               const co_distributed_values *values);

#endif
