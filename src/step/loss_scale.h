/*
 * loss_scale.h - the scale of the loss, and the handling of a step whose gradients overflow.
 */
#ifndef CO_STEP_LOSS_SCALE_H
#define CO_STEP_LOSS_SCALE_H

#include <cohort/ext/step.h>
#include <cohort/status.h>

#include "model/precision.h"

typedef struct co_scaler {
    co_precision precision;
    co_loss_scale_rules rules;
    co_loss_scale state; /* in checkpoints, for each rank */
    bool overflow;       /* of the last step */
} co_scaler;

void co_scaler_init(co_scaler *scaler, const co_precision *precision);
/* Whether gradients are checked at all. */
bool co_scaler_is_on(const co_scaler *scaler);
/* What a step has found and made of the scale, after CO_STEP_END. CO_E_FAILED when too many steps
   in a row have overflowed for it to be the scale's fault. */
co_status co_scaler_take(co_scaler *scaler, const co_step_values *values);
/* The message on a skipped step; returns `out`. */
const char *co_scaler_message(char *out, size_t size, const co_scaler *scaler);

#endif
