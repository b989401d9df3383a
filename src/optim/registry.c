/*
 * registry.c - every optimizer and schedule by name.
 */
#include <string.h>

#include "optim/optim.h"

const co_optimizer_ops *const co_optimizers[] = {
    &co_optimizer_sgd,
    &co_optimizer_adam,
    &co_optimizer_adamw,
    &co_optimizer_adadelta,
    &co_optimizer_lars,
    &co_optimizer_lamb,
    NULL,
};

const co_schedule_ops *const co_schedules[] = {
    &co_schedule_constant,
    &co_schedule_step,
    &co_schedule_multi_step,
    &co_schedule_cosine,
    &co_schedule_polynomial,
    &co_schedule_one_cycle,
    NULL,
};

const co_optimizer_ops *co_optimizer_find(const char *name)
{
    for (const co_optimizer_ops *const *ops = co_optimizers; *ops; ops++)
        if (strcmp((*ops)->name, name) == 0)
            return *ops;
    return NULL;
}

const co_schedule_ops *co_schedule_find(const char *name)
{
    for (const co_schedule_ops *const *ops = co_schedules; *ops; ops++)
        if (strcmp((*ops)->name, name) == 0)
            return *ops;
    return NULL;
}
