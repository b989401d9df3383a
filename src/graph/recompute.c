/*
 * recompute.c - the tensors within a block are not kept for the backward pass; the block's forward
 * steps run again before it (Chen et al., arXiv:1604.06174). So the activations in memory are what
 * goes into each block, and the inside of one.
 *
 * A tensor that only its own block reads is recomputed, if its backward pass needs it at all: it
 * has two lives, at one place (memory.c). Kernels and their operands are those of the forward pass,
 * and so are the bits.
 */
#include "graph/plan_internal.h"

#include "device/device.h"

/* Whether a forward step of another block, or of none, reads the tensor. */
static bool recompute_is_read_elsewhere(const co_plan *plan, const plan_tensor *t)
{
    for (int s = 0; s < plan->n_forward; s++) {
        const co_call *call = &plan->step[s].pc->call;

        for (int i = 0; i < call->n_in && plan->step[s].block != t->block; i++)
            if (call->in[i] == &t->tensor)
                return true;
    }
    return false;
}

/* The backward pass of `block`, or what runs again for it, reads a tensor. */
static void recompute_want(const co_plan *plan, co_tensor *tensor, int block)
{
    plan_tensor *t = (plan_tensor *)tensor;

    if (t->block == block && !t->pinned)
        t->recomputed = !recompute_is_read_elsewhere(plan, t);
}

static bool recompute_is_needed(const plan_call *pc)
{
    for (int i = 0; i < pc->call.n_out; i++)
        if (((const plan_tensor *)pc->call.out[i])->recomputed)
            return true;
    return pc->workspace != NULL;
}

static void recompute_find_in_step(const co_plan *plan, const plan_step *step)
{
    const co_call *call = &step->pc->call;
    bool needed;

    for (int i = 0; i < call->n_out && (call->op->saves & CO_SAVES_OUT); i++)
        recompute_want(plan, call->out[i], step->block);
    needed = recompute_is_needed(step->pc);
    for (int i = 0; i < call->n_in; i++)
        if (needed || (i < call->op->n_in && (call->op->saves & CO_SAVES_IN)))
            recompute_want(plan, call->in[i], step->block);
    if (step->pc->workspace)
        step->pc->workspace->recomputed = true;
}

void plan_find_recomputed(co_plan *plan)
{
    if (!plan->options.recompute)
        return;
    for (int s = plan->n_forward - 1; s >= 0; s--) /* what reads a tensor is after what writes it */
        if (plan->step[s].block)
            recompute_find_in_step(plan, &plan->step[s]);
}

/* Buffers are among the parameters: the bytes of parameter i if it is one, else 0. */
static size_t recompute_buffer_bytes(const co_plan *plan, const co_call *call, int i)
{
    const co_node *node = &plan->graph->node[call->node];

    return plan->graph->param[node->param[i]].spec.buffer ? call->param[i].bytes : 0;
}

static co_status recompute_keep_buffers(co_plan *plan, plan_call *pc)
{
    const co_shape bytes = {1, {0}};
    size_t n = 0;

    for (int i = 0; i < pc->call.n_param; i++)
        n += recompute_buffer_bytes(plan, &pc->call, i);
    if (n == 0)
        return CO_OK;
    pc->buffers = plan_new_tensor(plan, &bytes, CO_U8);
    if (!pc->buffers)
        return CO_E_NOMEM;
    pc->buffers->tensor.bytes = n;
    return CO_OK;
}

co_status plan_recompute_block(co_plan *plan, int block)
{
    if (!plan->options.recompute || !block)
        return CO_OK;
    for (int s = 0; s < plan->n_forward; s++) {
        plan_call *pc = plan->step[s].pc;

        if (plan->step[s].block != block || !recompute_is_needed(pc))
            continue;
        CO_TRY(recompute_keep_buffers(plan, pc));
        CO_TRY(plan_add_step(plan, pc, false, 0));
        plan->step[plan->n_step - 1].again = true;
    }
    return CO_OK;
}

/* Buffers to or from where they are kept. */
static co_status recompute_copy_buffers(const co_plan *plan, const plan_call *pc, bool back)
{
    char *kept = pc->buffers ? pc->buffers->tensor.data : NULL;

    for (int i = 0; kept && i < pc->call.n_param; i++) {
        const size_t bytes = recompute_buffer_bytes(plan, &pc->call, i);
        void *buffer = pc->call.param[i].data;

        if (bytes == 0)
            continue;
        CO_TRY(
            co_queue_copy(plan->store->queue, back ? buffer : kept, back ? kept : buffer, bytes));
        kept += bytes;
    }
    return CO_OK;
}

co_status plan_run_again(const co_plan *plan, const plan_step *step, const co_run *run)
{
    CO_TRY(recompute_copy_buffers(plan, step->pc, false));
    CO_TRY(step->pc->call.kernel->forward(&step->pc->call, run));
    return recompute_copy_buffers(plan, step->pc, true);
}
