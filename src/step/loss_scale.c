/*
 * loss_scale.c - the scale of the loss: Apex's rules.
 *
 * A dynamic scale starts at 2^16, is halved where a gradient has overflowed, and doubled after so
 * many steps without that. A step that has overflowed moves no weight, with a fixed scale too.
 * Must not know who computes gradients, nor how ranks agree.
 */
#include "step/loss_scale.h"

#include <math.h>
#include <stdio.h>

#include "tensor/values.h"

/* From the largest scale down to where no gradient of a float would overflow. */
#define SCALER_MAX_IN_ROW 100

void co_scaler_init(co_scaler *scaler, const co_precision *precision)
{
    *scaler = (co_scaler){.precision = *precision, .state = {.scale = precision->loss_scale}};
}

bool co_scaler_is_on(const co_scaler *scaler)
{
    return scaler->precision.dynamic || scaler->precision.loss_scale != 1;
}

co_status co_scaler_send(co_scaler *scaler, co_store *store, uint64_t update)
{
    const co_loss_scale scale = {.scale = scaler->state.scale};

    if (scaler->sent == scale.scale)
        return CO_OK;
    scaler->sent = scale.scale;
    return co_values_set(store, update, &scale);
}

static void scaler_move(co_scaler *scaler)
{
    const co_precision *p = &scaler->precision;
    co_scaler_state *state = &scaler->state;

    if (scaler->overflow) {
        state->scale = fmax(state->scale / 2, p->min_scale);
        state->clean = 0;
    } else if (++state->clean == p->window) {
        state->scale = fmin(state->scale * 2, p->max_scale);
        state->clean = 0;
    }
}

co_status co_scaler_update(co_scaler *scaler, bool overflow)
{
    co_scaler_state *state = &scaler->state;

    scaler->overflow = overflow;
    state->skipped += overflow;
    state->in_row = overflow ? state->in_row + 1 : 0;
    if (scaler->precision.dynamic)
        scaler_move(scaler);
    if (state->in_row < SCALER_MAX_IN_ROW)
        return CO_OK;
    return co_fail(CO_E_FAILED,
                   "gradients have overflowed in %d steps in a row, the last with a loss scale of "
                   "%g: %s",
                   SCALER_MAX_IN_ROW, state->scale,
                   scaler->precision.dynamic
                       ? "training has diverged; lower the learning rate, warm it up, or clip"
                       : "take a smaller loss_scale, or dynamic");
}

const char *co_scaler_message(char *out, size_t size, const co_scaler *scaler)
{
    const double scale = scaler->state.scale;

    snprintf(out, size,
             scale == floor(scale) ? "Gradient overflow.  Skipping step, loss scaler 0 %s %.1f"
                                   : "Gradient overflow.  Skipping step, loss scaler 0 %s %g",
             scaler->precision.dynamic ? "reducing loss scale to" : "keeping loss scale", scale);
    return out;
}
