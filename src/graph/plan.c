/*
 * plan.c - life of a plan, and running it: the executor.
 */
#include "graph/plan.h"

#include <stdio.h>
#include <string.h>

#include "core/isa.h"
#include "core/mem.h"
#include "core/parallel.h"
#include "device/device.h"
#include "graph/plan_internal.h"

static co_status plan_bind(co_plan *plan)
{
    for (plan_call *pc = plan->calls; pc; pc = pc->next) {
        pc->call.workspace = pc->workspace ? pc->workspace->tensor.data : NULL;
        pc->call.scratch = plan->block->scratch;
        pc->call.thread_scratch = (char *)plan->block->scratch + plan->thread_scratch;
        pc->call.thread_scratch_step = plan->thread_scratch_step;
        if (pc->call.kernel->bind)
            CO_TRY(pc->call.kernel->bind(&pc->call));
    }
    return CO_OK;
}

/* All of a plan is on one device: what changes the precision of a tensor is the host's work. */
static co_status plan_check_device(const co_store *store, const co_plan_options *options)
{
    const char *device = store->device ? co_device_name(store->device) : NULL;

    for (const co_backend *const *b = options->backends; *b; b++)
        if (device ? !(*b)->device || strcmp((*b)->device, device) != 0 : (*b)->device != NULL)
            return co_fail(CO_E_UNSUPPORTED,
                           "backend %s works in memory of device %s, and the "
                           "weights are in that of device %s",
                           (*b)->name, (*b)->device ? (*b)->device : "host",
                           device ? device : "host");
    if (device && options->precision.low != CO_F32 &&
        !(store->vector && plan_find_convert(store, options)))
        return co_fail(CO_E_UNSUPPORTED, "device %s: no backend there converts to half precision",
                       device);
    return CO_OK;
}

static co_status plan_take_results(co_plan *plan)
{
    if (co_device_is_host(plan->store->device))
        return CO_OK;
    return co_device_alloc(&plan->results, plan->store->device, co_plan_result_bytes(plan),
                           CO_MEMORY_PINNED);
}

static co_status plan_take_samples(co_plan *plan)
{
    const co_shape one = {1, {1}};

    plan->samples = plan_new_tensor(plan, &one, CO_I32);
    if (!plan->samples)
        return CO_E_NOMEM;
    plan->samples->pinned = true;
    return CO_OK;
}

static co_status plan_build_forward(co_plan *plan)
{
    size_t n_var = (size_t)plan->graph->n_var, n_node = (size_t)plan->graph->n_node;

    plan->arena = co_arena_create();
    if (!plan->arena)
        return CO_E_NOMEM;
    plan->node_call = co_arena_alloc(plan->arena, n_node, sizeof(plan_call *));
    plan->value = co_arena_alloc(plan->arena, n_var, sizeof(plan_tensor *));
    plan->plain = co_arena_alloc(plan->arena, n_var, sizeof(plan_tensor *));
    plan->cast = co_arena_alloc(plan->arena, n_var, sizeof(plan_tensor *));
    plan->wanted = plan_find_wanted(plan);
    if (!plan->node_call || !plan->value || !plan->plain || !plan->cast || !plan->wanted)
        return CO_E_NOMEM;
    return plan_compile_forward(plan);
}

static co_status plan_build(co_plan *plan)
{
    CO_TRY(plan_build_forward(plan));
    if (plan->options.training || plan->store->device)
        CO_TRY(plan_take_samples(plan));
    if (plan->options.training)
        CO_TRY(plan_compile_backward(plan));
    CO_TRY(plan_place_memory(plan));
    CO_TRY(plan_take_results(plan));
    return plan_bind(plan);
}

static co_status plan_new(co_plan **out, const co_graph *graph, co_store *store,
                          const co_plan_options *options)
{
    co_plan *plan;

    if (options->batch < 1)
        return co_fail(CO_E_USAGE, "a plan needs a batch of at least 1 sample");
    CO_TRY(co_isa_check());
    CO_TRY(plan_check_device(store, options));
    plan = co_calloc(1, sizeof(*plan));
    if (!plan)
        return CO_E_NOMEM;
    plan->graph = graph;
    plan->store = store;
    plan->options = *options;
    plan->block = options->block ? options->block : &plan->own;
    *out = plan;
    return CO_OK;
}

co_status co_plan_create(co_plan **out, const co_graph *graph, co_store *store,
                         const co_plan_options *options)
{
    co_plan *plan;
    co_status st;

    CO_TRY(plan_new(&plan, graph, store, options));
    st = plan_build(plan);
    if (st != CO_OK) {
        co_plan_destroy(plan);
        return st;
    }
    *out = plan;
    return CO_OK;
}

co_status co_plan_check_picks(const co_graph *graph, co_store *store,
                              const co_plan_options *options)
{
    co_plan_options must = *options;
    co_plan *plan;
    co_status st;

    must.must_pick = true;
    CO_TRY(plan_new(&plan, graph, store, &must));
    st = plan_build_forward(plan);
    co_plan_destroy(plan);
    return st;
}

void co_plan_destroy(co_plan *plan)
{
    if (!plan)
        return;
    (void)co_queue_wait(plan->store->queue, CO_DEVICE_WAIT_MS); /* kernels use its memory */
    for (plan_call *pc = plan->calls; pc; pc = pc->next)
        if (pc->live && pc->call.kernel->fini)
            pc->call.kernel->fini(&pc->call);
    co_free(plan->step);
    co_device_free(plan->store->device, plan->results, CO_MEMORY_PINNED);
    co_plan_block_free(&plan->own);
    co_arena_destroy(plan->arena);
    co_free(plan);
}

int64_t co_plan_batch(const co_plan *plan)
{
    return plan->options.batch;
}

void *co_plan_input(co_plan *plan, const char *name)
{
    const int var = co_graph_find_input(plan->graph, name);

    return var < 0 ? NULL : plan->plain[var]->tensor.data;
}

co_status co_plan_feed(co_plan *plan, const char *name, const void *from, size_t bytes)
{
    const int64_t batch = plan->options.batch;
    void *to = co_plan_input(plan, name);

    if (!from)
        return co_queue_fill(plan->store->queue, to, 0, bytes);
    if (plan->store->queue)
        return co_queue_copy(plan->store->queue, to, from, bytes);
    co_parallel_copy(to, from, batch, bytes / (size_t)batch, plan->options.threads);
    return CO_OK;
}

co_status co_plan_feed_padded(co_plan *plan, const char *name, const void *from, size_t bytes,
                              size_t all)
{
    char *to = co_plan_input(plan, name);

    CO_TRY(co_queue_fill(plan->store->queue, to + bytes, 0, all - bytes));
    return co_queue_copy(plan->store->queue, to, from, bytes);
}

co_status co_plan_feed_samples(co_plan *plan, const uint32_t *from, uint64_t count)
{
    return co_queue_copy(plan->store->queue, plan->samples->tensor.data, from,
                         (size_t)count * sizeof(*from));
}

const uint32_t *co_plan_samples(const co_plan *plan)
{
    return plan->samples ? plan->samples->tensor.data : NULL;
}

size_t co_plan_result_bytes(const co_plan *plan)
{
    return plan->plain[plan->graph->output]->tensor.bytes +
           plan->plain[plan->graph->loss]->tensor.bytes;
}

co_status co_plan_queue_results(const co_plan *plan, void *to)
{
    const co_tensor *out = &plan->plain[plan->graph->output]->tensor;
    const co_tensor *each = &plan->plain[plan->graph->loss]->tensor;
    co_queue *queue = plan->store->queue;

    CO_TRY(co_queue_copy(queue, to, out->data, out->bytes));
    return co_queue_copy(queue, (char *)to + out->bytes, each->data, each->bytes);
}

co_status co_plan_results(const float **output, const float **loss, co_plan *plan)
{
    const plan_tensor *out = plan->plain[plan->graph->output];
    char *results = plan->results;

    if (results)
        CO_TRY(co_plan_queue_results(plan, results));
    CO_TRY(co_queue_wait(plan->store->queue, CO_DEVICE_WAIT_MS));
    *output = results ? plan->results : co_plan_output(plan);
    *loss =
        results ? (const float *)(const void *)(results + out->tensor.bytes) : co_plan_loss(plan);
    return CO_OK;
}

const float *co_plan_output(const co_plan *plan)
{
    return plan->parts ? NULL : plan->plain[plan->graph->output]->tensor.data;
}

const int32_t *co_plan_places(const co_plan *plan)
{
    return plan->parts ? plan->parts->place->tensor.data : NULL;
}

void co_plan_announce(co_plan *plan, bool accumulate)
{
    if (!plan->parts)
        return;
    plan->parts->announced = true;
    plan->parts->adds = accumulate;
}

const float *co_plan_loss(const co_plan *plan)
{
    return plan->plain[plan->graph->loss]->tensor.data;
}

static co_status plan_run_kernel(const co_plan *plan, const plan_step *step, const co_run *run)
{
    co_call *call = &step->pc->call;
    co_run adding;

    if (step->again)
        return plan_run_again(plan, step, run);
    if (!step->backward)
        return call->kernel->forward(call, run);
    if (!step->adds)
        return call->kernel->backward(call, run);
    adding = *run;
    adding.accumulate = true;
    return call->kernel->backward(call, &adding);
}

co_status co_plan_run_step(co_plan *plan, int s, const co_run *run)
{
    const co_plan_observer *observer = plan->observer;
    const plan_step *step = &plan->step[s];
    co_status st;

    if (!observer)
        return plan_run_kernel(plan, step, run);
    observer->begin(observer->arg, plan, s);
    st = plan_run_kernel(plan, step, run);
    observer->end(observer->arg, plan, s);
    return st;
}

static bool plan_is_of_part(const co_plan *plan, int s)
{
    return plan->parts && s >= plan->parts->first && s < plan->parts->end;
}

/* With what the caller has said of the backward pass. */
static co_status plan_begin_parts(co_plan *plan, const co_run *run)
{
    plan_parts *parts = plan->parts;
    co_run part = *run;

    parts->done = parts->announced;
    part.accumulate = parts->announced && parts->adds;
    parts->announced = false;
    return plan_run_parts(plan, &part, parts->done);
}

co_status co_plan_forward(co_plan *plan, const co_run *run)
{
    for (int s = 0; s < plan->n_forward; s++)
        if (!plan_is_of_part(plan, s))
            CO_TRY(co_plan_run_step(plan, s, run));
        else if (s == plan->parts->first)
            CO_TRY(plan_begin_parts(plan, run));
    return CO_OK;
}

static int plan_count_parts(const co_plan *plan)
{
    return (int)((plan->parts->all + plan->parts->rows - 1) / plan->parts->rows);
}

co_status co_plan_backward(co_plan *plan, const co_run *run, co_ready_fn ready, void *arg)
{
    size_t done = 0;

    if (plan->parts && !plan->parts->done)
        CO_TRY(plan_run_parts(plan, run, true));
    for (int s = plan->n_forward; s < plan->n_step; s++) {
        const plan_step *step = &plan->step[s];

        CO_TRY(co_plan_run_step(plan, s, run));
        if (ready && step->backward && step->ready_end > done) {
            CO_TRY(ready(arg, done, step->ready_end));
            done = step->ready_end;
        }
    }
    /* Parameters that the loss does not depend on come last: their gradients stay 0. */
    if (ready && done < plan->store->n)
        CO_TRY(ready(arg, done, plan->store->n));
    return CO_OK;
}

void co_plan_observe(co_plan *plan, const co_plan_observer *observer)
{
    plan->observer = observer;
}

int co_plan_step_count(const co_plan *plan)
{
    return plan->n_step;
}

/* The node whose value or gradient a tensor is, or NULL. */
static const char *plan_writer(const co_plan *plan, const co_tensor *tensor)
{
    for (const plan_call *pc = plan->calls; pc; pc = pc->next) {
        for (int i = 0; i < pc->call.n_out; i++)
            if (pc->call.out[i] == tensor)
                return pc->call.name;
        for (int i = 0; i < pc->call.n_in; i++)
            if (pc->call.grad_in[i] == tensor)
                return pc->call.name;
    }
    return NULL;
}

void co_plan_step_at(co_plan_step *out, const co_plan *plan, int s)
{
    const plan_step *step = &plan->step[s];
    const plan_call *pc = step->pc;
    const co_call *seen = pc->upcast ? plan_upcast_call(pc->upcast) : &pc->call;

    *out = (co_plan_step){.name = pc->call.name,
                          .call = &pc->call,
                          .seen = seen,
                          .backend = pc->backend,
                          .backward = s >= plan->n_forward || step->backward,
                          .gradient = step->backward,
                          .times = plan_is_of_part(plan, s) ? plan_count_parts(plan) : 1,
                          .again = step->again};
    if (pc->kernel == pc->backend->unpack) {
        const char *name = plan_writer(plan, pc->call.in[0]);

        out->name = name ? name : out->name;
    }
}

void co_plan_memory(const co_plan *plan, size_t *used, size_t *unshared)
{
    *used = plan->used;
    *unshared = plan->unshared;
}

const char *co_plan_backend(const co_plan *plan, int node, const char **why)
{
    const plan_call *pc = plan->node_call[node];

    if (why)
        *why = pc->refusals;
    return pc->backend->name;
}

void co_plan_describe(char *out, size_t size, const co_plan *plan, int node)
{
    const plan_call *pc = plan->node_call[node];

    snprintf(out, size, "%s", pc->kernel->name ? pc->kernel->name : "");
    if (pc->backend->describe_call)
        pc->backend->describe_call(out, size, pc->upcast ? plan_upcast_call(pc->upcast) : &pc->call,
                                   false);
}

const char *co_plan_kernel(const co_plan *plan, int node)
{
    return plan->node_call[node]->kernel->name;
}

const co_call *co_plan_call(const co_plan *plan, int node)
{
    return &plan->node_call[node]->call;
}
