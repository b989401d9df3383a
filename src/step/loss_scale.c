/*
 * loss_scale.c - the loss scale by Apex's rules (ext/step.h), as seen by the host.
 *
 * A dynamic scale starts at 2^16, is halved when a gradient overflows, and doubled after `window`
 * steps without overflow. A step with overflow does not change the weights, with a fixed scale
 * either. Does not know who computes gradients, or how ranks agree.
 */
#include "step/loss_scale.h"

#include <math.h>
#include <stdio.h>

/* Enough to get from the maximum scale to one at which no float gradient overflows. */
#define SCALER_MAX_IN_ROW 100

void co_scaler_init(co_scaler *scaler, const co_precision *precision)
{
    *scaler = (co_scaler){.precision = *precision,
                          .rules = {.on = precision->dynamic || precision->loss_scale != 1,
                                    .dynamic = precision->dynamic,
                                    .min_scale = precision->min_scale,
                                    .max_scale = precision->max_scale,
                                    .window = precision->window},
                          .state = {.scale = precision->loss_scale}};
}

bool co_scaler_is_on(const co_scaler *scaler)
{
    return scaler->rules.on;
}

co_status co_scaler_take(co_scaler *scaler, const co_step_values *values)
{
    scaler->overflow = values->found_inf != 0;
    scaler->state = values->loss_scale;
    if (scaler->state.in_row < SCALER_MAX_IN_ROW)
        return CO_OK;
    return co_fail(CO_E_FAILED,
                   "gradients have overflowed in %d steps in a row, the last with a loss scale of "
                   "%g: %s",
                   SCALER_MAX_IN_ROW, scaler->state.scale,
                   scaler->rules.dynamic
                       ? "training has diverged; lower the learning rate, warm it up, or clip"
                       : "take a smaller loss_scale, or dynamic");
}

const char *co_scaler_message(char *out, size_t size, const co_scaler *scaler)
{
    const double scale = scaler->state.scale;

    snprintf(out, size,
             scale == floor(scale) ? "Gradient overflow.  Skipping step, loss scaler 0 %s %.1f"
                                   : "Gradient overflow.  Skipping step, loss scaler 0 %s %g",
             scaler->rules.dynamic ? "reducing loss scale to" : "keeping loss scale", scale);
    return out;
}
