/* loss_scale.h - the loss scale, and steps whose gradients overflow. */
#ifndef CO_STEP_LOSS_SCALE_H
#define CO_STEP_LOSS_SCALE_H

#include <cohort/ext/step.h>
#include <cohort/status.h>

#include "model/precision.h"

typedef struct co_scaler {
    co_precision precision;
    co_loss_scale_rules rules;
    co_loss_scale state; /* stored in checkpoints, per rank */
    bool overflow;       /* of the last step */
} co_scaler;

void co_scaler_init(co_scaler *scaler, const co_precision *precision);
/* Whether gradients are checked for overflow. */
bool co_scaler_is_on(const co_scaler *scaler);
/* Take a step's results and the new scale, after CO_STEP_END. CO_E_FAILED after so many overflows
   in a row that the scale cannot be the cause. */
co_status co_scaler_take(co_scaler *scaler, const co_step_values *values);
/* The message for a skipped step, written to and returned as `out`. */
const char *co_scaler_message(char *out, size_t size, const co_scaler *scaler);

#endif
