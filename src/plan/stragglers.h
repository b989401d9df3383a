/*
 * stragglers.h - what it costs that ranks which wait for each other do not take equally long.
 *
 * A step's time on a rank is a draw from a distribution with mean 1; a step of N ranks ends with
 * the slowest: the expected maximum of N independent draws. Draws of a distribution are given
 * either as its coefficient of variation, then normal, or as what was measured.
 */
#ifndef CO_PLAN_STRAGGLERS_H
#define CO_PLAN_STRAGGLERS_H

#include <stddef.h>

/* Expected maximum of n draws of the standard normal distribution: the integral of x d(Phi^n),
   to 1e-6; 0 for n <= 1, 1 / sqrt(pi) for 2, 3 / (2 sqrt(pi)) for 3. */
double co_normal_max(double n);

/* Expected maximum of n draws with replacement from `x` (count > 0, rising): the sum over i of
   x_i ((i / count)^n - ((i - 1) / count)^n). For n > count, where that is no more than the largest
   one measured, it keeps growing by what the last doubling up to count has added: the growth of an
   exponential tail. */
double co_sample_max(const double *x, size_t count, double n);

typedef struct co_stragglers {
    double variation; /* standard deviation over mean of a step's time on a rank; with `count` 0 */
    size_t count;
    const double *draw; /* borrowed, (count), rising, mean 1 */
} co_stragglers;

/* How many times as long as a rank alone N ranks take that wait for each other every `period`
   steps: the noise of steps between two waits adds up to sqrt(period) of that of one. */
double co_stragglers_factor(const co_stragglers *s, double ranks, double period);

#endif
