/*
 * constant.c - the base rate throughout.
 */
#include "optim/optim.h"

static double constant_factor(const void *self, const co_progress *progress)
{
    (void)self;
    (void)progress;
    return 1;
}

const co_schedule_ops co_schedule_constant = {
    .name = "constant",
    .summary = "the same rate throughout",
    .factor = constant_factor,
};
