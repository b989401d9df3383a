/*
 * local.c - averages weights every H steps instead of gradients at every step (local SGD).
 *
 * In between, each rank takes ordinary steps on its own samples, so traffic shrinks by a factor of
 * H (Stich, arXiv:1805.09767). Before `start` gradients are summed as in `sync`, because local
 * steps do most harm while the loss falls steeply (post-local SGD: Lin et al., arXiv:1808.07217).
 * With H = 1 and plain SGD, the mean of the new weights is one step along the mean gradient, which
 * is `sync` up to rounding; tests/strategy/test_local.c relies on it.
 *
 * With `outer`, the change from the common weights x at the start of a round to the mean at its end
 * is the gradient of an outer step,
 *   d = x - mean,  v = momentum v + d,  x = x - lr v
 * (heavy ball: SlowMo, Wang et al., arXiv:1910.00643, at a constant inner rate), or with nesterov
 *   x = x - lr (d + momentum v)
 * (DiLoCo: Douillard et al., arXiv:2311.08105, with lr 0.7 and momentum 0.9).
 *
 * The optimizer's state is per rank: it follows the rank's own gradients, these papers keep it
 * local, and averaging it would double or triple the traffic. Running statistics of batch norm are
 * averaged together with the weights.
 */

#include "core/mem.h"
#include "strategy/reduce.h"
#include "strategy/strategy.h"
#include "strategy/weights.h"

typedef struct local_outer {
    double momentum, lr;
    bool nesterov;
} local_outer;

typedef struct local_state {
    int64_t period, start;
    const co_value *outer_value; /* NULL: none */
    double bucket_mib;
    local_outer outer;
    uint64_t step;      /* current */
    co_reducer reducer; /* of gradients, before `start` */
    co_weights_used used;
    float *common;   /* owned; weights at the start of the round; NULL without `outer` */
    float *velocity; /* owned; likewise */
} local_state;

static const co_key local_keys[] = {
    {.name = "period",
     .type = CO_KEY_INT,
     .offset = offsetof(local_state, period),
     .fallback = "16",
     .min = 1,
     .max = 1e9,
     .help = "H, the steps from one average to the next"},
    {.name = "start",
     .type = CO_KEY_INT,
     .offset = offsetof(local_state, start),
     .fallback = "0",
     .min = 0,
     .max = 1e15,
     .help = "steps that are taken as in sync first (post-local SGD)"},
    {.name = "outer",
     .type = CO_KEY_VALUE,
     .offset = offsetof(local_state, outer_value),
     .fallback = "~",
     .choices = CO_KEY_TAKES("a map of momentum, lr and nesterov"),
     .help = "an outer step along the change of each round: {momentum, lr: 1, nesterov: false}"},
    CO_REDUCER_KEY(local_state, bucket_mib),
    CO_KEYS_END,
};

static const co_key local_outer_keys[] = {
    {.name = "momentum",
     .type = CO_KEY_REAL,
     .offset = offsetof(local_outer, momentum),
     .min = 0,
     .max = 1,
     .help = "share of the outer velocity that is kept from round to round"},
    {.name = "lr",
     .type = CO_KEY_REAL,
     .offset = offsetof(local_outer, lr),
     .fallback = "1",
     .min = 0,
     .max = 100,
     .help = "outer rate; 1 without momentum: the plain average"},
    {.name = "nesterov",
     .type = CO_KEY_BOOL,
     .offset = offsetof(local_outer, nesterov),
     .fallback = "false",
     .help = "look ahead along the velocity, as DiLoCo does; else heavy ball, as SlowMo"},
    CO_KEYS_END,
};

static co_status local_init_outer(local_state *self, const co_store *store)
{
    co_arena *arena = co_arena_create();
    co_status st;

    if (!arena)
        return CO_E_NOMEM;
    st = co_keys_read(&self->outer, local_outer_keys, self->outer_value, "strategy local: outer",
                      arena);
    co_arena_destroy(arena);
    CO_TRY(st);
    CO_TRY(co_store_take_array(&self->common, store, store->n));
    return co_store_take_array(&self->velocity, store, store->n);
}

static co_status local_init(co_strategy *strategy)
{
    local_state *self = strategy->self;

    strategy->own_weights = strategy->own_state = true;
    if (self->outer_value)
        CO_TRY(local_init_outer(self, strategy->store));
    return co_reducer_init(&self->reducer, strategy, strategy->store->grad, self->bucket_mib,
                           CO_SUM);
}

static co_status local_start(co_strategy *strategy)
{
    return co_weights_broadcast(strategy);
}

static bool local_is_local(const co_strategy *strategy, uint64_t step)
{
    const local_state *self = strategy->self;

    return step >= (uint64_t)self->start;
}

/* Whether a round ends with this step. */
static bool local_averages(const local_state *self, uint64_t step)
{
    return (step + 1 - (uint64_t)self->start) % (uint64_t)self->period == 0;
}

static bool local_synchronizes(const co_strategy *strategy, uint64_t step)
{
    return !local_is_local(strategy, step) || local_averages(strategy->self, step);
}

static co_status local_grad_ready(co_strategy *strategy, size_t begin, size_t end)
{
    local_state *self = strategy->self;

    if (local_is_local(strategy, self->step))
        return CO_OK;
    return co_reducer_ready(&self->reducer, begin, end);
}

static co_status local_before_update(co_strategy *strategy, const co_strategy_step *step)
{
    local_state *self = strategy->self;
    const co_store *store = strategy->store;

    if (!local_is_local(strategy, step->step)) {
        CO_TRY(co_reducer_post(&self->reducer));
        return co_reducer_wait(&self->reducer, NULL, NULL);
    }
    if (self->common && self->used.count[1] == 0)
        store->vector->copy(store->queue, self->common, store->param, store->n);
    co_weights_allow(strategy, step);
    return CO_OK;
}

/* store->param holds the mean; it becomes the change d, the outer step, and the new weights. */
static void local_step_outer(local_state *self, const co_store *store)
{
    const float momentum = (float)self->outer.momentum, lr = (float)self->outer.lr;
    const co_vector_ops *vector = store->vector;
    float *param = store->param;

    vector->axpby(store->queue, param, 1, self->common, -1, param, store->n);
    vector->axpby(store->queue, self->velocity, momentum, self->velocity, 1, param, store->n);
    if (self->outer.nesterov)
        vector->axpby(store->queue, param, momentum, self->velocity, 1, param, store->n);
    else
        vector->copy(store->queue, param, self->velocity, store->n);
    vector->axpby(store->queue, param, 1, self->common, -lr, param, store->n);
}

static co_status local_end_round(co_strategy *strategy)
{
    local_state *self = strategy->self;

    if (self->used.count[1] == 0)
        return CO_OK;
    CO_TRY(co_weights_average(&self->used, strategy));
    if (self->common)
        local_step_outer(self, strategy->store);
    return CO_OK;
}

static co_status local_after_update(co_strategy *strategy, const co_strategy_step *step)
{
    local_state *self = strategy->self;

    self->step = step->step + 1;
    if (!local_is_local(strategy, step->step))
        return CO_OK;
    co_weights_count(&self->used, step);
    return local_averages(self, step->step) ? local_end_round(strategy) : CO_OK;
}

/* The outer step of local_step_outer, in terms of co_strategy_merge. */
static co_strategy_merge local_merge(const co_strategy *strategy)
{
    const local_state *self = strategy->self;
    const double momentum = self->outer.momentum, lr = self->outer.lr;
    co_strategy_merge merge = {co_weights_share(&self->used), 1, 0};

    if (!self->common || self->used.count[1] == 0)
        return merge;
    merge.rate = self->outer.nesterov ? lr * (1 + momentum) : lr;
    merge.velocity = self->outer.nesterov ? lr * momentum * momentum : lr * momentum;
    return merge;
}

/* Both change only when all ranks synchronize, so they are equal on all. */
static float *local_persistent(const co_strategy *strategy, size_t i)
{
    const local_state *self = strategy->self;

    return i == 0 ? self->common : i == 1 ? self->velocity : NULL;
}

static uint64_t *local_counters(const co_strategy *strategy, size_t *n)
{
    local_state *self = strategy->self;

    return co_weights_counters(&self->used, n);
}

static co_status local_resume(co_strategy *strategy, uint64_t step)
{
    local_state *self = strategy->self;

    self->step = step;
    return CO_OK;
}

static void local_fini(co_strategy *strategy)
{
    local_state *self = strategy->self;

    co_reducer_fini(&self->reducer);
    co_store_give_array(strategy->store, self->velocity);
    co_store_give_array(strategy->store, self->common);
}

const co_strategy_ops co_strategy_local = {
    .name = "local",
    .summary = "average the weights of all ranks every H steps (local SGD, SlowMo, DiLoCo)",
    .keys = local_keys,
    .self_size = sizeof(local_state),
    .init = local_init,
    .start = local_start,
    .is_local = local_is_local,
    .synchronizes = local_synchronizes,
    .grad_ready = local_grad_ready,
    .before_update = local_before_update,
    .after_update = local_after_update,
    .finish = local_end_round,
    .merge = local_merge,
    .persistent = local_persistent,
    .counters = local_counters,
    .resume = local_resume,
    .fini = local_fini,
};
