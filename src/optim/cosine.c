/*
 * cosine.c - half a cosine from the base rate to its last value (Loshchilov & Hutter, SGDR,
 * arXiv:1608.03983, without restarts): f + (1 - f) (1 + cos(pi t / T)) / 2.
 */
#include <math.h>

#include "optim/optim.h"

typedef struct cosine {
    double final;
} cosine;

static const co_key cosine_keys[] = {
    {.name = "final",
     .type = CO_KEY_REAL,
     .offset = offsetof(cosine, final),
     .fallback = "0",
     .min = 0,
     .max = 1,
     .help = "factor on the rate that the run ends at"},
    CO_KEYS_END,
};

static double cosine_factor(const void *self, const co_progress *progress)
{
    const cosine *c = self;
    const double pi = 3.14159265358979323846;
    const double t = (double)progress->step / (double)progress->total_steps;

    return t < 1 ? c->final + (1 - c->final) * (1 + cos(pi * t)) / 2 : c->final;
}

const co_schedule_ops co_schedule_cosine = {
    .name = "cosine",
    .summary = "half a cosine from the rate down to the end of the run",
    .keys = cosine_keys,
    .self_size = sizeof(cosine),
    .needs = CO_SCHEDULE_NEEDS_TOTAL,
    .factor = cosine_factor,
};
