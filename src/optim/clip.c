/*
 * clip.c - limits on the gradient, over the whole flat store (its gaps are 0).
 */
#include <math.h>

#include "optim/optim.h"

#define CLIP_LANES 8

/* Sum of squares in double. The lanes are the same whatever the machine's vectors are. */
static double clip_sum_squares(const float *g, size_t n)
{
    double lane[CLIP_LANES] = {0}, sum = 0;
    size_t i = 0;

    for (; i + CLIP_LANES <= n; i += CLIP_LANES)
        for (size_t k = 0; k < CLIP_LANES; k++)
            lane[k] += (double)g[i + k] * (double)g[i + k];
    for (; i < n; i++)
        lane[0] += (double)g[i] * (double)g[i];
    for (size_t k = 0; k < CLIP_LANES; k++)
        sum += lane[k];
    return sum;
}

double co_clip_norm(co_store *store, double limit)
{
    const double norm = sqrt(clip_sum_squares(store->grad, store->n));
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
