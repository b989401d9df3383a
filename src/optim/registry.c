/*
 * registry.c - every optimizer and schedule by name.
 */
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

const co_plugins co_optimizer_plugins = {"optimizer", "optimizer", co_optimizers,
                                         CO_PLUGIN_OPTIMIZER, co_optimizer_common_keys};
const co_plugins co_schedule_plugins = {"schedule", "schedule", co_schedules, CO_PLUGIN_SCHEDULE,
                                        co_schedule_common_keys};

CO_PLUGIN_CHECK(co_optimizer_ops, self_size);
CO_PLUGIN_CHECK(co_schedule_ops, self_size);
