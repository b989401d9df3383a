/*
 * one_shot.c - every rank trains alone; the weights are averaged once, at the end (SimuParallelSGD:
 * Zinkevich et al., "Parallelized Stochastic Gradient Descent", NIPS 2010).
 *
 * The paper's loss is convex and all ranks start from the same w_0, as with `init: common`. With
 * `init: per-rank` each rank draws its own weights. Hidden units can be permuted without changing
 * what a network computes, so such ranks end with weights that do not match unit by unit, and the
 * mean of two good networks is a bad one. The option exists to show that.
 *
 * The optimizer's state is per rank. Running statistics of batch norm are averaged with the
 * weights.
 */
#include "strategy/strategy.h"
#include "strategy/weights.h"

typedef struct one_shot {
    int init;
    co_weights_used used;
} one_shot;

enum { ONE_SHOT_COMMON, ONE_SHOT_PER_RANK };
static const char *const one_shot_inits[] = {"common", "per-rank", NULL};

static const co_key one_shot_keys[] = {
    {.name = "init",
     .type = CO_KEY_CHOICE,
     .offset = offsetof(one_shot, init),
     .fallback = "common",
     .choices = one_shot_inits,
     .help = "initial weights: rank 0's for all, or each rank's own, whose average is of no use"},
    CO_KEYS_END,
};

static co_status one_shot_begin(co_strategy *strategy)
{
    strategy->own_weights = strategy->own_state = true;
    return CO_OK;
}

static co_status one_shot_start(co_strategy *strategy)
{
    const one_shot *self = strategy->self;

    if (self->init == ONE_SHOT_COMMON)
        return co_weights_broadcast(strategy);
    if (!strategy->draw_weights)
        return co_fail(CO_E_USAGE,
                       "strategy one-shot: the initial weights are given, so that ranks "
                       "cannot draw their own; use init: common");
    return strategy->draw_weights(strategy->owner, (uint64_t)co_comm_rank(strategy->comm));
}

static bool one_shot_is_local(const co_strategy *strategy, uint64_t step)
{
    (void)strategy;
    (void)step;
    return true;
}

static co_status one_shot_before_update(co_strategy *strategy, const co_strategy_step *step)
{
    co_weights_allow(strategy, step);
    return CO_OK;
}

static co_status one_shot_after_update(co_strategy *strategy, const co_strategy_step *step)
{
    one_shot *self = strategy->self;

    co_weights_count(&self->used, step);
    return CO_OK;
}

static co_status one_shot_finish(co_strategy *strategy)
{
    one_shot *self = strategy->self;

    return co_weights_average(&self->used, strategy);
}

static co_strategy_merge one_shot_merge(const co_strategy *strategy)
{
    const one_shot *self = strategy->self;

    return (co_strategy_merge){co_weights_share(&self->used), 1, 0};
}

static uint64_t *one_shot_counters(const co_strategy *strategy, size_t *n)
{
    one_shot *self = strategy->self;

    return co_weights_counters(&self->used, n);
}

const co_strategy_ops co_strategy_one_shot = {
    .name = "one-shot",
    .summary = "train alone and average the weights of all ranks once, at the end (Zinkevich)",
    .keys = one_shot_keys,
    .self_size = sizeof(one_shot),
    .init = one_shot_begin,
    .start = one_shot_start,
    .is_local = one_shot_is_local,
    .before_update = one_shot_before_update,
    .after_update = one_shot_after_update,
    .finish = one_shot_finish,
    .merge = one_shot_merge,
    .counters = one_shot_counters,
};
