/*
 * norm.c - the size of a gradient or of a tensor.
 */
#include "optim/optim.h"

#define NORM_LANES 8

double co_optim_sum_squares_used(const float *grad, size_t n, co_grad_rule rule)
{
    double lane[NORM_LANES] = {0}, sum = 0; /* the same whatever the machine's vectors are */
    size_t i = 0;

    for (; i + NORM_LANES <= n; i += NORM_LANES)
        for (size_t k = 0; k < NORM_LANES; k++) {
            const double g = (double)co_grad_use(grad[i + k], rule);

            lane[k] += g * g;
        }
    for (; i < n; i++) {
        const double g = (double)co_grad_use(grad[i], rule);

        lane[0] += g * g;
    }
    for (size_t k = 0; k < NORM_LANES; k++)
        sum += lane[k];
    return sum;
}

double co_optim_sum_squares(const float *v, size_t n)
{
    return co_optim_sum_squares_used(v, n, CO_GRAD_PLAIN);
}
