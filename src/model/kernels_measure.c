/*
 * kernels_measure.c - finds by time which kernel runs each layer fastest.
 *
 * Starts from the fixed rule. For each op, the most expensive first, a trial gives all its layers
 * their next kernel; whole steps of both plans are timed in turns, each step of a plan by itself,
 * and layers keep the new kernel where it is faster together with all that changes around it:
 * tensors in another layout, nodes that are fused or no longer are. Layers with the same shapes are
 * decided together. At the end what differs is timed against the fixed rule once more, which stays
 * unless it is slower.
 */
#include <string.h>

#include "backends/backends.h"
#include "core/clock.h"
#include "core/mem.h"
#include "graph/timing.h"
#include "model/kernels.h"
#include "model/kernels_groups.h"
#include "model/model.h"

#define MEASURE_LEAST  3            /* timed runs of a plan */
#define MEASURE_NS     300000000ULL /* after which no more are needed */
#define MEASURE_GAIN   0.03         /* fraction of the time that another kernel has to save */
#define MEASURE_CHANCE -0.1         /* and that it may lose in the first run */

/* A plan that is timed. */
typedef struct measured {
    co_plan *plan; /* owned */
    co_plan_timer timer;
} measured;

typedef struct measure {
    co_model *model;
    co_store *store; /* owned; a copy, since running a plan changes statistics and gradients */
    co_plan_data data;
    co_plan_pick *best, *trial; /* owned, (nodes): what the plans below are made with */
    measured base, other;
    co_kernel_groups groups;
    uint64_t most_ns, end_ns; /* how long measuring may take, and until when */
} measure;

static void measure_drop(measured *m)
{
    co_plan_timer_close(&m->timer);
    co_plan_destroy(m->plan);
    memset(m, 0, sizeof(*m));
}

static co_status measure_make(measured *out, measure *m, const co_plan_pick *pick)
{
    co_plan_options options = co_model_plan_options(m->model, m->data.batch, true);

    options.block = &m->model->block;
    options.pick = pick;
    options.list_picks = true;
    CO_TRY(co_plan_create(&out->plan, m->model->graph, m->store, &options));
    return co_plan_timer_open(&out->timer, out->plan, options.threads);
}

/* A plan for `trial`, and the one for `best` again if their memory has moved. */
static co_status measure_make_other(measure *m)
{
    const uint64_t moves = m->model->block.moves;

    CO_TRY(measure_make(&m->other, m, m->trial));
    if (m->model->block.moves == moves)
        return CO_OK;
    measure_drop(&m->base);
    return measure_make(&m->base, m, m->best);
}

static bool measure_has_time(const measure *m)
{
    return co_clock_ns() < m->end_ns;
}

static void measure_finish(measure *m)
{
    co_plan_timer_finish(&m->base.timer);
    co_plan_timer_finish(&m->other.timer);
}

/* Whether after a run of each plan no layer is near a gain. */
static bool measure_is_hopeless(measure *m)
{
    return m->groups.n_switched > 0 &&
           co_kernel_groups_judge(&m->groups, &m->base.timer, &m->other.timer, MEASURE_CHANCE) == 0;
}

/* Both plans in turns. Ends early where that is `tentative` and hopeless. */
static co_status measure_time(measure *m, bool tentative)
{
    const uint64_t start = co_clock_ns();

    m->base.timer.runs = 0;
    CO_TRY(co_plan_timer_run(&m->base.timer, &m->data, false));
    CO_TRY(co_plan_timer_run(&m->other.timer, &m->data, false));
    for (int i = 0; i < CO_PLAN_TIMER_MOST; i++) {
        CO_TRY(co_plan_timer_run(&m->base.timer, &m->data, true));
        CO_TRY(co_plan_timer_run(&m->other.timer, &m->data, true));
        measure_finish(m);
        if (tentative && i == 0 && measure_is_hopeless(m))
            return CO_OK;
        if (i + 1 >= MEASURE_LEAST && (co_clock_ns() - start > MEASURE_NS || !measure_has_time(m)))
            return CO_OK;
    }
    return CO_OK;
}

/* Let `trial` be `best` but for the layers of an op, which get the kernel `k` of those that can run
   them. Returns for how many that is another one. Kernels that differ in name alone, and reference
   kernels, are left out. */
static int measure_propose(measure *m, const co_op *op, int k)
{
    const co_graph *graph = m->model->graph;
    int n = 0;

    memcpy(m->trial, m->best, (size_t)graph->n_node * sizeof(*m->trial));
    for (int i = 0; i < graph->n_node; i++) {
        const co_plan_pick now = co_plan_picked(m->base.plan, i);
        const co_plan_pick *can;

        if (graph->node[i].op != op || co_plan_picks(&can, m->base.plan, i) <= k ||
            can[k].kernel->forward == now.kernel->forward || can[k].backend == &co_backend_ref)
            continue;
        m->trial[i] = can[k];
        n++;
    }
    return n;
}

static void measure_keep(measure *m)
{
    for (int i = 0; i < m->model->graph->n_node; i++)
        if (co_kernel_groups_gains(&m->groups, i))
            m->best[i] = m->trial[i];
    measure_drop(&m->base);
    measure_drop(&m->other);
}

static co_status measure_try(measure *m, const co_op *op)
{
    CO_TRY(measure_make_other(m));
    co_kernel_groups_find(&m->groups, m->base.plan, m->other.plan, op);
    if (m->groups.n_switched > 0)
        CO_TRY(measure_time(m, true));
    if (m->groups.n_switched > 0 && m->base.timer.runs >= MEASURE_LEAST &&
        co_kernel_groups_judge(&m->groups, &m->base.timer, &m->other.timer, MEASURE_GAIN) > 0) {
        measure_keep(m);
        return measure_make(&m->base, m, m->best);
    }
    measure_drop(&m->other);
    return CO_OK;
}

static co_status measure_op(co_kernels_times *out, measure *m, const co_op *op)
{
    for (int k = 0; k < CO_PLAN_MAX_PICKS; k++) {
        if (measure_propose(m, op, k) == 0)
            continue;
        if (!measure_has_time(m)) {
            out->left++;
            continue;
        }
        CO_TRY(measure_try(m, op));
        out->tried++;
    }
    return CO_OK;
}

/* The op that takes most of a step among those that are not done yet; NULL: none is left. */
static const co_op *measure_next_op(const measure *m, const bool *done, const double *seconds)
{
    const co_graph *graph = m->model->graph;
    const co_op *next = NULL;
    double most = -1;

    for (int i = 0; i < graph->n_node; i++) {
        double all = 0;

        for (int k = 0; k < graph->n_node; k++)
            all += graph->node[k].op == graph->node[i].op ? seconds[k] : 0;
        if (done[i] || all <= most)
            continue;
        next = graph->node[i].op;
        most = all;
    }
    return next;
}

/* Seconds of the steps of each node by the fixed rule. The time that measuring may take begins
   after a first run, which any training has to make. */
static co_status measure_nodes(double *seconds, measure *m)
{
    co_plan_timer *timer = &m->base.timer;

    CO_TRY(co_plan_timer_run(timer, &m->data, false));
    m->end_ns = co_clock_ns() + m->most_ns;
    CO_TRY(co_plan_timer_run(timer, &m->data, true));
    co_plan_timer_finish(timer);
    (void)co_plan_timer_nodes(seconds, timer);
    return CO_OK;
}

static co_status measure_ops(co_kernels_times *out, measure *m)
{
    const co_graph *graph = m->model->graph;
    const size_t n = (size_t)graph->n_node;
    double *seconds = co_calloc(n, sizeof(*seconds));
    bool *done = co_calloc(n, sizeof(*done));
    co_status st = seconds && done ? measure_nodes(seconds, m) : CO_E_NOMEM;
    const co_op *op;

    while (st == CO_OK && (op = measure_next_op(m, done, seconds)) != NULL) {
        st = measure_op(out, m, op);
        for (int i = 0; i < graph->n_node; i++)
            done[i] = done[i] || graph->node[i].op == op;
    }
    co_free(seconds);
    co_free(done);
    return st;
}

/* What was found against the fixed rule; only layers that differ count. */
static void measure_compare(co_kernels_times *out, measure *m, double *seconds)
{
    const size_t n = (size_t)m->model->graph->n_node;
    const co_plan_timer *fixed = &m->other.timer, *chosen = &m->base.timer;

    out->fixed_seconds = co_plan_timer_nodes(seconds, fixed);
    (void)co_plan_timer_nodes(seconds + n, chosen);
    (void)co_kernel_groups_judge(&m->groups, chosen, fixed, 0);
    out->chosen_seconds = out->fixed_seconds + co_kernel_groups_saving(&m->groups);
    if (out->report)
        out->report(out->arg, fixed->plan, chosen->plan, seconds, seconds + n);
}

/* Time both once more; the fixed rule is better if what was found is not faster. */
static co_status measure_confirm(co_kernels_times *out, measure *m)
{
    const size_t n = (size_t)m->model->graph->n_node;
    double *seconds = co_calloc(2 * n, sizeof(*seconds));
    co_status st = seconds ? CO_OK : CO_E_NOMEM;

    memset(m->trial, 0, n * sizeof(*m->trial));
    if (st == CO_OK)
        st = measure_make_other(m);
    if (st == CO_OK) {
        co_kernel_groups_find(&m->groups, m->base.plan, m->other.plan, NULL);
        st = measure_time(m, false);
    }
    if (st == CO_OK)
        measure_compare(out, m, seconds);
    co_free(seconds);
    if (st != CO_OK || out->chosen_seconds <= out->fixed_seconds)
        return st;
    out->chosen_seconds = out->fixed_seconds;
    measure_drop(&m->base);
    memset(m->best, 0, n * sizeof(*m->best));
    return measure_make(&m->base, m, m->best);
}

static co_status measure_open(measure *m)
{
    const co_store *from = m->model->store;
    const size_t n = (size_t)m->model->graph->n_node;

    if (from->device)
        return co_fail(CO_E_UNSUPPORTED, "kernels: choice: measured is for networks on the host");
    m->best = co_calloc(n, sizeof(*m->best));
    m->trial = co_calloc(n, sizeof(*m->trial));
    if (!m->best || !m->trial)
        return CO_E_NOMEM;
    CO_TRY(co_store_create(&m->store, from->n, from->n_buffer));
    memcpy(m->store->param, from->param, from->n * sizeof(float));
    memcpy(m->store->buffer, from->buffer, from->n_buffer * sizeof(float));
    CO_TRY(co_kernel_groups_open(&m->groups, m->model->graph));
    return measure_make(&m->base, m, m->best);
}

static void measure_close(measure *m)
{
    measure_drop(&m->other);
    measure_drop(&m->base);
    co_kernel_groups_close(&m->groups);
    co_store_destroy(m->store);
    co_plan_data_close(&m->data);
    co_free(m->best);
    co_free(m->trial);
}

/* The model's kernels become those of the plan, one for each call. */
static void measure_settle(co_plan_pick *out, const measure *m)
{
    const co_plan_pick *can;

    for (int i = 0; i < m->model->graph->n_node; i++)
        if (co_plan_picks(&can, m->base.plan, i) > 0)
            out[i] = co_plan_picked(m->base.plan, i);
}

co_status co_model_measure_kernels(co_kernels_times *out, co_model *model, int64_t batch,
                                   double seconds)
{
    co_plan_pick *pick = co_calloc((size_t)model->graph->n_node, sizeof(*pick));
    measure m = {.model = model, .most_ns = (uint64_t)(seconds * 1e9)};
    const uint64_t start_ns = co_clock_ns();
    co_status st = pick ? CO_OK : CO_E_NOMEM;

    co_model_drop_plans(model);
    if (st == CO_OK)
        st = co_plan_data_open(&m.data, model->graph, batch, model->classes);
    if (st == CO_OK)
        st = measure_open(&m);
    if (st == CO_OK)
        st = measure_ops(out, &m);
    if (st == CO_OK)
        st = measure_confirm(out, &m);
    if (st == CO_OK)
        measure_settle(pick, &m);
    measure_close(&m);
    out->spent_seconds = co_clock_seconds(start_ns, co_clock_ns());
    if (st != CO_OK) {
        co_free(pick);
        return st;
    }
    co_free(model->pick);
    model->pick = pick;
    return CO_OK;
}
