/*
 * clip.c - limits on the gradient, over the whole flat store (its gaps are 0), which the update
 * applies in its own pass. Must not write a gradient.
 */
#include <math.h>

#include "optim/optim.h"

co_status co_clip_norm(double *norm, co_grad_rule *rule, const co_store *store, double limit)
{
    float scale;

    CO_TRY(co_store_sum_squares(norm, store, store->grad, store->n, rule->scale, rule->limit));
    *norm = sqrt(*norm);
    scale = (float)(limit / (*norm + 1e-6));
    if (scale < 1) {
        rule->scale *= scale;
        rule->limit *= scale;
    }
    return CO_OK;
}

void co_clip_value(co_grad_rule *rule, double limit)
{
    rule->limit = (float)limit;
}
