/*
 * autograd.c - the backward calls of a plan: reverse mode, by each op's rule.
 *
 * Nodes are visited in reverse order of building. What a node's backward computes for an input is
 * that tensor's gradient, or is added to it where several nodes read the tensor. Only paths from
 * the loss to a parameter are followed.
 */
#include "graph/plan_internal.h"

#include "core/mem.h"

/* Where the gradients of a tensor with several readers are joined. */
static const co_op autograd_add_op = {.name = "add", .n_in = 2, .n_out = 1};

const bool *plan_find_wanted(const co_plan *plan)
{
    const co_graph *graph = plan->graph;
    bool *wanted = co_arena_alloc(plan->arena, (size_t)graph->n_var, sizeof(*wanted));

    for (int i = 0; wanted && i < graph->n_node; i++) {
        const co_node *node = &graph->node[i];
        bool any = false;

        for (int k = 0; k < node->n_param; k++) {
            const co_param *param = &graph->param[node->param[k]];

            any = any || (!param->spec.buffer && param->count > 0 && !param->frozen);
        }
        for (int k = 0; k < node->op->n_in; k++)
            any = any || (wanted[node->in[k]] && (node->op->grad_in >> k & 1));
        for (int k = 0; k < node->op->n_out; k++)
            wanted[node->out[k]] = any;
    }
    return wanted;
}

/* The gradient of a tensor so far: NULL, or the sum over the readers visited. */
typedef struct autograd_sum {
    plan_tensor *grad;
    plan_tensor *more; /* NULL, or a second part, which the kernel that reads the gradient adds */
} autograd_sum;

/* Whether the call that made a tensor accepts its gradient in two parts, in any layouts. */
static bool autograd_is_taken(const co_plan *plan, int var, const plan_tensor *a,
                              const plan_tensor *b)
{
    const int producer = plan->graph->var[var].producer;

    return producer >= 0 && plan->node_call[producer]->call.adds_gradients &&
           a->tensor.dtype == b->tensor.dtype;
}

/* Add a part to the gradient of a tensor of the graph. */
static co_status autograd_accumulate(autograd_sum *all, co_plan *plan, int var, plan_tensor *part)
{
    plan_tensor **grad = &all[var].grad;
    co_call init = {.op = &autograd_add_op, .name = "gradient sum"};
    plan_tensor *sum;
    plan_call *pc;

    if (!*grad) {
        *grad = part;
        return CO_OK;
    }
    if (!all[var].more && autograd_is_taken(plan, var, *grad, part)) {
        all[var].more = part;
        return CO_OK;
    }
    sum = plan_new_tensor(plan, &part->tensor.shape, part->tensor.dtype);
    if (!sum)
        return CO_E_NOMEM;
    init.in[0] = &(*grad)->tensor;
    init.in[1] = &part->tensor;
    init.out[0] = &sum->tensor;
    CO_TRY(plan_add_call(&pc, plan, &init));
    *grad = sum;
    return CO_OK;
}

/* Whether a node has a parameter that a later one has, too: its gradient is added to that one's. */
static bool autograd_is_shared(const co_graph *graph, int node)
{
    for (int i = node + 1; i < graph->n_node; i++)
        for (int k = 0; k < graph->node[i].n_param; k++)
            for (int p = 0; p < graph->node[node].n_param; p++)
                if (graph->node[i].param[k] == graph->node[node].param[p])
                    return true;
    return false;
}

/* The call that made a call's first input, if this one may compute its gradient through the op that
   is fused there; NULL: none. Where blocks are recomputed, both are in one. */
static co_call *autograd_find_chained(const co_plan *plan, const co_call *call)
{
    const co_graph *graph = plan->graph;
    const int in = graph->node[call->node].in[0], producer = graph->var[in].producer;
    co_call *maker = producer < 0 ? NULL : &plan->node_call[producer]->call;

    if (!maker || !call->kernel->chains || !call->grad_in[0] || maker->kernel != call->kernel ||
        !maker->fused[0] || maker->out[0] != call->in[0] ||
        !plan_reads_alone(graph, (int)call->node, in))
        return NULL;
    return plan->options.recompute && graph->node[producer].block != graph->node[call->node].block
               ? NULL
               : maker;
}

/* The nodes of one call, of which `last` has the outputs. */
static co_status autograd_call(autograd_sum *grad, co_plan *plan, int last)
{
    plan_call *pc = plan->node_call[last];
    co_call *call = &pc->call;
    const co_node *node = &plan->graph->node[call->node];
    plan_tensor *part[CO_OP_MAX_IN] = {NULL};

    if (!call->kernel->backward)
        return co_fail(CO_E_UNSUPPORTED, "layer %s: the %s kernel of %s has no backward",
                       node->name, pc->backend->name, node->op->name);
    for (int i = 0; i < node->op->n_out && !node->op->is_loss; i++) {
        const autograd_sum *sum = &grad[plan->graph->node[last].out[i]];
        plan_tensor *t = sum->grad, *more = sum->more;

        if (!t)
            continue;
        CO_TRY(plan_make_readable(&t, plan, pc->kernel, pc->backend));
        call->grad_out[i] = &t->tensor;
        if (!more)
            continue;
        CO_TRY(plan_make_readable(&more, plan, pc->kernel, pc->backend));
        call->grad_out_extra = &more->tensor;
    }
    for (int i = 0; i < call->n_in; i++) {
        const int in = plan_find_input(plan, call, i);
        const co_var *var = &plan->graph->var[in];

        if ((i < node->op->n_in && !(node->op->grad_in >> i & 1)) || !plan->wanted[in])
            continue;
        part[i] = plan_new_tensor(plan, &var->shape, call->in[i]->dtype);
        if (!part[i])
            return CO_E_NOMEM;
        call->grad_in[i] = &part[i]->tensor;
    }
    call->chained = autograd_find_chained(plan, call);
    if (call->kernel->plan_backward)
        CO_TRY(call->kernel->plan_backward(call));
    if (call->chained)
        call->chained->grad_chained = true;
    CO_TRY(plan_add_step(plan, pc, true, node->range_end));
    plan->step[plan->n_step - 1].adds = autograd_is_shared(plan->graph, (int)call->node);
    for (int i = 0; i < call->n_in; i++) {
        const int in = plan_find_input(plan, call, i);

        if (!part[i])
            continue;
        CO_TRY(plan_cast(&part[i], plan, plan->value[in]->tensor.dtype));
        CO_TRY(autograd_accumulate(grad, plan, in, part[i]));
    }
    return CO_OK;
}

co_status plan_compile_backward(co_plan *plan)
{
    const co_graph *graph = plan->graph;
    autograd_sum *grad = co_arena_alloc(plan->arena, (size_t)graph->n_var, sizeof(*grad));
    const plan_parts *parts = plan->parts;
    int block = 0;

    if (!grad)
        return CO_E_NOMEM;
    plan_find_recomputed(plan);
    if (parts)
        grad[graph->node[graph->n_node - 2].in[0]].grad = parts->dx;
    for (int i = graph->n_node - (parts ? 3 : 1); i >= 0; i--) {
        const co_node *node = &graph->node[i];
        bool reached = node->out[0] == graph->loss || grad[node->out[0]].grad;

        i = (int)plan->node_call[i]->call.node; /* the first of its call */
        if (!reached || !plan->wanted[node->out[0]])
            continue;
        if (graph->node[i].block != block)
            CO_TRY(plan_recompute_block(plan, block = graph->node[i].block));
        CO_TRY(autograd_call(grad, plan, (int)(node - graph->node)));
    }
    return CO_OK;
}
