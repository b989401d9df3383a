/*
 * mock_queue.c - queues of the mock device: worker threads that delay each operation, and the trace
 * of queued work.
 */
#include "device/mock_queue.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/mem.h"

static mock_device *mock_of(const co_queue *queue)
{
    return (mock_device *)queue->device;
}
/* Varies by queue and operation, so that queues overtake each other. */
static void mock_delay(mock_queue *queue)
{
    queue->draw = queue->draw * 1664525u + 1013904223u;
    co_clock_sleep_us((queue->draw >> 8) % MOCK_DELAY_US);
}

/* Translates device pointers to a worker's before the call. */
static void mock_run(mock_device *mock, mock_call call)
{
    for (int i = 0; i < MOCK_CALL_POINTERS; i++)
        call.p[i] = call.p[i] ? mock_memory_reach(&mock->memory, call.p[i]) : NULL;
    call.run(&call);
}

void mock_forget(mock_work *work)
{
    free(work->what);
    work->what = NULL;
}

bool mock_copy_what(mock_work *work)
{
    void *what = work->what;

    if (work->kind != MOCK_JOB)
        return true;
    work->what = malloc(work->bytes);
    if (work->what)
        memcpy(work->what, what, work->bytes);
    return work->what != NULL;
}

/* Called under lock, which is released for the delay and the work itself. */
static void mock_do(mock_device *mock, mock_queue *queue, const mock_work *work)
{
    co_status st = CO_OK;
    void *to, *from;

    if (work->kind == MOCK_FOLLOW) {
        while (work->fence->reached < work->point && !queue->end && !mock->broken)
            pthread_cond_wait(&mock->changed, &mock->lock);
        return;
    }
    mock->busy++;
    pthread_mutex_unlock(&mock->lock);
    to = mock_memory_reach(&mock->memory, work->to);
    from = mock_memory_reach(&mock->memory, work->from);
    mock_delay(queue);
    if (work->kind == MOCK_COPY)
        memcpy(to, from, work->bytes);
    else if (work->kind == MOCK_FILL)
        memset(to, work->byte, work->bytes);
    else if (work->kind == MOCK_CALL)
        mock_run(mock, work->call);
    else if (work->kind == MOCK_JOB)
        st = work->job(work->what, &mock->memory);
    pthread_mutex_lock(&mock->lock);
    mock->busy--;
    mock->broken |= st != CO_OK;
    if (work->kind == MOCK_RECORD) {
        work->fence->reached = work->point;
        work->fence->reached_ns = co_clock_ns();
    } else {
        mock->done++;
    }
}

static void *mock_worker(void *arg)
{
    mock_queue *queue = arg;
    mock_device *mock = mock_of(&queue->base);

    mock_memory_enter(&mock->memory);
    pthread_mutex_lock(&mock->lock);
    for (;;) {
        mock_work work;

        while (!queue->end && (mock->held || queue->taken == queue->given))
            pthread_cond_wait(&mock->changed, &mock->lock);
        if (queue->end)
            break;
        if (mock->broken) {
            while (queue->taken < queue->given)
                mock_forget(&queue->ring[queue->taken++ % MOCK_RING]);
            queue->done = queue->given;
            pthread_cond_broadcast(&mock->changed);
            continue;
        }
        work = queue->ring[queue->taken++ % MOCK_RING];
        mock_do(mock, queue, &work);
        mock_forget(&work);
        queue->done++;
        pthread_cond_broadcast(&mock->changed);
    }
    pthread_mutex_unlock(&mock->lock);
    return NULL;
}

/* ---- the trace ---- */

static void trace_add(uint64_t *trace, const void *what, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        *trace = (*trace ^ ((const unsigned char *)what)[i]) * 1099511628211u;
}

/* Hashes what does not vary between equal steps: no values, no host addresses. */
static void trace_work(mock_device *mock, const mock_work *work)
{
    const mock_call *c = &work->call;
    uint64_t *trace = &mock->trace;

    trace_add(trace, &work->kind, sizeof(work->kind));
    trace_add(trace, &work->bytes, sizeof(work->bytes));
    if (work->kind == MOCK_JOB) {
        trace_add(trace, &work->job, sizeof(work->job));
        trace_add(trace, work->what, sizeof(void *)); /* starts with a pointer */
    }
    if (work->kind != MOCK_CALL)
        return;
    trace_add(trace, &c->run, sizeof(c->run));
    trace_add(trace, c->p, sizeof(c->p));
    trace_add(trace, &c->n, sizeof(c->n));
    trace_add(trace, &c->a, sizeof(c->a));
    trace_add(trace, &c->b, sizeof(c->b));
    trace_add(trace, &c->first, sizeof(c->first));
    trace_add(trace, &c->stage, sizeof(c->stage));
}

void mock_note(mock_device *mock, const mock_entry *entry)
{
    if (mock->n_entry < mock->max_entry)
        mock->entry[mock->n_entry++] = *entry;
}

static void mock_note_work(mock_device *mock, const mock_work *work)
{
    if (work->kind == MOCK_COPY)
        mock_note(mock, &(mock_entry){MOCK_COPIED, work->to, work->from, work->bytes, NULL});
    else if (work->kind == MOCK_RECORD)
        mock_note(mock, &(mock_entry){.kind = MOCK_RECORDED, .fence = &work->fence->base});
}

co_status mock_give(mock_queue *queue, const mock_work *work)
{
    mock_device *mock = mock_of(&queue->base);
    mock_work own = *work;

    if (!mock_copy_what(&own))
        return co_fail(CO_E_NOMEM, "the mock device has no memory for a job");
    pthread_mutex_lock(&mock->lock);
    while (queue->given - queue->done == MOCK_RING)
        pthread_cond_wait(&mock->changed, &mock->lock);
    trace_work(mock, &own);
    mock_note_work(mock, &own);
    if (mock->broken)
        mock_forget(&own);
    else
        queue->ring[queue->given++ % MOCK_RING] = own;
    pthread_cond_broadcast(&mock->changed);
    pthread_mutex_unlock(&mock->lock);
    return CO_OK;
}

co_status mock_queue_create(co_queue **out, co_device *device)
{
    mock_queue *queue = co_calloc(1, sizeof(*queue));

    if (!queue)
        return CO_E_NOMEM;
    queue->base.device = device;
    queue->draw = (uint32_t)((uintptr_t)queue >> 4);
    if (pthread_create(&queue->worker, NULL, mock_worker, queue) != 0) {
        co_free(queue);
        return co_fail(CO_E_FAILED, "the mock device cannot start a thread");
    }
    *out = &queue->base;
    return CO_OK;
}

void mock_queue_destroy(co_queue *base)
{
    mock_queue *queue = (mock_queue *)base;
    mock_device *mock = mock_of(base);

    pthread_mutex_lock(&mock->lock);
    queue->end = true;
    pthread_cond_broadcast(&mock->changed);
    pthread_mutex_unlock(&mock->lock);
    pthread_join(queue->worker, NULL);
    while (queue->taken < queue->given)
        mock_forget(&queue->ring[queue->taken++ % MOCK_RING]);
    co_free(queue);
}

/* ---- work ---- */

static co_status mock_work_on(co_queue *base, const mock_work *work)
{
    mock_queue *queue = (mock_queue *)base;

    return queue->capture ? mock_keep(queue, work) : mock_give(queue, work);
}

co_status mock_copy(co_queue *queue, void *to, const void *from, size_t bytes)
{
    const mock_work work = {.kind = MOCK_COPY, .to = to, .from = from, .bytes = bytes};

    return bytes ? mock_work_on(queue, &work) : CO_OK;
}

co_status mock_fill(co_queue *queue, void *to, int byte, size_t bytes)
{
    const mock_work work = {.kind = MOCK_FILL, .to = to, .byte = byte, .bytes = bytes};

    return bytes ? mock_work_on(queue, &work) : CO_OK;
}

/* Without a result: a capture that runs out of memory here is left to the test to notice. */
void mock_call_on(co_queue *queue, const mock_call *call)
{
    (void)mock_work_on(queue, &(mock_work){.kind = MOCK_CALL, .call = *call});
}

co_status mock_enqueue(co_queue *queue, mock_job job, const void *what, size_t bytes)
{
    return mock_work_on(
        queue, &(mock_work){.kind = MOCK_JOB, .job = job, .what = (void *)what, .bytes = bytes});
}

co_status mock_fence_create(co_fence **out, co_device *device)
{
    mock_fence *fence = co_calloc(1, sizeof(*fence));

    if (!fence)
        return CO_E_NOMEM;
    fence->base.device = device;
    *out = &fence->base;
    return CO_OK;
}

co_status mock_timed_fence_create(co_fence **out, co_device *device)
{
    CO_TRY(mock_fence_create(out, device));
    ((mock_fence *)*out)->timed = true;
    return CO_OK;
}

co_status mock_fence_seconds(double *out, const co_fence *begin, const co_fence *end)
{
    const mock_fence *a = (const mock_fence *)begin, *b = (const mock_fence *)end;
    mock_device *mock = (mock_device *)begin->device;
    bool known;

    pthread_mutex_lock(&mock->lock);
    known = a->timed && b->timed && a->reached && b->reached && a->reached == a->recorded &&
            b->reached == b->recorded;
    *out = ((double)b->reached_ns - (double)a->reached_ns) * 1e-9;
    pthread_mutex_unlock(&mock->lock);
    return known ? CO_OK : co_fail(CO_E_USAGE, "a fence that is not timed, or not reached");
}

void mock_fence_destroy(co_fence *fence)
{
    co_free(fence);
}

co_status mock_give_record(mock_queue *queue, mock_fence *fence)
{
    mock_device *mock = mock_of(&queue->base);
    mock_work work = {.kind = MOCK_RECORD, .fence = fence};

    pthread_mutex_lock(&mock->lock);
    work.point = ++fence->recorded;
    pthread_mutex_unlock(&mock->lock);
    return mock_give(queue, &work);
}

co_status mock_give_follow(mock_queue *queue, mock_fence *fence)
{
    mock_device *mock = mock_of(&queue->base);
    mock_work work = {.kind = MOCK_FOLLOW, .fence = fence};

    pthread_mutex_lock(&mock->lock);
    work.point = fence->recorded;
    pthread_mutex_unlock(&mock->lock);
    return mock_give(queue, &work);
}

co_status mock_record(co_fence *base, co_queue *queue)
{
    mock_fence *fence = (mock_fence *)base;

    if (((const mock_queue *)queue)->capture)
        return mock_keep_record(fence, (mock_queue *)queue);
    fence->capture = 0;
    return mock_give_record((mock_queue *)queue, fence);
}

co_status mock_follow(co_queue *queue, const co_fence *base)
{
    mock_fence *fence = (mock_fence *)base;

    if (((const mock_queue *)queue)->capture || fence->capture)
        return mock_keep_follow((mock_queue *)queue, fence);
    return mock_give_follow((mock_queue *)queue, fence);
}

co_status mock_reached(bool *out, const co_fence *base)
{
    mock_device *mock = (mock_device *)base->device;
    mock_fence *fence = (mock_fence *)base;
    bool broken;

    if (fence->capture)
        return co_fail(CO_E_USAGE, "a fence of a capture is reached nowhere");
    pthread_mutex_lock(&mock->lock);
    *out = fence->reached == fence->recorded;
    if (*out && fence->seen != fence->reached) {
        fence->seen = fence->reached;
        mock_note(mock, &(mock_entry){.kind = MOCK_SEEN, .fence = base});
    }
    broken = mock->broken;
    pthread_mutex_unlock(&mock->lock);
    return broken ? co_fail(CO_E_FAILED, "the mock device is broken") : CO_OK;
}
