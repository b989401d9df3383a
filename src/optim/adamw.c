/*
 * adamw.c - Adam with weight decay beside the gradient (Loshchilov & Hutter, arXiv:1711.05101):
 * p = (1 - lr weight_decay) p first, then Adam's step.
 */
#include "optim/moments.h"
#include "optim/optim.h"

static co_status adamw_check(const void *self)
{
    return co_moments_check(self, "adamw");
}

static void adamw_update(const void *self, const co_update *u)
{
    co_moments_update(self, u, true);
}

const co_optimizer_ops co_optimizer_adamw = {
    .name = "adamw",
    .summary = "Adam with weight decay beside the gradient",
    .keys = co_moments_keys,
    .default_lr = 0.001,
    .default_decay = 0.01,
    .self_size = sizeof(co_moments),
    .check = adamw_check,
    .states = co_moments_count_states,
    .state_names = co_moments_states,
    .update = adamw_update,
};
