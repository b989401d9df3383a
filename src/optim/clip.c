/*
 * clip.c - limits on the gradient, over the whole flat store (its gaps are 0).
 */
#include <math.h>

#include "optim/optim.h"

double co_clip_norm(co_store *store, double limit)
{
    const double norm = sqrt(co_optim_sum_squares(store->grad, store->n));
    const float scale = (float)(limit / (norm + 1e-6));
    float *g = store->grad;

    if (scale < 1)
        for (size_t i = 0; i < store->n; i++)
            g[i] *= scale;
    return norm;
}

void co_clip_value(co_store *store, double limit)
{
    const float most = (float)limit;
    float *g = store->grad;

    /* Comparisons this way round leave a NaN in place, for the loss to show. */
    for (size_t i = 0; i < store->n; i++) {
        const float above = g[i] < -most ? -most : g[i];

        g[i] = above > most ? most : above;
    }
}
