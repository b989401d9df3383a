/*
 * norm.c - the size of a gradient or of a tensor.
 */
#include "optim/optim.h"

#define NORM_LANES 8

double co_optim_sum_squares(const float *v, size_t n)
{
    double lane[NORM_LANES] = {0}, sum = 0; /* the same whatever the machine's vectors are */
    size_t i = 0;

    for (; i + NORM_LANES <= n; i += NORM_LANES)
        for (size_t k = 0; k < NORM_LANES; k++)
            lane[k] += (double)v[i + k] * (double)v[i + k];
    for (; i < n; i++)
        lane[0] += (double)v[i] * (double)v[i];
    for (size_t k = 0; k < NORM_LANES; k++)
        sum += lane[k];
    return sum;
}
