/*
 * optim.c - an optimizer from its config, over ranges of a flat store.
 *
 * Settles where the state lies and which rate is the base. Must not know schedules, steps or
 * ranks: the caller brings the rate of each update.
 */
#include "optim/optim.h"

#include "core/mem.h"

#define OPTIM_MAX_NAMES 64

struct co_optim {
    const co_optimizer_ops *ops;
    double lr;
    int first_state; /* index in co_store.state */
    int n_state;
    max_align_t self[]; /* the optimizer's own fields */
};

const co_key co_optimizer_common_keys[] = {
    {.name = "lr",
     .type = CO_KEY_REAL,
     .offset = offsetof(co_optim, lr),
     .fallback = "~", /* the optimizer's default_lr */
     .min = 0,
     .max = 1e6,
     .help = "learning rate, before the schedule's factor"},
    CO_KEYS_END,
};

static co_status optim_unknown(const char *name, const co_value *value)
{
    const char *names[OPTIM_MAX_NAMES];
    size_t n = 0;

    for (const co_optimizer_ops *const *ops = co_optimizers; *ops && n < OPTIM_MAX_NAMES; ops++)
        names[n++] = (*ops)->name;
    return co_value_unknown(value, "optimizer", name, names, n);
}

static co_status optim_read(co_optim *optim, const co_value *map, co_arena *arena)
{
    const co_optimizer_ops *ops = optim->ops;
    char *what = co_arena_printf(arena, "optimizer %s", ops->name);
    char *default_lr = co_arena_printf(arena, "%g", ops->default_lr);
    co_key common[] = {co_optimizer_common_keys[0], CO_KEYS_END};
    const co_key *keys;

    if (!what || !default_lr)
        return CO_E_NOMEM;
    common[0].fallback = default_lr;
    CO_TRY(co_keys_join(&keys, common, ops->keys, offsetof(co_optim, self), arena));
    CO_TRY(co_keys_read(optim, keys, map, what, arena));
    return ops->check ? co_value_place(ops->check(optim->self), map) : CO_OK;
}

co_status co_optim_create(co_optim **out, const co_value *value, co_config *config, co_store *store)
{
    const co_optimizer_ops *ops;
    const co_value *map = NULL;
    const char *name = "sgd";
    co_optim *optim;
    co_status st;

    if (value)
        CO_TRY(co_value_plugin(&name, &map, value, "optimizer"));
    ops = co_optimizer_find(name);
    if (!ops)
        return optim_unknown(name, value);
    optim = co_calloc(1, sizeof(*optim) + ops->self_size);
    if (!optim)
        return CO_E_NOMEM;
    optim->ops = ops;
    optim->first_state = store->n_state;
    st = optim_read(optim, map, co_config_arena(config));
    optim->n_state = st == CO_OK && ops->states ? ops->states(optim->self) : 0;
    if (st == CO_OK && optim->n_state > CO_STORE_MAX_STATES - store->n_state)
        st = co_fail(CO_E_USAGE,
                     "optimizer %s: no room for its state beside that of the optimizers that this "
                     "model already has; create the model anew",
                     ops->name);
    if (st == CO_OK)
        st = co_store_add_states(store, optim->n_state);
    if (st != CO_OK) {
        co_optim_destroy(optim);
        return st;
    }
    *out = optim;
    return CO_OK;
}

void co_optim_destroy(co_optim *optim)
{
    co_free(optim);
}

const co_optimizer_ops *co_optim_ops(const co_optim *optim)
{
    return optim->ops;
}

double co_optim_base_lr(const co_optim *optim)
{
    return optim->lr;
}

int co_optim_state_count(const co_optim *optim)
{
    return optim->n_state;
}

const char *co_optim_state_name(const co_optim *optim, int i)
{
    return optim->ops->state_names[i];
}

float *co_optim_state(const co_optim *optim, const co_store *store, int i)
{
    return store->state[optim->first_state + i];
}

void co_optim_update(const co_optim *optim, co_store *store, size_t begin, size_t end, double lr,
                     uint64_t step)
{
    float *state[CO_STORE_MAX_STATES] = {NULL};
    const co_update update = {.param = store->param + begin,
                              .grad = store->grad + begin,
                              .state = state,
                              .n = end - begin,
                              .lr = lr,
                              .step = step};

    for (int i = 0; i < optim->n_state; i++)
        state[i] = co_optim_state(optim, store, i) + begin;
    optim->ops->update(optim->self, &update);
}
