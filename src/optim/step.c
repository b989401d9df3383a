/*
 * step.c - the rate falls by one factor every so many epochs or updates.
 */
#include <math.h>

#include "optim/optim.h"

typedef struct step {
    int64_t every;
    double gamma;
} step;

static const co_key step_keys[] = {
    {.name = "every",
     .type = CO_KEY_INT,
     .offset = offsetof(step, every),
     .fallback = "30",
     .min = 1,
     .max = 1e9,
     .help = "length between two falls, in `unit`"},
    {.name = "gamma",
     .type = CO_KEY_REAL,
     .offset = offsetof(step, gamma),
     .fallback = "0.1",
     .min = 0,
     .max = 1e6,
     .help = "factor on the rate at each fall"},
    CO_KEYS_END,
};

static double step_factor(const void *self, const co_progress *progress)
{
    const step *s = self;
    const uint64_t falls = progress->at / (uint64_t)s->every;

    return pow(s->gamma, (double)falls);
}

const co_schedule_ops co_schedule_step = {
    .name = "step",
    .summary = "the rate times gamma every so many epochs",
    .keys = step_keys,
    .self_size = sizeof(step),
    .needs = CO_SCHEDULE_NEEDS_AT,
    .factor = step_factor,
};
