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
    bool warmup;   /* update t = 0, 1, ... keeps no more than (1 + t) / (10 + t) */
} co_ema_options;

/* Arrays as the store's: a checkpoint keeps both and `updates`. */
typedef struct co_ema {
    co_ema_options options;
    uint64_t updates;      /* of the average so far */
    float *param;          /* owned, (store->n) */
    float *buffer;         /* owned, (store->n_buffer) */
    const co_store *store; /* borrowed; whose memory they are */
} co_ema;

/* Begins as the weights that the store has now. */
co_status co_ema_create(co_ema **out, const co_ema_options *options, const co_store *store);
void co_ema_destroy(co_ema *ema);
/* After a step of the optimizer; `step` counts them from 1. */
void co_ema_update(co_ema *ema, const co_store *store, uint64_t step);
/* Exchange values with the store; twice is nothing. `param`: the weights too. */
void co_ema_swap(co_ema *ema, co_store *store, bool param);

#endif
