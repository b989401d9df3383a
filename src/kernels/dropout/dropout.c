/*
 * dropout.c - the loops of dropout.h.
 */
#include "kernels/dropout/dropout.h"

void dropout_apply(float *y, const float *x, const reorder_places *p, const float *u,
                   double probability, bool channels)
{
    const float scale = (float)(1 / (1 - probability));

    for (int64_t c = 0; c < p->c; c++) {
        const int64_t at = c / p->block * p->group + c % p->block;

        for (int64_t s = 0; s < p->plane; s++) {
            const float draw = channels ? u[c] : u[c * p->plane + s];
            const int64_t e = at + s * p->pixel;

            y[e] = (double)draw < probability ? 0 : x[e] * scale;
        }
    }
}
