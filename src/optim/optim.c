/*
 * optim.c - an optimizer from its config, over ranges of a flat store.
 *
 * Settles where the state is, which rate is the base, which weights decay how strongly, and who
 * does the arithmetic. Independent of schedules and ranks: the rate of each update is in the
 * store's values.
 */
#include "optim/optim.h"

#include <stdio.h>
#include <string.h>

#include "core/mem.h"
#include "core/parallel.h"
#include "core/plural.h"
#include "device/device.h"

/* A part of the store that is updated in one call. */
typedef struct optim_run {
    size_t begin, end;
    double decay;
    uint64_t missed;
    co_param_kind kind;
} optim_run;

struct co_optim {
    const co_optimizer_ops *ops;
    const co_device_optimizer *there; /* the device's; NULL: the store is the host's */
    double lr, decay, norm_decay, bias_decay;
    int64_t lr_batch;
    int first_state; /* index in co_store.state */
    int n_state;
    int threads;
    size_t n_run;
    optim_run *run;     /* owned; by rising `begin` */
    max_align_t self[]; /* the optimizer's own fields */
};

/* Weights that one core updates in some microseconds. */
#define OPTIM_SMALL 16384
#define OPTIM_LINE  16 /* floats */

#define OPTIM_AS_MODEL (-1.0) /* of norm_weight_decay and bias_weight_decay */

const co_key co_optimizer_common_keys[] = {
    {.name = "lr",
     .type = CO_KEY_REAL,
     .offset = offsetof(co_optim, lr),
     .fallback = "~", /* the optimizer's default_lr */
     .min = 0,
     .max = 1e6,
     .help = "learning rate, before the schedule's factor"},
    {.name = "lr_batch",
     .type = CO_KEY_INT,
     .offset = offsetof(co_optim, lr_batch),
     .fallback = "0",
     .min = 0,
     .max = 1 << 24,
     .help = "samples per step that lr is meant for: it is scaled by batch / lr_batch; 0: never"},
    {.name = "weight_decay",
     .type = CO_KEY_REAL,
     .offset = offsetof(co_optim, decay),
     .fallback = "~", /* the optimizer's default_decay */
     .min = 0,
     .max = 1e6,
     .help = "how strongly weights are pulled towards 0"},
    {.name = "norm_weight_decay",
     .type = CO_KEY_REAL,
     .offset = offsetof(co_optim, norm_decay),
     .fallback = "-1",
     .min = OPTIM_AS_MODEL,
     .max = 1e6,
     .help = "the same for scales and shifts of norms; -1: as weight_decay, in transformers 0"},
    {.name = "bias_weight_decay",
     .type = CO_KEY_REAL,
     .offset = offsetof(co_optim, bias_decay),
     .fallback = "-1",
     .min = OPTIM_AS_MODEL,
     .max = 1e6,
     .help = "the same for biases; -1: as weight_decay, in transformers 0"},
    CO_KEYS_END,
};

static co_status optim_check(const co_optim *optim)
{
    const double pull[2] = {optim->norm_decay, optim->bias_decay};

    for (int i = 0; i < 2; i++)
        if (pull[i] < 0 && pull[i] > OPTIM_AS_MODEL)
            return co_fail(CO_E_USAGE,
                           "optimizer %s: %s_weight_decay is 0 or more, or -1 for the "
                           "model's default",
                           optim->ops->name, i == 0 ? "norm" : "bias");
    if (optim->ops->check)
        CO_PLUGIN_TRY(&co_optimizer_plugins, optim->ops, check, (optim->self));
    return CO_OK;
}

static co_status optim_read(co_optim *optim, const co_value *map, const co_value *value,
                            co_arena *arena)
{
    const co_optimizer_ops *ops = optim->ops;
    const char *default_lr = co_arena_printf(arena, "%g", ops->default_lr);
    const char *default_decay = co_arena_printf(arena, "%g", ops->default_decay);
    co_key common[sizeof(co_optimizer_common_keys) / sizeof(co_optimizer_common_keys[0])];

    if (!default_lr || !default_decay)
        return CO_E_NOMEM;
    memcpy(common, co_optimizer_common_keys, sizeof(common));
    for (co_key *key = common; key->name; key++)
        if (strcmp(key->fallback, "~") == 0)
            key->fallback = key->offset == offsetof(co_optim, lr) ? default_lr : default_decay;
    CO_TRY(co_plugin_read(optim, ops, &co_optimizer_plugins, common, offsetof(co_optim, self), map,
                          arena));
    return co_value_place(optim_check(optim), value);
}

/* The names that the device has, ", " between them, cut where there is no more room. */
static const char *optim_list_there(char *out, size_t size, const co_device_optimizer *there)
{
    size_t used = 0;

    snprintf(out, size, "none");
    for (; there && there->name && used < size; there++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", there->name);
    return out;
}

static co_status optim_find_there(co_optim *optim, const co_store *store)
{
    const co_device_optimizer *there;
    char names[128];

    if (!store->device || co_device_is_host(store->device))
        return CO_OK;
    for (there = store->device->ops->optimizers; there && there->name; there++)
        if (strcmp(there->name, optim->ops->name) == 0) {
            optim->there = there;
            return CO_OK;
        }
    return co_fail(CO_E_UNSUPPORTED,
                   "optimizer %s: the device %s has no arithmetic for it; it has %s",
                   optim->ops->name, co_device_name(store->device),
                   optim_list_there(names, sizeof(names), store->device->ops->optimizers));
}

/* Room in the store for its states, and a name for each: plugins say what they have. */
static co_status optim_check_states(const co_optim *optim, const co_store *store)
{
    const co_optimizer_ops *ops = optim->ops;

    if (optim->n_state < 0 || optim->n_state > CO_STORE_MAX_STATES)
        return co_fail(
            CO_E_USAGE,
            "optimizer %s: its function states has returned %d; there are 0 to %d arrays "
            "of state",
            ops->name, optim->n_state, CO_STORE_MAX_STATES);
    for (int i = 0; i < optim->n_state; i++)
        if (!ops->state_names || !ops->state_names[i])
            return co_fail(CO_E_USAGE, "optimizer %s: has %d array%s of state, and no name of %d",
                           ops->name, optim->n_state, co_plural((uint64_t)optim->n_state), i);
    if (optim->n_state > CO_STORE_MAX_STATES - store->n_state)
        return co_fail(CO_E_USAGE,
                       "optimizer %s: no room for its state: this model has those of other "
                       "optimizers; create a new model",
                       ops->name);
    return CO_OK;
}

co_status co_optim_create(co_optim **out, const co_value *value, co_config *config, co_store *store)
{
    const co_optimizer_ops *ops;
    const void *chosen;
    const co_value *map;
    const co_segment all = {.n = store->n};
    co_optim *optim;
    co_status st;

    CO_TRY(co_plugin_choose(&chosen, &map, &co_optimizer_plugins, value, CO_OPTIM_DEFAULT));
    ops = chosen;
    optim = co_calloc(1, sizeof(*optim) + ops->self_size);
    if (!optim)
        return CO_E_NOMEM;
    optim->ops = ops;
    optim->threads = 1;
    optim->first_state = store->n_state;
    st = optim_read(optim, map, value, co_config_arena(config));
    optim->n_state = st == CO_OK && ops->states ? ops->states(optim->self) : 0;
    if (st == CO_OK)
        st = co_value_place(optim_check_states(optim, store), value);
    if (st == CO_OK)
        st = optim_find_there(optim, store);
    if (st == CO_OK)
        st = co_optim_set_segments(optim, &all, 1);
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
    if (!optim)
        return;
    co_free(optim->run);
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

co_status co_optim_set_batch(co_optim *optim, uint64_t batch)
{
    if (optim->lr_batch == 0)
        return CO_OK;
    if (batch == 0)
        return co_fail(CO_E_USAGE,
                       "optimizer %s: lr_batch scales lr by the samples of a step: say "
                       "how many there are",
                       optim->ops->name);
    optim->lr *= (double)batch / (double)optim->lr_batch;
    return CO_OK;
}

static double optim_decay(const co_optim *optim, const co_segment *segment)
{
    const double decay = segment->kind == CO_PARAM_NORM   ? optim->norm_decay
                         : segment->kind == CO_PARAM_BIAS ? optim->bias_decay
                                                          : optim->decay;

    if (decay >= 0)
        return decay;
    return segment->spared ? 0 : optim->decay;
}

co_status co_optim_set_segments(co_optim *optim, const co_segment *segment, size_t n)
{
    optim_run *run = co_calloc(n ? n : 1, sizeof(*run)), *last = NULL;
    size_t n_run = 0;

    if (!run)
        return CO_E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        const double decay = optim_decay(optim, &segment[i]);
        const size_t end = segment[i].begin + segment[i].n;

        if (segment[i].frozen) {
            last = NULL;
            continue;
        }
        if (last && !optim->ops->per_tensor && last->decay == decay &&
            last->missed == segment[i].missed) {
            last->end = end;
            continue;
        }
        last = &run[n_run++];
        *last = (optim_run){segment[i].begin, end, decay, segment[i].missed, segment[i].kind};
    }
    co_free(optim->run);
    optim->run = run;
    optim->n_run = n_run;
    return CO_OK;
}

co_status co_optim_check_parts(const co_optim *optim)
{
    if (!optim->ops->per_tensor)
        return CO_OK;
    return co_fail(CO_E_USAGE,
                   "optimizer %s needs whole tensors for their norms, but each rank updates a part "
                   "of the weights here; use the strategy sync with `update: whole`",
                   optim->ops->name);
}

co_status co_optim_check_range(const co_optim *optim, size_t begin, size_t end)
{
    for (size_t i = 0; optim->ops->per_tensor && i < optim->n_run; i++) {
        const optim_run *run = &optim->run[i];
        const bool apart = run->end <= begin || end <= run->begin;

        if (!apart && (run->begin < begin || end < run->end))
            return co_optim_check_parts(optim);
    }
    return CO_OK;
}

static void optim_update(const co_optim *optim, const co_store *store, const optim_run *run)
{
    float *state[CO_STORE_MAX_STATES] = {NULL};
    const co_update update = {.param = store->param + run->begin,
                              .grad = store->grad + run->begin,
                              .state = state,
                              .n = run->end - run->begin,
                              .decay = run->decay,
                              .kind = run->kind,
                              .values = store->values,
                              .queue = store->queue,
                              .missed = run->missed};

    for (int i = 0; i < optim->n_state; i++)
        state[i] = co_optim_state(optim, store, i) + run->begin;
    if (optim->there)
        optim->there->update(optim->ops, optim->self, &update);
    else
        optim->ops->update(optim->self, &update);
}

static void optim_update_range(const co_optim *optim, const co_store *store, size_t begin,
                               size_t end)
{
    for (size_t i = 0; i < optim->n_run; i++) {
        optim_run part = optim->run[i];

        part.begin = part.begin < begin ? begin : part.begin;
        part.end = part.end > end ? end : part.end;
        if (part.begin < part.end)
            optim_update(optim, store, &part);
    }
}

typedef struct optim_work {
    const co_optim *optim;
    const co_store *store;
    size_t begin, end;
    int threads;
} optim_work;

/* The part of thread `t`, whole lines of a cache. */
static void optim_update_part(void *arg, int t)
{
    const optim_work *w = arg;
    const size_t n = w->end - w->begin, lines = (n + OPTIM_LINE - 1) / OPTIM_LINE;
    const co_range part = co_parallel_part((int64_t)lines, t, w->threads);
    const size_t begin = (size_t)part.begin * OPTIM_LINE, end = (size_t)part.end * OPTIM_LINE;

    optim_update_range(w->optim, w->store, w->begin + begin, w->begin + (end < n ? end : n));
}

void co_optim_set_threads(co_optim *optim, int threads)
{
    optim->threads = co_parallel_threads(threads);
}

co_status co_optim_update(const co_optim *optim, co_store *store, size_t begin, size_t end)
{
    optim_work work = {optim, store, begin, end, optim->threads};

    CO_TRY(co_optim_check_range(optim, begin, end));
    if (optim->there || optim->ops->per_tensor || begin >= end || end - begin < OPTIM_SMALL)
        optim_update_range(optim, store, begin, end);
    else
        co_parallel_each(optim_update_part, &work, optim->threads);
    return CO_OK;
}
