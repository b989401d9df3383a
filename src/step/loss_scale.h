/*
 * loss_scale.h - the scale of the loss, and what becomes of a step whose gradients overflow.
 */
#ifndef CO_STEP_LOSS_SCALE_H
#define CO_STEP_LOSS_SCALE_H

#include <cohort/status.h>

#include "model/precision.h"
#include "tensor/store.h"

/* What goes from step to step; in checkpoints, for each rank. */
typedef struct co_scaler_state {
    double scale;
    uint64_t clean;   /* steps since the scale changed, or since an overflow */
    uint64_t skipped; /* steps of the run */
    uint64_t in_row;  /* the last steps that were skipped without one between them */
} co_scaler_state;

typedef struct co_scaler {
    co_precision precision;
    co_scaler_state state;
    bool overflow; /* of the last step */
    double sent;   /* the scale that the store has; 0: none yet */
} co_scaler;

void co_scaler_init(co_scaler *scaler, const co_precision *precision);
/* The scale into the values of the store's next backward, where it is new; `update`: the 1-based
   number of that step's. */
co_status co_scaler_send(co_scaler *scaler, co_store *store, uint64_t update);
/* Whether gradients are looked at at all. */
bool co_scaler_is_on(const co_scaler *scaler);
/* The step's gradients have been seen. Changes the scale by Apex's rules. CO_E_FAILED when too many
   steps in a row have overflowed for it to be the scale's fault. */
co_status co_scaler_update(co_scaler *scaler, bool overflow);
/* The message on a skipped step; returns `out`. */
const char *co_scaler_message(char *out, size_t size, const co_scaler *scaler);

#endif
