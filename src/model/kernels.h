/*
 * kernels.h - the config key `kernels`: how the kernel of each layer is chosen, and which were.
 */
#ifndef CO_MODEL_KERNELS_H
#define CO_MODEL_KERNELS_H

#include "core/config.h"
#include "graph/plan.h"

struct co_model;

typedef enum co_kernels_choice { CO_KERNELS_FIXED = 0, CO_KERNELS_MEASURED } co_kernels_choice;

typedef struct co_kernels {
    int choice;             /* co_kernels_choice; not used where there are layers */
    int64_t seconds;        /* that measuring may take */
    int64_t batch;          /* samples that `layers` were chosen for; 0: those of a step */
    const co_value *layers; /* layer: kernel; NULL: none */
} co_kernels;

extern const co_key co_kernels_keys[];

co_status co_kernels_read(co_kernels *out, const co_value *value, co_arena *arena);

/* Whether kernels are to be measured before training. */
static inline bool co_kernels_are_open(const co_kernels *kernels)
{
    return kernels->choice == CO_KERNELS_MEASURED && !kernels->layers;
}

/* Use these kernels for these layers from now on, for other layers those of the fixed rule.
   `layers` may be NULL. CO_E_USAGE names a layer or a kernel that there is not, and those that
   there are. */
co_status co_model_set_kernels(struct co_model *model, const co_value *layers);
/* CO_E_UNSUPPORTED names a layer whose kernel cannot run it in training with this batch, and those
   that can. */
co_status co_model_check_kernels(struct co_model *model, int64_t batch);
/* The value of the key with the model's kernels as `layers`: "{choice: measured, seconds: 60,
   batch: 64, layers: {conv1: onednn, ...}}". The caller frees it with co_free. */
co_status co_kernels_write(char **out, const struct co_model *model, const co_kernels *kernels);

/* --- kernels_measure.c --- */

typedef struct co_kernels_times {
    /* Set by the caller; may be NULL. Called once with the plan of the fixed choice and that of
       what was found, and the seconds of each node in both. */
    void (*report)(void *arg, const co_plan *fixed, const co_plan *chosen,
                   const double *fixed_seconds, const double *chosen_seconds);
    void *arg;
    double fixed_seconds, chosen_seconds; /* of a step, forward and backward */
    double spent_seconds;                 /* by measuring */
    int tried, left; /* plans that were timed, and those for which no time was left */
} co_kernels_times;

/* Time, for a training batch of this size, the kernels that can run each layer, for about
   `seconds`, and use the fastest, or the fixed choice if together they are not faster. Weights,
   gradients and running statistics stay as they are. */
co_status co_model_measure_kernels(co_kernels_times *out, struct co_model *model, int64_t batch,
                                   double seconds);

#endif
