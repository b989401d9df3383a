/*
 * precision.h - the config key `precision`: which numbers of a step have 16 bits, and how the loss
 * is scaled for them.
 */
#ifndef CO_MODEL_PRECISION_H
#define CO_MODEL_PRECISION_H

#include "core/config.h"
#include "graph/plan.h"

#define CO_PRECISION_MAX_NAME 16

/* How weights are rounded to 16 bits after each update, where there are none of 32. */
typedef enum co_rounding {
    CO_ROUNDING_NONE, /* they have 32 bits */
    CO_ROUNDING_NEAREST,
    CO_ROUNDING_STOCHASTIC
} co_rounding;

typedef struct co_precision {
    char name[CO_PRECISION_MAX_NAME]; /* "fp32", "bf16", "O2 fp16" */
    co_plan_precision plan;
    co_rounding rounding;
    /* Of the loss, so that small gradients are not lost in half precision. */
    bool dynamic;
    double loss_scale; /* the first one; 1 and not dynamic: none */
    double min_scale, max_scale;
    uint64_t window; /* steps without overflow after which a dynamic scale is doubled */
} co_precision;

extern const co_key co_precision_keys[];

/* A level's name or {level: ..., ...}; NULL: fp32. */
co_status co_precision_read(co_precision *out, const co_value *value, co_arena *arena);

#endif
