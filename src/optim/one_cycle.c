/*
 * one_cycle.c - up to the rate and down again within the run (1cycle: Smith & Topin,
 * arXiv:1708.07120), as PyTorch's OneCycleLR in two phases; `lr` is its max_lr.
 *
 * With `anneal: linear` the two legs are straight: the triangle of quick CIFAR runs.
 */
#include <math.h>

#include "optim/optim.h"

typedef struct one_cycle {
    double pct_start, div_factor, final_div_factor;
    int anneal;
} one_cycle;

enum { ONE_CYCLE_COS, ONE_CYCLE_LINEAR };
static const char *const one_cycle_anneals[] = {"cos", "linear", NULL};

static const co_key one_cycle_keys[] = {
    {.name = "pct_start",
     .type = CO_KEY_REAL,
     .offset = offsetof(one_cycle, pct_start),
     .fallback = "0.3",
     .min = 0,
     .max = 1,
     .help = "share of the run in which the rate rises"},
    {.name = "div_factor",
     .type = CO_KEY_REAL,
     .offset = offsetof(one_cycle, div_factor),
     .fallback = "25",
     .min = 1,
     .max = 1e30,
     .help = "the rate begins at lr divided by this"},
    {.name = "final_div_factor",
     .type = CO_KEY_REAL,
     .offset = offsetof(one_cycle, final_div_factor),
     .fallback = "1e4",
     .min = 1,
     .max = 1e30,
     .help = "and ends at where it began divided by this"},
    {.name = "anneal",
     .type = CO_KEY_CHOICE,
     .offset = offsetof(one_cycle, anneal),
     .fallback = "cos",
     .choices = one_cycle_anneals,
     .help = "shape of both legs: half a cosine, or a straight line"},
    CO_KEYS_END,
};

/* From `a` to `b` as `part` goes from 0 to 1. */
static double one_cycle_leg(const one_cycle *o, double a, double b, double part)
{
    if (o->anneal == ONE_CYCLE_LINEAR)
        return a + (b - a) * part;
    return b + (a - b) / 2 * (1 + cos(acos(-1) * part));
}

static double one_cycle_factor(const void *self, const co_progress *progress)
{
    const one_cycle *o = self;
    const double last = (double)progress->total_steps - 1, step = (double)progress->step;
    const double top = o->pct_start * (double)progress->total_steps - 1; /* where the rate is lr */
    const double first = 1 / o->div_factor, final = first / o->final_div_factor;

    if (step < top)
        return one_cycle_leg(o, first, 1, step / top);
    if (step >= last)
        return last > top ? final : 1;
    return one_cycle_leg(o, 1, final, (step - top) / (last - top));
}

const co_schedule_ops co_schedule_one_cycle = {
    .name = "one-cycle",
    .summary = "up to the rate and down again within the run",
    .keys = one_cycle_keys,
    .self_size = sizeof(one_cycle),
    .needs = CO_SCHEDULE_NEEDS_TOTAL,
    .factor = one_cycle_factor,
};
