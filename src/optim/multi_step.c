/*
 * multi_step.c - the rate falls by one factor at each of some epochs or updates.
 */
#include <inttypes.h>
#include <math.h>

#include "optim/optim.h"

typedef struct multi_step {
    co_ints milestones;
    double gamma;
} multi_step;

static const co_key multi_step_keys[] = {
    {.name = "milestones",
     .type = CO_KEY_INTS,
     .offset = offsetof(multi_step, milestones),
     .min = 0,
     .max = 1e15,
     .help = "where the rate falls, in `unit` from the start, rising: [30, 60, 80]"},
    {.name = "gamma",
     .type = CO_KEY_REAL,
     .offset = offsetof(multi_step, gamma),
     .fallback = "0.1",
     .min = 0,
     .max = 1e6,
     .help = "factor on the rate at each fall"},
    CO_KEYS_END,
};

static co_status multi_step_check(const void *self)
{
    const multi_step *m = self;

    for (size_t i = 1; i < m->milestones.n; i++)
        if (m->milestones.v[i] <= m->milestones.v[i - 1])
            return co_fail(CO_E_USAGE,
                           "schedule multi-step: milestones rise, but %" PRId64
                           " comes after %" PRId64,
                           m->milestones.v[i], m->milestones.v[i - 1]);
    return CO_OK;
}

static double multi_step_factor(const void *self, const co_progress *progress)
{
    const multi_step *m = self;
    size_t passed = 0;

    while (passed < m->milestones.n && (uint64_t)m->milestones.v[passed] <= progress->at)
        passed++;
    return pow(m->gamma, (double)passed);
}

const co_schedule_ops co_schedule_multi_step = {
    .name = "multi-step",
    .summary = "the rate times gamma at each of some epochs",
    .keys = multi_step_keys,
    .self_size = sizeof(multi_step),
    .needs = CO_SCHEDULE_NEEDS_AT,
    .check = multi_step_check,
    .factor = multi_step_factor,
};
