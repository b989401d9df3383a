/*
 * adam.c - Adam (Kingma & Ba, arXiv:1412.6980); weight decay is a part of the gradient (L2).
 */
#include "optim/moments.h"
#include "optim/optim.h"

static co_status adam_check(const void *self)
{
    return co_moments_check(self, "adam");
}

static void adam_update(const void *self, const co_update *u)
{
    co_moments_update(self, u, false);
}

const co_optimizer_ops co_optimizer_adam = {
    .name = "adam",
    .summary = "Adam: each weight at its own rate; weight decay as a part of the gradient",
    .keys = co_moments_keys,
    .default_lr = 0.001,
    .self_size = sizeof(co_moments),
    .check = adam_check,
    .states = co_moments_count_states,
    .state_names = co_moments_states,
    .update = adam_update,
};
