/*
 * polynomial.c - from the base rate to its last value along a power of what is left of the run:
 * f + (1 - f) (1 - t / T)^power; power 1 is a straight line.
 */
#include <math.h>

#include "optim/optim.h"

typedef struct polynomial {
    double power, final;
} polynomial;

static const co_key polynomial_keys[] = {
    {.name = "power",
     .type = CO_KEY_REAL,
     .offset = offsetof(polynomial, power),
     .fallback = "1",
     .min = 0,
     .max = 100,
     .help = "of the part of the run that is left; 1: a straight line"},
    {.name = "final",
     .type = CO_KEY_REAL,
     .offset = offsetof(polynomial, final),
     .fallback = "0",
     .min = 0,
     .max = 1,
     .help = "factor on the rate that the run ends at"},
    CO_KEYS_END,
};

static double polynomial_factor(const void *self, const co_progress *progress)
{
    const polynomial *p = self;
    const double t = (double)progress->step / (double)progress->total_steps;

    return t < 1 ? p->final + (1 - p->final) * pow(1 - t, p->power) : p->final;
}

const co_schedule_ops co_schedule_polynomial = {
    .name = "polynomial",
    .summary = "a power of the part of the run that is left; linear by default",
    .keys = polynomial_keys,
    .self_size = sizeof(polynomial),
    .needs = CO_SCHEDULE_NEEDS_TOTAL,
    .factor = polynomial_factor,
};
