/*
 * clip.c - the limit on the norm of the gradient, over the whole flat store (its gaps are 0), which
 * the update applies in its own pass. Must not write a gradient.
 */
#include "optim/optim.h"

void co_clip_norm(const co_store *store, bool check)
{
    co_step_values *values = store->values;

    store->vector->sum_squares(store->queue, &values->sum_squares, check ? &values->max_abs : NULL,
                               store->grad, store->n, &values->rule);
    store->vector->step(store->queue, values, CO_STEP_CLIP, NULL);
}
