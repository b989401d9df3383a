/*
 * distributed.c - one update: gradients summed over ranks, clipped, applied at the scheduled rate.
 *
 * Combines a strategy, an optimizer and a schedule over one flat store. Does not know data, epochs
 * or metrics.
 */
#include <math.h>

#include <cohort/ext/comm.h>

#include "comm/queued.h"
#include "comm/tree.h"
#include "core/clock.h"
#include "core/mem.h"
#include "core/sized.h"
#include "device/device.h"
#include "profile/profiler.h"
#include "step/distributed_internal.h"

static co_status distributed_draw_weights(void *owner, uint64_t offset)
{
    const co_model *model = owner;

    return co_graph_init(model->graph, model->store, model->seed + offset);
}

static co_status distributed_open_scaler(co_distributed *d)
{
    co_scaler_init(&d->scaler, &d->options.model->precision);
    if (d->scaler.rules.dynamic && d->options.model->store->ring &&
        co_strategy_persistent(d->strategy, 0))
        return co_fail(CO_E_USAGE,
                       "precision: what the strategy %s keeps of gradients from step to step has "
                       "their loss scale, which on a device the host learns later; give "
                       "`loss_scale` a number, or keep nothing",
                       d->strategy->ops->name);
    return distributed_check_scale(d->strategy, &d->scaler);
}

static size_t distributed_grad_bytes(const co_distributed *d)
{
    return d->options.model->store->n * sizeof(float);
}

/* Allocate the gradients where ranks share memory, so that they can be summed in place. */
static co_status distributed_lend_grad(co_distributed *d)
{
    co_comm *comm = d->options.comm;
    void *grad;

    if (co_comm_size(comm) == 1 || !comm->ops->alloc || d->options.model->store->ring)
        return CO_OK;
    CO_TRY(co_comm_alloc(&grad, comm, distributed_grad_bytes(d)));
    d->grad = grad;
    co_store_lend_grad(d->options.model->store, grad);
    co_model_drop_plans(d->options.model);
    return CO_OK;
}

static void distributed_take_grad(co_distributed *d)
{
    if (!d->grad)
        return;
    co_store_lend_grad(d->options.model->store, NULL);
    co_model_drop_plans(d->options.model);
    co_comm_free(d->options.comm, d->grad, distributed_grad_bytes(d));
}

static co_status distributed_check(const co_distributed_options *o)
{
    if (!(o->clip_norm >= 0 && o->clip_value >= 0))
        return co_fail(CO_E_USAGE, "clip_norm %g, clip_value %g: 0, for none, or more",
                       o->clip_norm, o->clip_value);
    if (o->tree && o->tree->ranks != co_comm_size(o->comm))
        return co_fail(CO_E_USAGE, "the tree is for %d ranks, the communicator has %d",
                       o->tree->ranks, co_comm_size(o->comm));
    return CO_OK;
}

static co_status distributed_check_parts(const co_distributed *d)
{
    size_t begin, end;

    for (size_t i = 0; co_strategy_own_part(&begin, &end, d->strategy, i); i++)
        CO_TRY(co_optim_check_range(d->optim, begin, end));
    return CO_OK;
}

/* Room for the squares of the gradient, where ranks sum parts of it and its norm is wanted. */
static co_status distributed_take_squares(co_distributed *d)
{
    const co_store *store = d->options.model->store;
    const size_t n = (store->n + CO_VECTOR_SQUARES - 1) / CO_VECTOR_SQUARES;
    void *room = NULL;

    if (d->options.clip_norm <= 0 || !co_distributed_sums_slices(d))
        return CO_OK;
    CO_TRY(co_device_alloc(&room, store->device, n * sizeof(*d->block_squares), CO_MEMORY_DEVICE));
    d->block_squares = room;
    return CO_OK;
}

co_status co_distributed_create_from(co_distributed **out, const co_distributed_values *values,
                                     const co_distributed_options *options)
{
    co_store *store = options->model->store;
    const float *param = store->param;
    co_distributed *d;
    co_status st;

    CO_TRY(distributed_check(options));
    d = co_calloc(1, sizeof(*d));
    if (!d)
        return CO_E_NOMEM;
    d->options = *options;
    d->config = values->config;
    st = co_optim_create(&d->optim, values->optimizer, values->config, store);
    if (st == CO_OK)
        st = co_optim_set_batch(d->optim, options->batch);
    if (st == CO_OK)
        st = co_schedule_create(&d->schedule, values->schedule, values->config);
    if (st == CO_OK)
        st = distributed_check_schedule(d);
    if (st == CO_OK)
        st = distributed_lend_grad(d);
    if (st == CO_OK)
        st = co_strategy_create(&d->strategy, values->strategy, values->config, options->comm,
                                store, options->tree);
    if (st == CO_OK)
        st = co_value_place(distributed_check_delay(d), values->strategy);
    if (st == CO_OK) {
        d->strategy->draw_weights = options->model->given ? NULL : distributed_draw_weights;
        d->strategy->owner = options->model;
        d->strategy->whole_tensors = co_optim_ops(d->optim)->per_tensor;
        d->strategy->whole_norm = options->clip_norm > 0;
        st = distributed_set_segments(d, 0);
    }
    if (st == CO_OK)
        st = co_strategy_start(d->strategy);
    if (st == CO_OK)
        st = distributed_open_scaler(d);
    if (st == CO_OK)
        st = co_value_place(distributed_check_parts(d), values->strategy);
    if (store->param != param)
        co_model_drop_plans(options->model);
    if (st == CO_OK)
        st = co_distributed_forget_others(d);
    if (st == CO_OK)
        st = distributed_take_squares(d);
    if (st != CO_OK) {
        co_distributed_destroy(d);
        return st;
    }
    *out = d;
    return CO_OK;
}

/* Count the time since `start_ns` as the strategy's; returns `st`. */
static co_status distributed_synced(co_distributed *d, uint64_t start_ns, co_status st)
{
    d->sync_ns += co_clock_ns() - start_ns;
    return st;
}

co_strategy_merge co_distributed_merge(const co_distributed *d)
{
    return co_strategy_merge_of(d->strategy);
}

uint64_t *co_distributed_counters(const co_distributed *d, size_t *n)
{
    return co_strategy_counters(d->strategy, n);
}

bool co_distributed_owns_weights(const co_distributed *d)
{
    return d->strategy->own_weights;
}

co_status co_distributed_quiesce(co_distributed *d)
{
    return distributed_synced(d, co_clock_ns(), co_strategy_quiesce(d->strategy));
}

bool co_distributed_is_settled(const co_distributed *d)
{
    return !d->strategy->ops->quiesce;
}

uint64_t co_distributed_updates(const co_distributed *d)
{
    return d->updates;
}

co_status co_distributed_resume(co_distributed *d, uint64_t step, uint64_t updates,
                                const uint64_t *missed)
{
    d->step = (co_strategy_step){.step = step};
    d->updates = updates;
    d->current = false;
    CO_TRY(distributed_resume_missed(d, missed));
    return co_strategy_resume(d->strategy, step);
}

static co_status distributed_add_text(const co_value **out, co_config *config, const char *text)
{
    *out = NULL;
    return text ? co_config_add_text(out, config, text) : CO_OK;
}

CO_SIZED_END(co_distributed_options, batch);

co_status co_distributed_create_sized(co_distributed **out, const co_distributed_options *given,
                                      size_t size)
{
    co_distributed_values values = {NULL};
    co_distributed_options o, *options = &o;
    co_status st;

    CO_TRY(CO_SIZED_READ(&o, given, size, co_distributed_options));
    if (!o.model || !o.comm)
        return co_fail(CO_E_USAGE, "co_distributed_options: give a %s", o.model ? "comm" : "model");
    CO_TRY(co_config_parse(&values.config, "{}", 2, "optimizer"));
    st = distributed_add_text(&values.optimizer, values.config, options->optimizer);
    if (st == CO_OK)
        st = distributed_add_text(&values.schedule, values.config, options->schedule);
    if (st == CO_OK)
        st = distributed_add_text(&values.strategy, values.config, options->strategy);
    if (st == CO_OK)
        st = co_distributed_create_from(out, &values, options);
    if (st == CO_OK)
        (*out)->owns_config = true;
    else
        co_config_destroy(values.config);
    return st;
}

void co_distributed_destroy(co_distributed *d)
{
    const float *param;

    if (!d)
        return;
    param = d->options.model->store->param;
    co_strategy_destroy(d->strategy);
    co_comm_release_devices(d->options.comm);
    if (d->options.model->store->param != param)
        co_model_drop_plans(d->options.model);
    distributed_take_grad(d);
    co_schedule_destroy(d->schedule);
    co_optim_destroy(d->optim);
    co_device_free(d->options.model->store->device, d->norm_room, CO_MEMORY_DEVICE);
    co_free(d->segment);
    co_device_free(d->options.model->store->device, d->block_squares, CO_MEMORY_DEVICE);
    if (d->owns_config)
        co_config_destroy(d->config);
    co_free(d);
}

static co_profiler *distributed_profiler(const co_distributed *d)
{
    return d->options.model->profiler;
}

bool co_distributed_repeats(const co_distributed *d)
{
    size_t counters = 0;

    (void)co_strategy_counters(d->strategy, &counters);
    return co_strategy_replicas_in_sync(d->strategy) && !distributed_keeps_gradients(d->strategy) &&
           !d->strategy->on_host && counters == 0 &&
           (!d->strategy->divided || d->strategy->divided == d->options.comm);
}

void co_distributed_count_step(co_distributed *d)
{
    d->step = (co_strategy_step){.step = d->step.step + 1};
    d->begun = d->announced = false;
    d->shards_done = 0;
}

static co_status distributed_ready(void *arg, size_t begin, size_t end)
{
    const uint64_t start_ns = co_clock_ns();
    co_distributed *d = arg;
    co_status st;

    co_profiler_enter(distributed_profiler(d), CO_PROFILE_POST);
    distributed_drop_frozen(d, begin, end);
    st = co_strategy_grad_ready(d->strategy, begin, end);
    co_profiler_leave(distributed_profiler(d));
    d->announced = end == d->options.model->store->n;
    return distributed_synced(d, start_ns, st);
}

/* The divisor of this rank's part of the gradient. */
static uint64_t distributed_samples(const co_distributed *d, const co_batch *batch)
{
    if (!co_strategy_is_local(d->strategy, d->step.step))
        return batch->global;
    return batch->local ? batch->local : batch->count;
}

co_status co_distributed_announce(co_distributed *d, const co_batch *batch)
{
    co_batch part = *batch;

    if (!co_model_has_parts(d->options.model))
        return CO_OK;
    CO_TRY(distributed_begin_step(d));
    part.global = distributed_samples(d, batch);
    co_model_announce(d->options.model, &part, d->has_gradient);
    return CO_OK;
}

/* Of this rank in each step. */
static int distributed_shards(const co_distributed *d)
{
    const co_tree *tree = d->options.tree;
    const int rank = co_comm_rank(d->options.comm);

    return tree ? co_tree_first(tree, rank + 1) - co_tree_first(tree, rank) : 1;
}

/* The strategy gets the gradient of a step once, with the last backward. */
static co_status distributed_check_more(const co_distributed *d, bool more)
{
    const int shards = distributed_shards(d);

    if (d->announced)
        return co_fail(CO_E_USAGE, "backward: the one before it in this step was said to be the "
                                   "last; `more` is true for all but that");
    if (!more && d->shards_done + 1 < shards)
        return co_fail(CO_E_USAGE,
                       "backward: of shard %d of this rank's %d `more` is true, as it is for all "
                       "but the last",
                       d->shards_done + 1, shards);
    return CO_OK;
}

co_status co_distributed_backward_sized(co_distributed *d, const co_batch *batch, size_t size,
                                        bool more)
{
    co_batch part;
    uint64_t global;

    CO_TRY(CO_SIZED_READ(&part, batch, size, co_batch));
    CO_TRY(distributed_check_more(d, more));
    CO_TRY(distributed_begin_step(d));
    global = part.global;
    if (part.count > 0 || d->options.model->norm_comm) {
        part.global = distributed_samples(d, &part);
        CO_TRY(co_model_backward(d->options.model, &part, d->has_gradient,
                                 more ? NULL : distributed_ready, d));
        d->has_gradient = true;
    }
    d->step.local += part.count;
    d->step.global = global;
    return CO_OK;
}

/* A rank or shard without samples has computed no gradient; make it zero. */
static void distributed_complete_gradient(co_distributed *d)
{
    const co_store *store = d->options.model->store;

    if (!d->has_gradient)
        store->vector->zero(store->queue, store->grad, store->n);
    d->has_gradient = false;
}

co_status co_distributed_next_shard(co_distributed *d)
{
    const uint64_t start_ns = co_clock_ns();
    const int shards = distributed_shards(d);

    if (d->shards_done + 1 >= shards)
        return co_fail(CO_E_USAGE,
                       "next_shard: this rank has no shard of the step after its %d; see "
                       "co_tree_first",
                       shards);
    d->shards_done++;
    distributed_complete_gradient(d);
    distributed_drop_frozen(d, 0, d->options.model->store->n);
    return distributed_synced(d, start_ns, co_strategy_shard_ready(d->strategy));
}

co_status co_distributed_step(co_distributed *d)
{
    uint64_t start_ns;

    if (d->shards_done + 1 != distributed_shards(d))
        return co_fail(CO_E_USAGE,
                       "step: this rank has %d shards, and %d came before it; next_shard is called "
                       "after each but the last",
                       distributed_shards(d), d->shards_done + 1);
    CO_TRY(distributed_begin_step(d));
    distributed_complete_gradient(d);
    if (!d->announced) /* the last backward had no samples, or was not said to be it */
        distributed_drop_frozen(d, 0, d->options.model->store->n);
    start_ns = co_clock_ns();
    co_profiler_enter(distributed_profiler(d), CO_PROFILE_SYNC);
    CO_TRY(distributed_synced(d, start_ns, co_strategy_before_update(d->strategy, &d->step)));
    if (co_strategy_persistent(d->strategy, 0)) /* what it has kept since before a freeze */
        distributed_drop_frozen(d, 0, d->options.model->store->n);
    co_profiler_leave(distributed_profiler(d));
    co_profiler_enter(distributed_profiler(d), CO_PROFILE_UPDATE);
    start_ns = co_clock_ns();
    if (!d->strategy->updated)
        CO_TRY(distributed_judge(d));
    CO_TRY(distributed_update(d));
    co_profiler_leave(distributed_profiler(d));
    d->update_ns += co_clock_ns() - start_ns;
    start_ns = co_clock_ns();
    co_profiler_enter(distributed_profiler(d), CO_PROFILE_SYNC);
    CO_TRY(distributed_synced(d, start_ns, co_strategy_after_update(d->strategy, &d->step)));
    co_profiler_leave(distributed_profiler(d));
    co_distributed_count_step(d);
    return CO_OK;
}

bool co_distributed_is_local(const co_distributed *d)
{
    return co_strategy_is_local(d->strategy, d->step.step);
}

bool co_distributed_synchronizes(const co_distributed *d)
{
    return co_strategy_synchronizes(d->strategy, d->step.step);
}

bool co_distributed_ends_with_finish(const co_distributed *d)
{
    return d->strategy->ops->finish != NULL;
}

co_status co_distributed_finish(co_distributed *d)
{
    const uint64_t start_ns = co_clock_ns();

    return distributed_synced(d, start_ns, co_strategy_finish(d->strategy));
}

co_strategy_counts co_distributed_report(const co_distributed *d)
{
    return co_strategy_report(d->strategy);
}

co_scaler *co_distributed_scaler(co_distributed *d)
{
    return &d->scaler;
}

void co_distributed_note_overflow(co_distributed *d)
{
    d->options.model->store->values->bad_loss = 1;
}

bool co_distributed_skipped(const co_distributed *d)
{
    return d->scaler.overflow;
}

uint64_t co_distributed_skipped_steps(const co_distributed *d)
{
    return d->scaler.state.skipped;
}

double co_distributed_loss_scale(const co_distributed *d)
{
    return d->scaler.state.scale;
}

double co_distributed_lr(const co_distributed *d)
{
    return d->lr;
}

uint64_t co_distributed_update_ns(const co_distributed *d)
{
    return d->update_ns;
}

uint64_t co_distributed_sync_ns(const co_distributed *d)
{
    return d->sync_ns;
}
