/* ext/optim.h - what the author of an optimizer or of a schedule fills in. */
#ifndef COHORT_EXT_OPTIM_H
#define COHORT_EXT_OPTIM_H

#include <cohort/ext/keys.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One range of the flat store to update. */
typedef struct co_update {
    float *param;        /* (n) in and out */
    const float *grad;   /* (n) */
    float *const *state; /* n_state arrays of (n), zero before the first step */
    size_t n;
    double lr;     /* of this step, from the schedule */
    uint64_t step; /* 1-based count of updates */
} co_update;

typedef struct co_optimizer_ops {
    const char *name;
    const char *summary;
    const co_key *keys; /* "lr" is read by every optimizer, not listed here */
    double default_lr;
    size_t self_size;
    co_status (*check)(const void *self); /* combinations that make no sense; NULL: none */
    int (*states)(const void *self);      /* number of state arrays; NULL: 0 */
    const char *const *state_names;       /* for checkpoints: "momentum_buffer", "exp_avg", ... */
    void (*update)(const void *self, const co_update *update);
} co_optimizer_ops;

/** Where training is, for a schedule. */
typedef struct co_progress {
    uint64_t step; /* updates made so far */
    uint64_t steps_per_epoch;
    uint64_t total_steps; /* planned */
} co_progress;

typedef struct co_schedule_ops {
    const char *name;
    const char *summary;
    const co_key *keys; /* "warmup" belongs to every schedule */
    size_t self_size;
    co_status (*check)(const void *self);
    /** Factor on the base rate for the next update. */
    double (*factor)(const void *self, const co_progress *progress);
} co_schedule_ops;

#ifdef __cplusplus
}
#endif
#endif
