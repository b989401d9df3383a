/*
 * ext/step.h - the values of one step, as kernels, optimizers and reductions on a device see them.
 *
 * What changes from step to step is data: a block in the memory of the device that the store is
 * on. Work on the store's queue reads it there and leaves the results of the step there. So the
 * work of a step is the same in every step, and nothing of it waits for the host. The host never
 * touches a block of a device: before a step one queued copy brings what is `given`, and later
 * another takes what was found.
 *
 *   copy of `given` -> CO_STEP_BEGIN -> forward, backward -> sum_squares with max_abs
 *     -> CO_STEP_CLIP -> CO_STEP_FOUND -> update -> CO_STEP_COUNT, CO_STEP_END
 *
 * What no config asks for is left out: without a loss scale nothing is looked for in gradients,
 * without a limit on the norm max_abs goes over them alone.
 */
#ifndef COHORT_EXT_STEP_H
#define COHORT_EXT_STEP_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What is done to each gradient before it is used: it is multiplied by `scale` (loss unscaling,
 *  clipping by norm), then kept within [-limit, limit] (clipping by value). {1, INFINITY} changes
 *  no bit of it. */
typedef struct co_grad_rule {
    float scale, limit;
} co_grad_rule;

/** The gradient to use. Comparisons this way round leave a NaN in place, for the loss to show. */
static inline float co_grad_use(float g, co_grad_rule rule)
{
    const float scaled = g * rule.scale;
    const float above = scaled < -rule.limit ? -rule.limit : scaled;

    return above > rule.limit ? rule.limit : above;
}

/** How a loss scale moves; the same in all steps of a run. */
typedef struct co_loss_scale_rules {
    bool on;      /* gradients are looked at, and a step is skipped if one is not finite */
    bool dynamic; /* and the scale is halved; else it stays as it is */
    double min_scale, max_scale;
    uint64_t window; /* steps without overflow after which a dynamic scale is doubled */
} co_loss_scale_rules;

/** A loss scale, from step to step. */
typedef struct co_loss_scale {
    double scale;
    uint64_t clean;   /* steps since the scale changed, or since an overflow */
    uint64_t skipped; /* steps of the run */
    uint64_t in_row;  /* the last steps that were skipped without one between them */
} co_loss_scale;

/** Brought by the host before each step. */
typedef struct co_step_given {
    uint64_t step;     /* for random streams: another number in each step of a run */
    uint64_t number;   /* steps of the run before this one */
    uint64_t samples;  /* the gradient is a mean over so many; 0: it is 0 */
    double lr;         /* of this step, from the schedule */
    double clip_norm;  /* limit on the norm of the gradient; 0: none */
    double clip_value; /* on each element, before; 0: none */
    double average;    /* the part of its way to the weights that their moving average goes; 0: it
                          stays where it is */
} co_step_given;

typedef struct co_step_values {
    co_step_given given;

    /* From step to step; put there at the start of a run. */
    uint64_t update; /* 1-based number of this step's update; steps that are skipped do not count */
    co_loss_scale loss_scale;

    /* CO_STEP_BEGIN: */
    float grad_scale;  /* d objective / d loss of one sample: the loss scale / samples */
    co_grad_rule rule; /* loss unscaling and clipping by value; from CO_STEP_CLIP on by norm, too */

    /* Found in the step: */
    int32_t bad_loss;   /* with a loss scale: a loss is not finite; CO_STEP_FOUND clears it */
    float max_abs;      /* of the gradient to be used; max_abs of ext/vector.h */
    int32_t found_inf;  /* it is not finite, or a loss was not: the update moves nothing. Of all
                           ranks, where they go from step to step together */
    double sum_squares; /* of the gradient by the rule; sum_squares of ext/vector.h */
    double norm;        /* its root */
} co_step_values;

/** What is computed in the block alone. */
typedef enum co_step_stage {
    CO_STEP_BEGIN, /* what follows from `given` and the loss scale */
    CO_STEP_LOSS,  /* bad_loss, from max_abs of the losses of a micro-batch */
    CO_STEP_FOUND, /* found_inf, from max_abs and bad_loss */
    CO_STEP_CLIP,  /* norm, from sum_squares, and the rule by it */
    CO_STEP_COUNT, /* the next update, unless found_inf */
    CO_STEP_END    /* the loss scale by found_inf, and what follows from it */
} co_step_stage;

/** Apex's rules. */
static inline void co_loss_scale_move(co_loss_scale *state, const co_loss_scale_rules *rules,
                                      bool overflow)
{
    state->skipped += overflow;
    state->in_row = overflow ? state->in_row + 1 : 0;
    if (!rules->dynamic)
        return;
    if (overflow) {
        state->scale = fmax(state->scale / 2, rules->min_scale);
        state->clean = 0;
    } else if (++state->clean == rules->window) {
        state->scale = fmin(state->scale * 2, rules->max_scale);
        state->clean = 0;
    }
}

/** What is done to a gradient whose loss had this scale. */
static inline co_grad_rule co_step_rule(double loss_scale, double clip_value)
{
    co_grad_rule rule;

    rule.scale = (float)(1 / loss_scale);
    rule.limit = clip_value > 0 ? (float)clip_value : (float)INFINITY;
    return rule;
}

/** PyTorch's: all is scaled by limit / (norm + 1e-6) if that is below 1. */
static inline void co_step_clip(co_grad_rule *rule, double norm, double limit)
{
    const float scale = (float)(limit / (norm + 1e-6));

    if (scale < 1) {
        rule->scale *= scale;
        rule->limit *= scale;
    }
}

/** One stage, on a block that the caller may access: what a device does on its queue
    (co_vector_ops.step). */
static inline void co_step_do(co_step_values *v, co_step_stage stage,
                              const co_loss_scale_rules *rules)
{
    if (stage == CO_STEP_LOSS) {
        v->bad_loss |= !isfinite(v->max_abs);
    } else if (stage == CO_STEP_FOUND) {
        v->found_inf = v->bad_loss != 0 || !isfinite(v->max_abs);
        v->bad_loss = 0;
    } else if (stage == CO_STEP_CLIP) {
        v->norm = sqrt(v->sum_squares);
        co_step_clip(&v->rule, v->norm, v->given.clip_norm);
    } else if (stage == CO_STEP_COUNT) {
        v->update += v->found_inf == 0;
    } else {
        if (stage == CO_STEP_BEGIN)
            v->found_inf = 0;
        else
            co_loss_scale_move(&v->loss_scale, rules, v->found_inf != 0);
        v->grad_scale =
            v->given.samples ? (float)v->loss_scale.scale / (float)v->given.samples : 0.0f;
        v->rule = co_step_rule(v->loss_scale.scale, v->given.clip_value);
    }
}

#ifdef __cplusplus
}
#endif
#endif
