/* timing.c - plans on made-up data, and the time that each of their steps takes. */
#include "graph/timing.h"

#include <string.h>

#include "core/clock.h"
#include "core/mem.h"
#include "core/rng.h"
#include "core/sort.h"
#include "device/device.h"
#include "graph/plan_internal.h"
#include "tensor/values.h"

static co_status timing_reduce_alone(void *arg, double *v, size_t n)
{
    (void)arg, (void)v, (void)n;
    return CO_OK;
}

static co_status timing_fill_input(co_plan_data *data, int i, int64_t classes)
{
    const co_rng rng = {.seed = 1, .stream = CO_RNG_TEST};
    const co_graph_input *input = &data->graph->input[i];
    const co_var *var = &data->graph->var[input->var];
    const uint64_t count = (uint64_t)co_shape_count(&var->shape) * (uint64_t)data->batch;

    data->bytes[i] = (size_t)count * co_dtype_size(var->dtype);
    data->input[i] = co_calloc_aligned((size_t)count, co_dtype_size(var->dtype));
    if (!data->input[i])
        return CO_E_NOMEM;
    if (strcmp(input->name, CO_FIELD_LABEL) != 0)
        classes = co_graph_limit(data->graph, input->var);
    if (var->dtype == CO_I32)
        for (uint64_t k = 0; k < count; k++)
            ((int32_t *)data->input[i])[k] = (int32_t)(k % (uint64_t)classes);
    else if (strcmp(input->name, CO_FIELD_INPUT) == 0)
        co_rng_normal(data->input[i], &rng, 0, count);
    return CO_OK;
}

co_status co_plan_data_open(co_plan_data *out, const co_graph *graph, int64_t batch,
                            int64_t classes)
{
    co_status st = CO_OK;

    *out = (co_plan_data){.graph = graph, .batch = batch};
    out->sample = co_calloc((size_t)batch, sizeof(*out->sample));
    if (!out->sample)
        return CO_E_NOMEM;
    for (int64_t i = 0; i < batch; i++)
        out->sample[i] = (uint32_t)i;
    for (int i = 0; i < graph->n_input && st == CO_OK; i++)
        st = timing_fill_input(out, i, classes);
    out->values.grad_scale = 1.0f / (float)batch;
    out->run = (co_run){
        .seed = 1, .sample = out->sample, .values = &out->values, .reduce = timing_reduce_alone};
    if (st != CO_OK)
        co_plan_data_close(out);
    return st;
}

void co_plan_data_close(co_plan_data *data)
{
    for (int i = 0; i < CO_GRAPH_MAX_INPUT; i++)
        co_free(data->input[i]);
    co_free(data->sample);
    memset(data, 0, sizeof(*data));
}

/* Values of the step and indices of the samples, where the host's memory cannot be read. */
static co_status timing_feed_device(co_plan_data *data, co_plan *plan)
{
    co_store *store = plan->store;

    co_values_given(store)->samples = (uint64_t)data->batch;
    CO_TRY(co_values_send(store));
    CO_TRY(co_plan_feed_samples(plan, data->sample, (uint64_t)data->batch));
    data->run.values = store->values;
    data->run.sample = co_plan_samples(plan);
    return CO_OK;
}

co_status co_plan_data_feed(co_plan_data *data, co_plan *plan)
{
    if (!co_device_is_host(plan->store->device))
        CO_TRY(timing_feed_device(data, plan));
    for (int i = 0; i < data->graph->n_input; i++)
        CO_TRY(co_plan_feed(plan, data->graph->input[i].name, data->input[i], data->bytes[i]));
    return CO_OK;
}

static uint64_t timing_now(const co_plan_timer *timer)
{
    return timer->one_thread ? co_clock_thread_ns() : co_clock_ns();
}

static void timing_begin(void *arg, const co_plan *plan, int step)
{
    co_plan_timer *timer = arg;

    (void)plan, (void)step;
    timer->begin_ns = timing_now(timer);
}

static void timing_end(void *arg, const co_plan *plan, int step)
{
    co_plan_timer *timer = arg;

    (void)plan;
    if (!timer->off)
        timer->seconds[timer->runs * timer->n_step + step] =
            co_clock_seconds(timer->begin_ns, timing_now(timer));
}

co_status co_plan_timer_open(co_plan_timer *out, co_plan *plan, int threads)
{
    const int n = co_plan_step_count(plan);

    *out = (co_plan_timer){.plan = plan, .n_step = n, .one_thread = threads == 1};
    out->seconds = co_calloc(CO_PLAN_TIMER_MOST * (size_t)n, sizeof(*out->seconds));
    out->median = co_calloc((size_t)n, sizeof(*out->median));
    if (!out->seconds || !out->median) {
        co_plan_timer_close(out);
        return CO_E_NOMEM;
    }
    out->observer = (co_plan_observer){timing_begin, timing_end, out};
    co_plan_observe(plan, &out->observer);
    return CO_OK;
}

void co_plan_timer_close(co_plan_timer *timer)
{
    if (timer->observer.arg)
        co_plan_observe(timer->plan, NULL);
    co_free(timer->seconds);
    co_free(timer->median);
    memset(timer, 0, sizeof(*timer));
}

co_status co_plan_timer_run(co_plan_timer *timer, co_plan_data *data, bool timed)
{
    timer->off = !timed || timer->runs == CO_PLAN_TIMER_MOST;
    CO_TRY(co_plan_data_feed(data, timer->plan));
    co_plan_announce(timer->plan, false);
    CO_TRY(co_plan_forward(timer->plan, &data->run));
    CO_TRY(co_plan_backward(timer->plan, &data->run, NULL, NULL));
    timer->runs += !timer->off;
    return CO_OK;
}

void co_plan_timer_finish(co_plan_timer *timer)
{
    double column[CO_PLAN_TIMER_MOST];
    co_plan_step step;

    for (int s = 0; s < timer->n_step && timer->runs > 0; s++) {
        for (int r = 0; r < timer->runs; r++)
            column[r] = timer->seconds[r * timer->n_step + s];
        co_sort_doubles(column, (size_t)timer->runs);
        co_plan_step_at(&step, timer->plan, s);
        timer->median[s] = column[timer->runs / 2] * step.times;
    }
}

int co_plan_step_node(const co_plan *plan, int s)
{
    const co_node *node = plan->graph->node;
    co_plan_step step;

    co_plan_step_at(&step, plan, s);
    if (step.call->op == node[step.call->node].op)
        return (int)step.call->node;
    for (int i = 0; i < plan->graph->n_node; i++)
        if (strcmp(node[i].name, step.name) == 0)
            return i;
    return -1;
}

double co_plan_timer_nodes(double *seconds, const co_plan_timer *timer)
{
    double sum = 0;

    memset(seconds, 0, (size_t)timer->plan->graph->n_node * sizeof(*seconds));
    for (int s = 0; s < timer->n_step; s++) {
        const int node = co_plan_step_node(timer->plan, s);

        if (node >= 0)
            seconds[node] += timer->median[s];
        sum += timer->median[s];
    }
    return sum;
}
