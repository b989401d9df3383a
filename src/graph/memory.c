/*
 * memory.c - where each tensor of a plan is: two tensors share bytes when they are never alive
 * at the same step.
 *
 * Life times follow from the steps. A kernel that can work in place puts its result over its
 * input when nobody reads the input later. The rest is placed largest first at the lowest
 * offset that is free during its whole life (Pisarchyk & Lee, arXiv:2001.03288, greedy by size).
 */
#include <stdio.h>
#include <stdlib.h>

#include "graph/plan_internal.h"

#include "core/mem.h"
#include "core/parallel.h"
#include "device/device.h"

#define MEMORY_ALIGN 64
/* No two threads write to one page: a core reads ahead within it. */
/* Of free memory; the rest is for batches on their way. */
#define MEMORY_FOR_TENSORS 0.9
#define MEMORY_PAGE        4096

static void memory_touch(const co_plan *plan, co_tensor *tensor, int step)
{
    plan_tensor *t = (plan_tensor *)tensor;
    plan_life *life;

    if (!t)
        return;
    life = t->recomputed && step >= plan->n_forward ? &t->again : &t->life;
    if (life->first < 0)
        life->first = step;
    life->last = step;
}

static void memory_find_lives(co_plan *plan)
{
    for (int s = 0; s < plan->n_step; s++) {
        const plan_step *step = &plan->step[s];
        const co_call *call = &step->pc->call;
        bool in = !step->backward || (call->op->saves & CO_SAVES_IN);
        bool out = !step->backward || (call->op->saves & CO_SAVES_OUT);

        for (int i = 0; i < call->n_in; i++) {
            if (in && (!step->backward || i < call->op->n_in))
                memory_touch(plan, call->in[i], s);
            if (step->backward)
                memory_touch(plan, call->grad_in[i], s);
        }
        for (int i = 0; i < call->n_out; i++) {
            if (out)
                memory_touch(plan, call->out[i], s);
            if (step->backward)
                memory_touch(plan, call->grad_out[i], s);
        }
        if (step->backward)
            memory_touch(plan, call->grad_out_extra, s);
        if (step->pc->workspace)
            memory_touch(plan, &step->pc->workspace->tensor, s);
        if (step->again && step->pc->buffers)
            memory_touch(plan, &step->pc->buffers->tensor, s);
    }
    if (plan->parts)
        plan_extend_parts(plan);
    for (plan_tensor *t = plan->tensors; t; t = t->next) {
        if (!t->pinned)
            continue;
        t->life = (plan_life){-1, plan->n_step};
    }
}

static plan_tensor *memory_root(plan_tensor *t)
{
    while (t->alias)
        t = t->alias;
    return t;
}

/* Let `to` share the bytes of `from` if `from` dies at this step. */
static void memory_try_in_place(co_tensor *to, co_tensor *from, int step)
{
    plan_tensor *t = (plan_tensor *)to, *root;

    if (!to || !from || to == from || to->bytes != from->bytes ||
        !co_layout_same(&to->layout, &from->layout))
        return;
    root = memory_root((plan_tensor *)from);
    if (t->alias || t->life.first != step || root->pinned || root->life.last != step ||
        t->recomputed || root->recomputed)
        return;
    t->alias = root;
    root->life.last = t->life.last;
}

static void memory_find_in_place(co_plan *plan)
{
    for (int s = 0; s < plan->n_step; s++) {
        const plan_step *step = &plan->step[s];
        const co_call *call = &step->pc->call;

        if (!call->kernel->in_place)
            continue;
        for (int i = 0; i < call->n_in; i++) {
            if (i > 0 && i < call->op->n_in)
                continue;
            if (step->backward) {
                memory_try_in_place(call->grad_in[i], call->grad_out[0], s);
                memory_try_in_place(call->grad_in[i], call->grad_out_extra, s);
            } else {
                memory_try_in_place(call->out[0], call->in[i], s);
            }
        }
    }
}

static size_t memory_aligned(const plan_tensor *t)
{
    return (t->tensor.bytes + MEMORY_ALIGN - 1) / MEMORY_ALIGN * MEMORY_ALIGN;
}

static int memory_larger_first(const void *a, const void *b)
{
    const plan_tensor *x = *(plan_tensor *const *)a, *y = *(plan_tensor *const *)b;

    if (x->tensor.bytes != y->tensor.bytes)
        return x->tensor.bytes < y->tensor.bytes ? 1 : -1;
    return (x->life.first > y->life.first) - (x->life.first < y->life.first);
}

static int memory_count_roots(const co_plan *plan)
{
    int n = 0;

    for (const plan_tensor *t = plan->tensors; t; t = t->next)
        n += !t->alias;
    return n;
}

static bool memory_meet(const plan_life *a, const plan_life *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* Whether two tensors are alive at the same step; without `recomputed` there is no second life. */
static bool memory_alive_together(const plan_tensor *a, const plan_tensor *b)
{
    return memory_meet(&a->life, &b->life) || (a->recomputed && memory_meet(&a->again, &b->life)) ||
           (b->recomputed && memory_meet(&a->life, &b->again)) ||
           (a->recomputed && b->recomputed && memory_meet(&a->again, &b->again));
}

/* placed[0..n) is ordered by offset; put `t` at the lowest offset that is free in its life. */
static void memory_place(plan_tensor **placed, int n, plan_tensor *t, bool no_reuse)
{
    size_t offset = 0;
    int at = n;

    for (int i = 0; i < n; i++) {
        const plan_tensor *p = placed[i];

        if (!no_reuse && !memory_alive_together(p, t))
            continue;
        if (offset + memory_aligned(t) <= p->offset)
            break;
        if (p->offset + memory_aligned(p) > offset)
            offset = p->offset + memory_aligned(p);
    }
    t->offset = offset;
    while (at > 0 && placed[at - 1]->offset > offset) {
        placed[at] = placed[at - 1];
        at--;
    }
    placed[at] = t;
}

void co_plan_block_free(co_plan_block *block)
{
    co_device_free(block->device, block->memory, CO_MEMORY_DEVICE);
    co_device_free(block->device, block->scratch, CO_MEMORY_DEVICE);
    *block = (co_plan_block){.moves = block->moves};
}

/* What is there goes first, so that there is never more than the largest plan asks for. */
static co_status memory_grow(co_plan_block *block, co_queue *queue, void **memory, size_t *size,
                             size_t bytes)
{
    if (*memory && bytes <= *size)
        return CO_OK;
    block->moves++;
    CO_TRY(co_queue_wait(queue, CO_DEVICE_WAIT_MS)); /* plans that were there may be running */
    co_device_free(block->device, *memory, CO_MEMORY_DEVICE);
    *memory = NULL;
    *size = 0;
    CO_TRY(co_device_alloc(memory, block->device, bytes, CO_MEMORY_DEVICE));
    *size = bytes;
    return CO_OK;
}

static size_t memory_whole_pages(size_t bytes)
{
    return (bytes + MEMORY_PAGE - 1) / MEMORY_PAGE * MEMORY_PAGE;
}

/* Bytes of scratch memory: what the largest call asks for, and behind it that of each thread. */
static size_t memory_place_scratch(co_plan *plan)
{
    size_t all = 0, each = 0;

    for (const plan_call *pc = plan->calls; pc; pc = pc->next) {
        all = pc->call.scratch_bytes > all ? pc->call.scratch_bytes : all;
        each = pc->call.thread_scratch_bytes > each ? pc->call.thread_scratch_bytes : each;
    }
    if (each == 0)
        return all;
    plan->thread_scratch = memory_whole_pages(all);
    plan->thread_scratch_step = memory_whole_pages(each);
    return plan->thread_scratch +
           (size_t)co_parallel_threads(plan->options.threads) * plan->thread_scratch_step;
}

/* How many samples there may be memory for, of which some is for the batches themselves; the plan
   needs `bytes`. 0: not known, or none. */
static int64_t memory_fitting(const co_plan *plan, size_t bytes)
{
    const co_plan_block *block = plan->block;
    const size_t room = co_device_room(block->device) + block->bytes + block->scratch_bytes;
    const double fits = (double)plan->options.batch * (double)room / (double)bytes;

    return fits < (double)plan->options.batch ? (int64_t)(fits * MEMORY_FOR_TENSORS) : 0;
}

/* What a device has no memory for. */
static co_status memory_explain(const co_plan *plan, size_t bytes, co_status st)
{
    char why[512], fits[96] = "";
    int64_t n;

    if (st != CO_E_NOMEM || co_device_is_host(plan->store->device))
        return st;
    snprintf(why, sizeof(why), "%s", co_error_message());
    n = memory_fitting(plan, bytes);
    if (n > 0)
        snprintf(fits, sizeof(fits), "; about %lld would fit%s", (long long)n,
                 plan->options.training ? ": lower batch, or raise accumulate" : "");
    return co_fail(CO_E_NOMEM, "tensors of %lld samples at once%s: %s%s",
                   (long long)plan->options.batch, plan->options.training ? " in training" : "",
                   why, fits);
}

static co_status memory_take(co_plan *plan)
{
    co_plan_block *block = plan->block;
    co_queue *queue = plan->store->queue;
    const size_t scratch = memory_place_scratch(plan);
    co_status st;

    block->device = plan->store->device;
    st = memory_grow(block, queue, &block->memory, &block->bytes, plan->used);
    if (st == CO_OK)
        st = memory_grow(block, queue, &block->scratch, &block->scratch_bytes, scratch);
    CO_TRY(memory_explain(plan, plan->used + scratch, st));
    for (plan_tensor *t = plan->tensors; t; t = t->next)
        t->tensor.data = (char *)block->memory + memory_root(t)->offset;
    return CO_OK;
}

co_status plan_place_memory(co_plan *plan)
{
    int n = memory_count_roots(plan), i = 0;
    plan_tensor **todo, **placed;
    co_status st = CO_E_NOMEM;

    memory_find_lives(plan);
    if (!plan->options.no_reuse) {
        memory_find_in_place(plan);
        n = memory_count_roots(plan);
    }
    todo = co_calloc((size_t)n, sizeof(plan_tensor *));
    placed = co_calloc((size_t)n, sizeof(plan_tensor *));
    if (!todo || !placed)
        goto out;
    for (plan_tensor *t = plan->tensors; t; t = t->next) {
        plan->unshared += memory_aligned(t);
        if (!t->alias)
            todo[i++] = t;
    }
    qsort(todo, (size_t)n, sizeof(plan_tensor *), memory_larger_first);
    for (i = 0; i < n; i++) {
        size_t end;

        memory_place(placed, i, todo[i], plan->options.no_reuse);
        end = todo[i]->offset + memory_aligned(todo[i]);
        plan->used = end > plan->used ? end : plan->used;
    }
    st = memory_take(plan);
out:
    co_free(placed);
    co_free(todo);
    return st;
}
