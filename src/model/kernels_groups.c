/*
 * kernels_groups.c - which layers have to be compared together when two plans of a graph run some
 * of them by other kernels.
 */
#include "model/kernels_groups.h"

#include <string.h>

#include "core/mem.h"

co_status co_kernel_groups_open(co_kernel_groups *out, const co_graph *graph)
{
    const size_t n = (size_t)graph->n_node;

    *out = (co_kernel_groups){.graph = graph};
    out->parent = co_calloc(n, sizeof(*out->parent));
    out->in_changed = co_calloc(n, sizeof(*out->in_changed));
    out->out_changed = co_calloc(n, sizeof(*out->out_changed));
    out->switched = co_calloc(n, sizeof(*out->switched));
    out->gains = co_calloc(n, sizeof(*out->gains));
    for (int i = 0; i < 2; i++)
        out->seconds[i] = co_calloc(n, sizeof(*out->seconds[i]));
    if (out->parent && out->in_changed && out->out_changed && out->switched && out->gains &&
        out->seconds[0] && out->seconds[1])
        return CO_OK;
    co_kernel_groups_close(out);
    return CO_E_NOMEM;
}

void co_kernel_groups_close(co_kernel_groups *groups)
{
    co_free(groups->parent);
    co_free(groups->in_changed);
    co_free(groups->out_changed);
    co_free(groups->switched);
    co_free(groups->gains);
    for (int i = 0; i < 2; i++)
        co_free(groups->seconds[i]);
    memset(groups, 0, sizeof(*groups));
}

static int groups_root(const co_kernel_groups *g, int node)
{
    while (g->parent[node] != node)
        node = g->parent[node];
    return node;
}

static void groups_join(co_kernel_groups *g, int a, int b)
{
    g->parent[groups_root(g, a)] = groups_root(g, b);
}

/* Opaque layouts of two plans count as the same: their owner converts them alike. */
static bool groups_same_layout(const co_tensor *a, const co_tensor *b)
{
    if (!a || !b)
        return !a == !b;
    return a->layout.format == b->layout.format && a->layout.block == b->layout.block &&
           a->layout.owner == b->layout.owner;
}

/* Layouts of what a call reads, and of the gradients that it writes. */
static bool groups_same_inputs(const co_call *a, const co_call *b)
{
    bool same = a->n_in == b->n_in;

    for (int i = 0; same && i < a->n_in; i++)
        same = groups_same_layout(a->in[i], b->in[i]) &&
               groups_same_layout(a->grad_in[i], b->grad_in[i]);
    return same;
}

static bool groups_same_outputs(const co_call *a, const co_call *b)
{
    bool same = a->n_out == b->n_out;

    for (int i = 0; same && i < a->n_out; i++)
        same = groups_same_layout(a->out[i], b->out[i]) &&
               groups_same_layout(a->grad_out[i], b->grad_out[i]);
    return same;
}

/* Nodes with more changes of layout in one plan than in the other. */
static void groups_count_steps(co_kernel_groups *g, const co_plan *base, const co_plan *other)
{
    double *steps = g->seconds[0]; /* free until they are judged */

    memset(steps, 0, (size_t)g->graph->n_node * sizeof(*steps));
    for (int s = 0; s < co_plan_step_count(base); s++) {
        const int node = co_plan_step_node(base, s);

        if (node >= 0)
            steps[node]++;
    }
    for (int s = 0; s < co_plan_step_count(other); s++) {
        const int node = co_plan_step_node(other, s);

        if (node >= 0)
            steps[node]--;
    }
    for (int i = 0; i < g->graph->n_node; i++)
        g->out_changed[i] = g->out_changed[i] || steps[i] < 0 || steps[i] > 0;
}

/* Layers that the same kernel ran in the base, and that ask the same of it. */
static bool groups_alike(const co_plan *base, int a, int b)
{
    const co_call *x = co_plan_call(base, a), *y = co_plan_call(base, b);

    return x->kernel == y->kernel &&
           (!x->op->attr_size || memcmp(x->attr, y->attr, x->op->attr_size) == 0) &&
           co_shape_equal(&x->in[0]->shape, &y->in[0]->shape) &&
           co_shape_equal(&x->out[0]->shape, &y->out[0]->shape) &&
           x->in[0]->dtype == y->in[0]->dtype;
}

static void groups_join_alike(co_kernel_groups *g, const co_plan *base)
{
    for (int i = 0; i < g->graph->n_node; i++)
        for (int k = 0; k < i && g->switched[i]; k++)
            if (g->switched[k] && groups_alike(base, i, k))
                groups_join(g, i, k);
}

static void groups_join_neighbours(co_kernel_groups *g)
{
    for (int i = 0; i < g->graph->n_node; i++)
        for (int k = 0; k < g->graph->node[i].op->n_in; k++) {
            const int producer = g->graph->var[g->graph->node[i].in[k]].producer;

            if (producer >= 0 && (g->in_changed[i] || g->out_changed[producer]))
                groups_join(g, i, producer);
        }
}

void co_kernel_groups_find(co_kernel_groups *g, const co_plan *base, const co_plan *other,
                           const co_op *op)
{
    const int n = g->graph->n_node;

    g->n_switched = 0;
    for (int i = 0; i < n; i++)
        g->parent[i] = i;
    for (int i = 0; i < n; i++) {
        const co_call *was = co_plan_call(base, i), *is = co_plan_call(other, i);
        const bool same = co_plan_picked(base, i).kernel == co_plan_picked(other, i).kernel;

        g->in_changed[i] = !groups_same_inputs(was, is);
        g->out_changed[i] = !groups_same_outputs(was, is);
        g->switched[i] = !same && (!op || is->op == op) && (int)is->node == i;
        g->n_switched += g->switched[i];
        groups_join(g, i, (int)was->node);
        groups_join(g, i, (int)is->node);
    }
    groups_count_steps(g, base, other);
    groups_join_neighbours(g);
    groups_join_alike(g, base);
}

static void groups_add_up(co_kernel_groups *g, double *seconds, const co_plan_timer *timer)
{
    memset(seconds, 0, (size_t)g->graph->n_node * sizeof(*seconds));
    for (int s = 0; s < timer->n_step; s++) {
        const int node = co_plan_step_node(timer->plan, s);

        if (node >= 0)
            seconds[groups_root(g, node)] += timer->median[s];
    }
}

int co_kernel_groups_judge(co_kernel_groups *g, const co_plan_timer *base,
                           const co_plan_timer *other, double gain)
{
    int gaining = 0;

    groups_add_up(g, g->seconds[0], base);
    groups_add_up(g, g->seconds[1], other);
    memset(g->gains, 0, (size_t)g->graph->n_node * sizeof(*g->gains));
    for (int i = 0; i < g->graph->n_node; i++) {
        const int root = groups_root(g, i);

        if (!g->switched[i] || g->gains[root] ||
            g->seconds[1][root] >= (1 - gain) * g->seconds[0][root])
            continue;
        g->gains[root] = true;
        gaining++;
    }
    return gaining;
}

bool co_kernel_groups_gains(const co_kernel_groups *g, int node)
{
    return g->switched[node] && g->gains[groups_root(g, node)];
}

double co_kernel_groups_saving(const co_kernel_groups *g)
{
    double saving = 0;

    for (int i = 0; i < g->graph->n_node; i++) {
        bool counts = false;

        for (int k = 0; k < g->graph->n_node && groups_root(g, i) == i; k++)
            counts = counts || (g->switched[k] && groups_root(g, k) == i);
        saving += counts ? g->seconds[0][i] - g->seconds[1][i] : 0;
    }
    return saving;
}
