/* precision.h - the config key `precision`: what uses 16-bit floats, and the loss scale. */
#ifndef CO_MODEL_PRECISION_H
#define CO_MODEL_PRECISION_H

#include "core/config.h"
#include "graph/plan.h"

#define CO_PRECISION_MAX_NAME 16

/* How weights are rounded to 16 bits after each update, if there are no fp32 weights. */
typedef enum co_rounding {
    CO_ROUNDING_NONE, /* weights are fp32 */
    CO_ROUNDING_NEAREST,
    CO_ROUNDING_STOCHASTIC
} co_rounding;

typedef struct co_precision {
    char name[CO_PRECISION_MAX_NAME]; /* "fp32", "bf16", "O2 fp16" */
    co_plan_precision plan;
    co_rounding rounding;
    /* The loss scale keeps small gradients from underflowing in half precision. */
    bool dynamic;
    double loss_scale; /* initial; 1 and not dynamic: no scaling */
    double min_scale, max_scale;
    uint64_t window; /* steps without overflow before a dynamic scale doubles */
} co_precision;

extern const co_key co_precision_keys[];

/* Read a level's name or {level: ..., ...}; NULL: fp32. */
co_status co_precision_read(co_precision *out, const co_value *value, co_arena *arena);

#endif
