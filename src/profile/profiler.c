/*
 * profiler.c - a stack of what is under way, and for each row the time that was its own.
 *
 * A span's own time is its length without the spans inside it, so that the rows add up to the
 * step. Sums are kept for any number of steps; the spans themselves, for the trace, as long as
 * there is room.
 */
#include "profile/profiler.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "comm/watch.h"
#include "core/clock.h"
#include "core/mem.h"
#include "data/data.h"
#include "profile/device_times.h"
#include "profile/plans.h"
#include "profile/row.h"

#define PROFILER_DEPTH  16
#define PROFILER_SPANS  ((size_t)1 << 18) /* of all ranks together */
#define PROFILER_LEAST  ((size_t)1 << 12) /* of one rank */
#define PROFILER_COMM   ((size_t)1 << 13)
#define PROFILER_READER ((size_t)1 << 12)

typedef struct profiler_row {
    co_profile_row row;
    uint64_t calls, own_ns, least_ns;
} profiler_row;

typedef struct profiler_open {
    uint32_t row;
    uint64_t begin_ns, inner_ns;
} profiler_open;

/* One thread writes; who reads it waits until that thread is at rest. */
typedef struct profiler_track {
    co_span *span; /* owned */
    size_t cap;
    _Atomic size_t n;
    _Atomic uint64_t lost;
} profiler_track;

struct co_profiler {
    co_profiler_options options;
    co_plan_observer observer;
    co_comm_observer operations;
    co_loader_observer reads;
    co_comm *comm;          /* borrowed; whose operations it is notified of */
    co_device_times *times; /* owned; NULL: times are the host's */
    uint64_t exchange_ns;   /* with times: when the operation under way began */
    bool started;
    uint64_t first; /* step of the run at which the window begins */
    uint64_t begun; /* steps, whose end may not be known yet */
    uint64_t steps, step_ns;
    _Atomic bool on;
    uint64_t step; /* under way */
    int depth;     /* of what is open */
    profiler_open open[PROFILER_DEPTH];
    size_t n_row, cap_row;
    profiler_row *row; /* owned */
    co_profile_plans plans;
    int n_track;
    profiler_track *track; /* owned */
};

static const char *const profiler_phases[CO_PROFILE_PHASES] = {
    [CO_PROFILE_STEP] = "rest of the loop",
    [CO_PROFILE_DATA] = "wait for data",
    [CO_PROFILE_COPY_INPUT] = "copy the batch",
    [CO_PROFILE_IN_FORWARD] = "between kernels, forward",
    [CO_PROFILE_IN_BACKWARD] = "between kernels, backward",
    [CO_PROFILE_COMPILE] = "compile a plan",
    [CO_PROFILE_METRICS] = "loss and accuracy",
    [CO_PROFILE_POST] = "post gradients",
    [CO_PROFILE_SYNC] = "wait for ranks",
    [CO_PROFILE_UPDATE] = "optimizer",
    [CO_PROFILE_EMA] = "moving average",
    [CO_PROFILE_CHECKPOINT] = "checkpoint",
    [CO_PROFILE_SUPERVISE] = "supervision",
    [CO_PROFILE_LOG] = "log",
};

static void profiler_kernel_begins(void *arg, const co_plan *plan, int step);
static void profiler_kernel_ends(void *arg, const co_plan *plan, int step);
static void profiler_operation(void *arg, const co_coll_args *args, uint64_t posted_ns,
                               uint64_t done_ns);
static void profiler_queued(void *arg, const co_coll_args *args, co_queue *queue, bool begins);
static void profiler_read(void *arg, int reader, uint64_t begin_ns, uint64_t samples);

static co_status profiler_make_tracks(co_profiler *p)
{
    size_t room = PROFILER_SPANS / (size_t)p->options.ranks;

    p->n_track = 2 + p->options.readers;
    p->track = co_calloc((size_t)p->n_track, sizeof(*p->track));
    if (!p->track)
        return CO_E_NOMEM;
    for (int i = 0; i < p->n_track; i++) {
        profiler_track *track = &p->track[i];

        track->cap = i == 0 ? room : i == 1 ? PROFILER_COMM : PROFILER_READER;
        if (i == 0 && track->cap < PROFILER_LEAST)
            track->cap = PROFILER_LEAST;
        track->span = co_calloc(track->cap, sizeof(*track->span));
        if (!track->span)
            return CO_E_NOMEM;
    }
    return CO_OK;
}

static co_status profiler_make_rows(co_profiler *p)
{
    p->cap_row = 256;
    p->row = co_calloc(p->cap_row, sizeof(*p->row));
    if (!p->row)
        return CO_E_NOMEM;
    for (int i = 0; i < CO_PROFILE_PHASES; i++) {
        p->row[i].row.kind = CO_PROFILE_OTHER;
        snprintf(p->row[i].row.name, sizeof(p->row[i].row.name), "%s", profiler_phases[i]);
    }
    p->n_row = CO_PROFILE_PHASES;
    return CO_OK;
}

co_status co_profiler_create(co_profiler **out, const co_profiler_options *options)
{
    co_profiler *p = co_calloc(1, sizeof(*p));
    co_status st;

    if (!p)
        return CO_E_NOMEM;
    p->options = *options;
    p->observer = (co_plan_observer){profiler_kernel_begins, profiler_kernel_ends, p};
    p->operations = (co_comm_observer){.done = profiler_operation, .arg = p};
    p->reads = (co_loader_observer){profiler_read, p};
    st = profiler_make_tracks(p);
    if (st == CO_OK)
        st = profiler_make_rows(p);
    if (st == CO_OK && co_device_has_clock(co_queue_device(options->queue)))
        st = co_device_times_create(&p->times, co_queue_device(options->queue));
    if (p->times)
        p->operations.queued = profiler_queued;
    if (st != CO_OK) {
        co_profiler_destroy(p);
        return st;
    }
    *out = p;
    return CO_OK;
}

void co_profiler_destroy(co_profiler *p)
{
    if (!p)
        return;
    if (p->comm)
        co_watch_observe(p->comm, NULL);
    co_profile_plans_free(&p->plans);
    for (int i = 0; p->track && i < p->n_track; i++)
        co_free(p->track[i].span);
    co_device_times_destroy(p->times);
    co_free(p->track);
    co_free(p->row);
    co_free(p);
}

/* ---- rows ---- */

static bool profiler_same(const co_profile_row *a, const co_profile_row *b)
{
    return a->kind == b->kind && strcmp(a->name, b->name) == 0 && strcmp(a->op, b->op) == 0 &&
           strcmp(a->backend, b->backend) == 0;
}

/* The row of a kernel; plans of other batches share it. Without memory: the loop's. */
static uint32_t profiler_find_row(co_profiler *p, const co_profile_row *row)
{
    for (size_t i = CO_PROFILE_PHASES; i < p->n_row; i++)
        if (profiler_same(&p->row[i].row, row))
            return (uint32_t)i;
    if (p->n_row == p->cap_row) {
        profiler_row *grown = co_realloc(p->row, p->cap_row * 2, sizeof(*grown));

        if (!grown)
            return CO_PROFILE_STEP;
        p->row = grown;
        p->cap_row *= 2;
    }
    p->row[p->n_row] = (profiler_row){.row = *row};
    p->row[p->n_row].row.flops = p->row[p->n_row].row.bytes = 0; /* summed up call by call */
    return (uint32_t)p->n_row++;
}

void co_profiler_watch_plan(co_profiler *p, co_plan *plan)
{
    co_profile_kernel *kernel;

    if (!p)
        return;
    kernel = co_profile_plans_add(&p->plans, plan);
    for (int step = 0; kernel && step < co_plan_step_count(plan); step++) {
        co_profile_row row;

        co_profile_row_of(&row, plan, step);
        kernel[step] = (co_profile_kernel){profiler_find_row(p, &row), row.flops, row.bytes};
    }
    co_plan_observe(plan, kernel ? &p->observer : NULL);
}

/* ---- spans ---- */

static void profiler_put(profiler_track *track, const co_span *span)
{
    const size_t n = atomic_load_explicit(&track->n, memory_order_relaxed);

    if (n == track->cap) {
        atomic_fetch_add_explicit(&track->lost, 1, memory_order_relaxed);
        return;
    }
    track->span[n] = *span;
    atomic_store_explicit(&track->n, n + 1, memory_order_release);
}

static void profiler_push(co_profiler *p, uint32_t row, uint64_t now)
{
    if (row == CO_PROFILE_STEP)
        p->depth = 0;
    if (p->depth < PROFILER_DEPTH)
        p->open[p->depth] = (profiler_open){row, now, 0};
    p->depth++;
}

static void profiler_pop(co_profiler *p, uint32_t step, uint64_t now)
{
    const profiler_open *open;
    profiler_row *row;
    uint64_t ns, own;

    if (p->depth == 0 || --p->depth >= PROFILER_DEPTH)
        return;
    open = &p->open[p->depth];
    row = &p->row[open->row];
    ns = now - open->begin_ns;
    if (p->depth > 0)
        p->open[p->depth - 1].inner_ns += ns;
    own = ns - open->inner_ns;
    row->own_ns += own;
    row->least_ns = row->calls == 0 || own < row->least_ns ? own : row->least_ns;
    row->calls++;
    profiler_put(&p->track[0], &(co_span){open->begin_ns, now, open->row, step, 0});
    if (open->row != CO_PROFILE_STEP)
        return;
    p->step_ns += ns;
    p->steps++;
}

/* An operation on a queue of its own, where one ends before the next begins. */
static void profiler_take_exchange(co_profiler *p, const co_device_point *point, uint64_t ns)
{
    if (point->begin)
        p->exchange_ns = ns;
    else
        profiler_put(&p->track[1],
                     &(co_span){p->exchange_ns, ns, point->what, point->step, point->value});
}

/* What the device has done by now. */
static void profiler_take(co_profiler *p)
{
    co_device_point point;
    uint64_t ns;

    while (co_device_times_take(&point, &ns, p->times))
        if (point.track == 1)
            profiler_take_exchange(p, &point, ns);
        else if (point.begin)
            profiler_push(p, point.what, ns);
        else
            profiler_pop(p, point.step, ns);
}

static void profiler_begin(co_profiler *p, uint32_t row)
{
    if (!p->times)
        profiler_push(p, row, co_clock_ns());
    else
        co_device_times_put(p->times, p->options.queue,
                            &(co_device_point){.begin = true, .what = row});
}

static void profiler_end(co_profiler *p)
{
    if (!p->times)
        profiler_pop(p, (uint32_t)p->step, co_clock_ns());
    else
        co_device_times_put(p->times, p->options.queue,
                            &(co_device_point){.step = (uint32_t)p->step});
}

static bool profiler_is_on(const co_profiler *p)
{
    return p && atomic_load_explicit(&((co_profiler *)p)->on, memory_order_relaxed);
}

void co_profiler_begin_step(co_profiler *p, uint64_t step)
{
    if (!p)
        return;
    if (!p->started) {
        p->first = step + p->options.skip;
        p->started = true;
    }
    if (step < p->first || p->begun >= p->options.steps)
        return;
    p->step = step;
    p->begun++;
    atomic_store_explicit(&p->on, true, memory_order_relaxed);
    profiler_begin(p, CO_PROFILE_STEP);
}

void co_profiler_end_step(co_profiler *p)
{
    if (!profiler_is_on(p))
        return;
    profiler_end(p);
    if (p->times)
        profiler_take(p);
    atomic_store_explicit(&p->on, false, memory_order_relaxed);
}

void co_profiler_enter(co_profiler *p, co_profile_phase phase)
{
    if (profiler_is_on(p))
        profiler_begin(p, (uint32_t)phase);
}

void co_profiler_leave(co_profiler *p)
{
    if (profiler_is_on(p))
        profiler_end(p);
}

static void profiler_kernel_begins(void *arg, const co_plan *plan, int step)
{
    co_profiler *p = arg;
    const co_profile_kernel *kernel;

    if (!profiler_is_on(p))
        return;
    kernel = co_profile_plans_find(&p->plans, plan, step);
    p->row[kernel->row].row.flops += kernel->flops;
    p->row[kernel->row].row.bytes += kernel->bytes;
    profiler_begin(p, kernel->row);
}

static void profiler_kernel_ends(void *arg, const co_plan *plan, int step)
{
    co_profiler *p = arg;

    (void)plan, (void)step;
    if (profiler_is_on(p))
        profiler_end(p);
}

static void profiler_operation(void *arg, const co_coll_args *args, uint64_t posted_ns,
                               uint64_t done_ns)
{
    co_profiler *p = arg;

    if (profiler_is_on(p))
        profiler_put(&p->track[1],
                     &(co_span){posted_ns, done_ns, (uint32_t)args->coll, (uint32_t)p->step,
                                args->count * co_dtype_size(args->dtype)});
}

static void profiler_queued(void *arg, const co_coll_args *args, co_queue *queue, bool begins)
{
    co_profiler *p = arg;

    if (profiler_is_on(p))
        co_device_times_put(p->times, queue,
                            &(co_device_point){begins, 1, (uint32_t)args->coll, (uint32_t)p->step,
                                               args->count * co_dtype_size(args->dtype)});
}

void co_profiler_watch_comm(co_profiler *p, co_comm *comm)
{
    p->comm = comm;
    co_watch_observe(comm, &p->operations);
}

/* Of thread `reader`, on that thread. */
static void profiler_read(void *arg, int reader, uint64_t begin_ns, uint64_t samples)
{
    co_profiler *p = arg;

    if (profiler_is_on(p) && 2 + reader < p->n_track)
        profiler_put(&p->track[2 + reader], &(co_span){begin_ns, co_clock_ns(), 0, 0, samples});
}

void co_profiler_watch_loader(co_profiler *p, co_loader *loader)
{
    co_loader_observe(loader, &p->reads);
}

/* ---- what it saw ---- */

co_status co_profiler_settle(co_profiler *p)
{
    if (!p->times)
        return CO_OK;
    CO_TRY(co_device_times_wait(p->times));
    profiler_take(p);
    return CO_OK;
}

uint64_t co_profiler_first_step(const co_profiler *p)
{
    return p->first;
}

uint64_t co_profiler_steps(const co_profiler *p)
{
    return p->steps;
}

double co_profiler_step_seconds(const co_profiler *p)
{
    return p->steps ? (double)p->step_ns * 1e-9 / (double)p->steps : 0;
}

size_t co_profiler_row_count(const co_profiler *p)
{
    return p->n_row;
}

void co_profiler_rows(co_profile_row *out, const co_profiler *p)
{
    const uint64_t steps = p->steps ? p->steps : 1;

    for (size_t i = 0; i < p->n_row; i++) {
        const profiler_row *row = &p->row[i];

        out[i] = row->row;
        out[i].calls = (uint32_t)((row->calls + steps - 1) / steps);
        out[i].seconds = (double)row->own_ns * 1e-9 / (double)steps;
        out[i].min_seconds = (double)row->least_ns * 1e-9;
        out[i].flops /= (double)steps;
        out[i].bytes /= (double)steps;
    }
}

int co_profiler_track_count(const co_profiler *p)
{
    return p->n_track;
}

co_span_list co_profiler_track(const co_profiler *p, int i)
{
    const profiler_track *track = &p->track[i];

    return (co_span_list){
        .span = track->span,
        .n = atomic_load_explicit(&((profiler_track *)track)->n, memory_order_acquire),
        .lost = atomic_load_explicit(&((profiler_track *)track)->lost, memory_order_relaxed)};
}
