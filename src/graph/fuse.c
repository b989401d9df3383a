/*
 * fuse.c - which nodes are done in one call: a node and the pointwise or pooling ones after it,
 * where its kernel takes them over, so that a tensor is not written and read again in between.
 *
 *   batchnorm -> relu        batchnorm -> add -> relu        conv2d -> maxpool -> relu
 *
 * Nodes are joined only if each is the next in the order of building, so no gradient becomes final
 * earlier or later than without, and if nobody else reads what is between them. A kernel that
 * takes nothing over sees its node alone. Independent of ops: kernels say what they can do.
 */
#include <string.h>

#include "graph/plan_internal.h"

bool plan_reads_alone(const co_graph *graph, int node, int var)
{
    int readers = 0, here = 0;

    for (int i = 0; i < graph->n_node; i++)
        for (int k = 0; k < graph->node[i].op->n_in; k++)
            if (graph->node[i].in[k] == var) {
                readers++;
                here += i == node;
            }
    return readers == 1 && here == 1 && var != graph->output && var != graph->loss;
}

/* The addend of a sum: its input that is not the result of the node before it. */
static int fuse_find_other(const co_graph *graph, int node)
{
    const int *in = graph->node[node].in;

    return in[0] == graph->node[node - 1].out[0] ? in[1] : in[0];
}

int plan_count_added(const co_call *call)
{
    int n = 0;

    for (int i = 0; call->fused[i]; i++)
        n += call->fused[i]->is_sum;
    return n;
}

int plan_find_input(const co_plan *plan, const co_call *call, int i)
{
    int node = (int)call->node;

    if (i < call->op->n_in)
        return plan->graph->node[node].in[i];
    for (int at = call->op->n_in - 1; at < i;)
        at += plan->graph->node[++node].op->is_sum;
    return fuse_find_other(plan->graph, node);
}

/* Of ops with several inputs only a sum: kernels know no other way to join two tensors. */
static bool fuse_may_take(const co_op *op)
{
    return op->n_in == 1 ? op->pointwise || op->pools : op->is_sum;
}

void plan_offer_fusion(co_call *call, const co_plan *plan)
{
    const co_graph *graph = plan->graph;
    int n_in = call->op->n_in;

    for (int i = 0; i < CO_CALL_MAX_FUSED; i++) {
        const int at = (int)call->node + i + 1;

        if (call->op->n_out != 1 || at == graph->n_node || !fuse_may_take(graph->node[at].op) ||
            graph->node[at].op->precision != CO_PRECISION_FOLLOW ||
            !plan_reads_alone(graph, at, graph->node[at - 1].out[0]))
            return;
        if (graph->node[at].op->is_sum) {
            plan_tensor *other = plan->value[fuse_find_other(graph, at)];

            if (n_in == CO_OP_MAX_IN || other->tensor.dtype != call->out[0]->dtype)
                return;
            call->in[n_in++] = &other->tensor;
        }
        call->fused[i] = graph->node[at].op;
        call->fused_attr[i] = graph->node[at].attr;
    }
}

/* The result is that of the last one. */
static void fuse_shape(co_tensor *out, const co_graph *graph, const co_node *last)
{
    const int64_t batch = out->shape.dim[0];

    out->shape = graph->var[last->out[0]].shape;
    out->read = graph->var[last->out[0]].read;
    out->shape.dim[0] = batch;
    out->bytes = (size_t)co_shape_count(&out->shape) * co_dtype_size(out->dtype);
}

void plan_limit_fusion(const co_plan *plan, plan_call *pc, const co_kernel *kernel)
{
    co_call *call = &pc->call, *seen = pc->upcast ? plan_upcast_call(pc->upcast) : call;
    int n = 0;

    while (call->fused[n])
        n++;
    while (n > 0 && !(kernel->fuses && kernel->fuses(seen))) {
        call->n_in -= call->fused[--n]->is_sum;
        call->fused[n] = seen->fused[n] = NULL;
        seen->n_in = call->n_in;
    }
    if (n > 0)
        fuse_shape(call->out[0], plan->graph, &plan->graph->node[call->node + (uint32_t)n]);
}

void plan_settle_fusion(co_plan *plan, plan_call *pc)
{
    const co_node *node = &plan->graph->node[pc->call.node];

    for (int i = 0; pc->call.fused[i]; i++, node++) {
        plan->node_call[pc->call.node + (uint32_t)i + 1] = pc;
        plan->value[node[1].out[0]] = plan->value[node->out[0]];
        plan->value[node->out[0]] = NULL;
    }
}
