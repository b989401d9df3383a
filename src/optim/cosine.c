/*
 * cosine.c - half a cosine from the base rate to its last value (Loshchilov & Hutter, SGDR,
 * arXiv:1608.03983, without restarts): f + (1 - f) (1 + cos(pi t / T)) / 2. It begins after the
 * warm-up, or with it, as a factor on its rise.
 */
#include <math.h>
#include <stdbool.h>

#include "optim/optim.h"

typedef struct cosine {
    double final;
    bool after_warmup;
} cosine;

static const co_key cosine_keys[] = {
    {.name = "final",
     .type = CO_KEY_REAL,
     .offset = offsetof(cosine, final),
     .fallback = "0",
     .min = 0,
     .max = 1,
     .help = "factor on the rate that the run ends at"},
    {.name = "after_warmup",
     .type = CO_KEY_BOOL,
     .offset = offsetof(cosine, after_warmup),
     .fallback = "true",
     .help = "the cosine begins after the warm-up; else with it, as a factor on the rise"},
    CO_KEYS_END,
};

static double cosine_factor(const void *self, const co_progress *progress)
{
    const cosine *c = self;
    const double pi = 3.14159265358979323846;
    const uint64_t begin = c->after_warmup ? progress->warmup : 0;
    const uint64_t total = progress->total_steps > begin ? progress->total_steps - begin : 1;
    const uint64_t made = progress->step > begin ? progress->step - begin : 0;
    const double t = (double)made / (double)total;

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
