/*
 * bench_ops_measure.c - times the steps of a plan, each repeated by itself.
 *
 * Every tensor of the plan has its own memory, so once all steps have run in turn any of them can
 * be repeated: its inputs are still there. Its data therefore come from the fastest cache that
 * holds them.
 *
 * On a device the time is that between two points of its queue, of which the host has given the
 * second before the device has reached it.
 */
#include "cli/bench_ops.h"
#include "core/clock.h"
#include "core/mem.h"
#include "core/sort.h"
#include "core/thread.h"
#include "device/device.h"
#include "graph/timing.h"
#include "profile/row.h"

#define MEASURE_LEAST 5
#define MEASURE_MOST  1000

typedef struct measure {
    co_plan *plan;
    co_plan_data data;
    co_queue *queue;       /* borrowed; NULL: the host's */
    co_fence *begin, *end; /* owned; with a queue: around what is timed */
    uint64_t ns;           /* time per step */
} measure;

static co_status measure_open(measure *m, const cli_network *net, int64_t batch)
{
    co_plan_options options = co_model_plan_options(net->model, batch, true);

    options.no_reuse = true;
    m->queue = net->model->store->queue;
    if (m->queue) {
        CO_TRY(co_timed_fence_create(&m->begin, net->device));
        CO_TRY(co_timed_fence_create(&m->end, net->device));
    }
    CO_TRY(co_plan_data_open(&m->data, net->model->graph, batch, net->classes));
    CO_TRY(co_plan_create(&m->plan, net->model->graph, net->model->store, &options));
    return co_plan_data_feed(&m->data, m->plan);
}

static co_status measure_all(void *arg, int step)
{
    const measure *m = arg;

    (void)step;
    co_plan_announce(m->plan, false);
    CO_TRY(co_plan_forward(m->plan, &m->data.run));
    return co_plan_backward(m->plan, &m->data.run, NULL, NULL);
}

static co_status measure_one(void *arg, int step)
{
    const measure *m = arg;

    return co_plan_run_step(m->plan, step, &m->data.run);
}

/* Seconds of one call, by the clock of the device or the host. */
static co_status measure_call(double *seconds, measure *m, co_status (*fn)(void *arg, int step),
                              int step)
{
    const uint64_t before = co_clock_ns();

    if (!m->queue) {
        CO_TRY(fn(m, step));
        *seconds = co_clock_seconds(before, co_clock_ns());
        return CO_OK;
    }
    CO_TRY(co_fence_record(m->begin, m->queue));
    CO_TRY(fn(m, step));
    CO_TRY(co_fence_record(m->end, m->queue));
    CO_TRY(co_fence_wait(m->end, CO_DEVICE_WAIT_MS));
    return co_fence_seconds(seconds, m->begin, m->end);
}

/* Median and minimum time of `fn`. */
static co_status measure_repeat(double *median, double *least, measure *m,
                                co_status (*fn)(void *arg, int step), int step)
{
    const uint64_t start = co_clock_ns();
    double seconds[MEASURE_MOST];
    size_t n = 0;

    CO_TRY(measure_call(&seconds[0], m, fn, step)); /* not counted */
    do
        CO_TRY(measure_call(&seconds[n++], m, fn, step));
    while (n < MEASURE_LEAST || (n < MEASURE_MOST && co_clock_ns() - start < m->ns));
    co_sort_doubles(seconds, n);
    *median = seconds[n / 2];
    *least = seconds[0];
    return CO_OK;
}

static co_status measure_run(bench_ops_rows *out, measure *m)
{
    co_plan_step at;
    double least;

    out->n = (size_t)co_plan_step_count(m->plan);
    out->row = co_calloc(out->n, sizeof(*out->row));
    if (!out->row)
        return CO_E_NOMEM;
    CO_TRY(measure_repeat(&out->step_seconds, &least, m, measure_all, 0));
    for (int step = 0; step < (int)out->n; step++) {
        co_profile_row *row = &out->row[step];

        co_plan_step_at(&at, m->plan, step);
        co_profile_row_of(row, m->plan, step);
        row->calls = 1;
        CO_TRY(measure_repeat(&row->seconds, &row->min_seconds, m, measure_one, step));
        row->seconds *= at.times;
        row->min_seconds *= at.times;
        row->flops *= at.times;
        row->bytes *= at.times;
    }
    return CO_OK;
}

co_status bench_ops_measure(bench_ops_rows *out, const cli_network *net, int64_t batch, int64_t ms)
{
    measure m = {.ns = (uint64_t)ms * 1000000};
    co_status st;

    *out = (bench_ops_rows){.n = 0};
    co_thread_flush_denormals();
    st = measure_open(&m, net, batch);
    if (st == CO_OK)
        st = measure_run(out, &m);
    if (st != CO_OK) {
        co_free(out->row);
        out->row = NULL;
    }
    co_fence_destroy(m.begin);
    co_fence_destroy(m.end);
    co_plan_destroy(m.plan);
    co_plan_data_close(&m.data);
    return st;
}
