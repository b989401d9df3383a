/*
 * ema.h - an exponential moving average of the weights and running statistics.
 *
 *   average = decay average + (1 - decay) weights      after every `every` steps
 *
 * (Polyak averaging with a window; PyTorch's AveragedModel with get_ema_avg_fn.)
 */
#ifndef CO_STEP_EMA_H
#define CO_STEP_EMA_H

#include "tensor/store.h"

typedef struct co_ema_options {
    double decay;  /* 0 to 1 */
    int64_t every; /* steps, >= 1 */
    bool warmup;   /* update t = 0, 1, ... uses a decay of at most (1 + t) / (10 + t) */
} co_ema_options;

/* Laid out like the store. Checkpoints store both arrays and `updates`. */
typedef struct co_ema {
    co_ema_options options;
    uint64_t updates;      /* made so far */
    float *param;          /* owned, (store->n) */
    float *buffer;         /* owned, (store->n_buffer) */
    const co_store *store; /* borrowed; allocates the arrays */
} co_ema;

/* Starts from the store's current values. */
co_status co_ema_create(co_ema **out, const co_ema_options *options, const co_store *store);
void co_ema_destroy(co_ema *ema);
/* Call before step `step`, counted from 1, and before its values are sent: sets the update's rate.
 */
void co_ema_begin(co_ema *ema, const co_store *store, uint64_t step);
/* Call after each optimizer step. The same work in every step; the rate is in the store's values.
 */
void co_ema_update(co_ema *ema, const co_store *store);
/* Swap values with the store; a second call undoes it. `param`: including the weights. */
void co_ema_swap(co_ema *ema, co_store *store, bool param);

#endif
