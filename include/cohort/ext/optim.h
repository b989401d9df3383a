/* ext/optim.h - what the author of an optimizer or of a schedule fills in. */
#ifndef COHORT_EXT_OPTIM_H
#define COHORT_EXT_OPTIM_H

#include <cohort/ext/device.h>
#include <cohort/ext/plugin.h>
#include <cohort/ext/step.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a tensor of the store is. */
typedef enum co_param_kind {
    CO_PARAM_WEIGHT = 0,
    CO_PARAM_BIAS, /* one number per channel or feature, outside of a norm */
    CO_PARAM_NORM  /* scale or shift of a normalisation */
} co_param_kind;

/** One range of the flat store to update: tensors with the same weight decay, and the gaps between
 *  them, which are 0 in every array and must stay so; or one whole tensor (per_tensor). */
typedef struct co_update {
    float *param;        /* (n) in and out */
    const float *grad;   /* (n); to be used as co_grad_use(grad[i], values->rule) */
    float *const *state; /* n_state arrays of (n), zero before the first step */
    size_t n;
    double decay;       /* weight decay of this range, which `update` applies */
    co_param_kind kind; /* with per_tensor: of the tensor; else of the first one */
    /** Of this step: given.lr, rule, and `update`, which counts those of the run from 1 on. Where
     *  the arrays are. */
    const co_step_values *values;
    co_queue *queue; /* NULL: the arrays are the host's, and the update is made at once */
    /** Updates of the run that the range's tensors have missed, because they were frozen:
     *  values->update - missed is the number of this update among their own, from 1 on. */
    uint64_t missed;
} co_update;

typedef struct co_optimizer_ops {
    const char *name;
    const char *summary;
    const co_key *keys; /* without those of every optimizer: "lr", "weight_decay", ... */
    size_t self_size;
    double default_lr, default_decay;
    co_status (*check)(const void *self); /* combinations that make no sense; NULL: none */
    int (*states)(const void *self);      /* number of state arrays, 0 to 4; NULL: 0 */
    const char *const *state_names; /* NULL-ended, as many as `states` returns or more: their names
                                       in checkpoints, "momentum_buffer", "exp_avg", ... */
    bool per_tensor;                /* update gets one whole tensor at a time, for its norms */
    /** On the host. It is not called for a step that is to be skipped. Several threads may call it
     *  at once for neighbouring ranges: without per_tensor no element depends on another. */
    void (*update)(const void *self, const co_update *update);
} co_optimizer_ops;

/** The arithmetic of an optimizer on a device (co_device_ops.optimizers): its keys, checks and
 *  states remain those of `ops`. */
typedef struct co_device_optimizer {
    const char *name; /* of the optimizer */
    /** Puts what `ops->update` does on update->queue. What values->found_inf says by then decides:
     *  if it is not 0, nothing is moved. `update` and its `state` are copied. */
    void (*update)(const co_optimizer_ops *ops, const void *self, const co_update *update);
} co_device_optimizer;

/** Where training is, for a schedule. */
typedef struct co_progress {
    uint64_t step; /* updates made so far */
    uint64_t steps_per_epoch;
    uint64_t total_steps; /* planned; a schedule holds its last value from there on */
    uint64_t at;          /* updates or whole epochs made so far, as `unit` says; set for factor */
    uint64_t warmup;      /* updates of the warm-up; set for factor */
} co_progress;

/** Which planned lengths a schedule cannot do without. */
typedef enum co_schedule_needs {
    CO_SCHEDULE_NEEDS_NOTHING = 0,
    CO_SCHEDULE_NEEDS_AT = 1,   /* `at`, and so steps_per_epoch where `unit` is epoch */
    CO_SCHEDULE_NEEDS_TOTAL = 2 /* total_steps */
} co_schedule_needs;

typedef struct co_schedule_ops {
    const char *name;
    const char *summary;
    const co_key *keys; /* "unit" and "warmup" belong to every schedule */
    size_t self_size;
    co_schedule_needs needs;
    co_status (*check)(const void *self); /* values that make no sense; NULL: none */
    /** Factor on the base rate for the next update; what `needs` names is there. */
    double (*factor)(const void *self, const co_progress *progress);
} co_schedule_ops;

#ifdef __cplusplus
}
#endif
#endif
