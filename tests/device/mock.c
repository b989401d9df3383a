/*
 * mock.c - the mock device: memory that is protected (mock_memory.c), and queues that are threads.
 */
#include "device/mock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/mem.h"
#include "device/mock_memory.h"
#include "device/mock_vector.h"

#define MOCK_RING     64 /* things to do that a queue holds; whoever brings more waits */
#define MOCK_DELAY_US 300

typedef struct mock_device {
    co_device base;
    mock_memory memory;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under lock */
    bool held, broken;
    int busy; /* workers in the middle of something */
    uint64_t done;
} mock_device;

typedef struct mock_fence {
    co_fence base;
    uint64_t recorded, reached; /* under lock: how often */
} mock_fence;

typedef enum mock_kind {
    MOCK_COPY,
    MOCK_FILL,
    MOCK_CALL,
    MOCK_JOB,
    MOCK_RECORD,
    MOCK_FOLLOW
} mock_kind;

typedef struct mock_work {
    mock_kind kind;
    void *to;
    const void *from;
    int byte;
    size_t bytes;
    mock_fence *fence;
    uint64_t point; /* of the fence */
    mock_call call;
    mock_job job;
    void *what; /* owned; (bytes), of a job */
} mock_work;

typedef struct mock_capture {
    co_capture base;
    mock_work *work; /* owned */
    size_t n, cap;
} mock_capture;

typedef struct mock_queue {
    co_queue base;
    pthread_t worker;
    uint32_t draw;         /* of the next delay; the worker's */
    mock_capture *capture; /* under way; NULL: none */
    /* under the device's lock */
    mock_work ring[MOCK_RING];
    uint64_t given, taken, done;
    bool end;
} mock_queue;

static mock_device *mock_of(const co_queue *queue)
{
    return (mock_device *)queue->device;
}

static co_status mock_alloc(void **out, co_device *device, size_t bytes, co_memory kind)
{
    if (kind == CO_MEMORY_DEVICE)
        return mock_memory_take(out, &((mock_device *)device)->memory, bytes);
    *out = co_calloc_aligned(bytes, 1);
    return *out ? CO_OK : CO_E_NOMEM;
}

static void mock_free(co_device *device, void *at, co_memory kind)
{
    if (kind == CO_MEMORY_DEVICE)
        mock_memory_give(&((mock_device *)device)->memory, at);
    else
        co_free(at);
}

/* ---- queues ---- */

/* Different for each thing of each queue, so that queues overtake each other. */
static void mock_delay(mock_queue *queue)
{
    queue->draw = queue->draw * 1664525u + 1013904223u;
    co_clock_sleep_us((queue->draw >> 8) % MOCK_DELAY_US);
}

/* Pointers become those of a worker. */
static void mock_run(mock_device *mock, mock_call call)
{
    for (int i = 0; i < MOCK_CALL_POINTERS; i++)
        call.p[i] = call.p[i] ? mock_memory_reach(&mock->memory, call.p[i]) : NULL;
    call.run(&call);
}

/* What a queue has of it, done or not. */
static void mock_forget(mock_work *work)
{
    free(work->what);
    work->what = NULL;
}

static bool mock_copy_what(mock_work *work)
{
    void *what = work->what;

    if (work->kind != MOCK_JOB)
        return true;
    work->what = malloc(work->bytes);
    if (work->what)
        memcpy(work->what, what, work->bytes);
    return work->what != NULL;
}

/* Under lock, but for the delay and the work itself. */
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
    if (work->kind == MOCK_RECORD)
        work->fence->reached = work->point;
    else
        mock->done++;
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

static co_status mock_give(mock_queue *queue, const mock_work *work)
{
    mock_device *mock = mock_of(&queue->base);
    mock_work own = *work;

    if (!mock_copy_what(&own))
        return co_fail(CO_E_NOMEM, "the mock device has no memory for a job");
    pthread_mutex_lock(&mock->lock);
    while (queue->given - queue->done == MOCK_RING)
        pthread_cond_wait(&mock->changed, &mock->lock);
    if (mock->broken)
        mock_forget(&own);
    else
        queue->ring[queue->given++ % MOCK_RING] = own;
    pthread_cond_broadcast(&mock->changed);
    pthread_mutex_unlock(&mock->lock);
    return CO_OK;
}

static co_status mock_queue_create(co_queue **out, co_device *device)
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

static void mock_queue_destroy(co_queue *base)
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

/* ---- capture ---- */

static co_status mock_keep(mock_capture *capture, const mock_work *work)
{
    if (capture->n == capture->cap) {
        const size_t cap = 2 * capture->cap + 8;
        mock_work *more = co_realloc(capture->work, cap, sizeof(*more));

        if (!more)
            return CO_E_NOMEM;
        capture->work = more;
        capture->cap = cap;
    }
    capture->work[capture->n] = *work;
    if (!mock_copy_what(&capture->work[capture->n]))
        return CO_E_NOMEM;
    capture->n++;
    return CO_OK;
}

static void mock_capture_destroy(co_capture *base)
{
    mock_capture *capture = (mock_capture *)base;

    for (size_t i = 0; i < capture->n; i++)
        mock_forget(&capture->work[i]);
    co_free(capture->work);
    co_free(capture);
}

static co_status mock_capture_create(co_capture **out, co_queue *base, co_status (*body)(void *arg),
                                     void *arg)
{
    mock_queue *queue = (mock_queue *)base;
    mock_capture *capture = co_calloc(1, sizeof(*capture));
    co_status st;

    if (!capture)
        return CO_E_NOMEM;
    capture->base.device = base->device;
    queue->capture = capture;
    st = body(arg);
    queue->capture = NULL;
    if (st == CO_OK)
        *out = &capture->base;
    else
        mock_capture_destroy(&capture->base);
    return st;
}

static co_status mock_replay(co_capture *base, co_queue *queue)
{
    const mock_capture *capture = (const mock_capture *)base;

    for (size_t i = 0; i < capture->n; i++)
        CO_TRY(mock_give((mock_queue *)queue, &capture->work[i]));
    return CO_OK;
}

/* ---- work ---- */

static co_status mock_work_on(co_queue *base, const mock_work *work)
{
    mock_queue *queue = (mock_queue *)base;

    return queue->capture ? mock_keep(queue->capture, work) : mock_give(queue, work);
}

static co_status mock_copy(co_queue *queue, void *to, const void *from, size_t bytes)
{
    const mock_work work = {.kind = MOCK_COPY, .to = to, .from = from, .bytes = bytes};

    return bytes ? mock_work_on(queue, &work) : CO_OK;
}

static co_status mock_fill(co_queue *queue, void *to, int byte, size_t bytes)
{
    const mock_work work = {.kind = MOCK_FILL, .to = to, .byte = byte, .bytes = bytes};

    return bytes ? mock_work_on(queue, &work) : CO_OK;
}

/* It cannot fail: a capture that has no memory for it is what a test would notice. */
void mock_call_on(co_queue *queue, const mock_call *call)
{
    (void)mock_work_on(queue, &(mock_work){.kind = MOCK_CALL, .call = *call});
}

co_status mock_enqueue(co_queue *queue, mock_job job, const void *what, size_t bytes)
{
    return mock_work_on(
        queue, &(mock_work){
                   .kind = MOCK_JOB, .job = job, .what = (void *)(uintptr_t)what, .bytes = bytes});
}

static co_status mock_fence_create(co_fence **out, co_device *device)
{
    mock_fence *fence = co_calloc(1, sizeof(*fence));

    if (!fence)
        return CO_E_NOMEM;
    fence->base.device = device;
    *out = &fence->base;
    return CO_OK;
}

static void mock_fence_destroy(co_fence *fence)
{
    co_free(fence);
}

static co_status mock_refuse_in_capture(const co_queue *queue)
{
    if (!((const mock_queue *)queue)->capture)
        return CO_OK;
    return co_fail(CO_E_USAGE, "a capture keeps copies and fills, no fences");
}

static co_status mock_record(co_fence *base, co_queue *queue)
{
    mock_device *mock = mock_of(queue);
    mock_work work = {.kind = MOCK_RECORD, .fence = (mock_fence *)base};

    CO_TRY(mock_refuse_in_capture(queue));
    pthread_mutex_lock(&mock->lock);
    work.point = ++work.fence->recorded;
    pthread_mutex_unlock(&mock->lock);
    return mock_give((mock_queue *)queue, &work);
}

static co_status mock_follow(co_queue *queue, const co_fence *base)
{
    mock_device *mock = mock_of(queue);
    mock_work work = {.kind = MOCK_FOLLOW, .fence = (mock_fence *)base};

    CO_TRY(mock_refuse_in_capture(queue));
    pthread_mutex_lock(&mock->lock);
    work.point = work.fence->recorded;
    pthread_mutex_unlock(&mock->lock);
    return mock_give((mock_queue *)queue, &work);
}

static co_status mock_reached(bool *out, const co_fence *base)
{
    mock_device *mock = (mock_device *)base->device;
    const mock_fence *fence = (const mock_fence *)base;
    bool broken;

    pthread_mutex_lock(&mock->lock);
    *out = fence->reached == fence->recorded;
    broken = mock->broken;
    pthread_mutex_unlock(&mock->lock);
    return broken ? co_fail(CO_E_FAILED, "the mock device is broken") : CO_OK;
}

static const co_device_ops mock_ops = {
    .name = "mock",
    .summary = "threads of this process that behave like a device (tests)",
    .alloc = mock_alloc,
    .free = mock_free,
    .queue_create = mock_queue_create,
    .queue_destroy = mock_queue_destroy,
    .copy = mock_copy,
    .fill = mock_fill,
    .fence_create = mock_fence_create,
    .fence_destroy = mock_fence_destroy,
    .record = mock_record,
    .follow = mock_follow,
    .reached = mock_reached,
    .capture = mock_capture_create,
    .replay = mock_replay,
    .capture_destroy = mock_capture_destroy,
    .vector = &mock_vector,
    .optimizers = mock_optimizers,
};

/* ---- the device ---- */

co_status mock_open(co_device **out, mock_way way)
{
    mock_device *mock = co_calloc(1, sizeof(*mock));
    co_status st;

    if (!mock)
        return CO_E_NOMEM;
    st = mock_memory_open(&mock->memory, way);
    if (st != CO_OK) {
        co_free(mock);
        return st;
    }
    mock->base.ops = &mock_ops;
    pthread_mutex_init(&mock->lock, NULL);
    pthread_cond_init(&mock->changed, NULL);
    *out = &mock->base;
    return CO_OK;
}

void mock_close(co_device *device)
{
    mock_device *mock = (mock_device *)device;

    if (!mock)
        return;
    mock_memory_close(&mock->memory);
    pthread_cond_destroy(&mock->changed);
    pthread_mutex_destroy(&mock->lock);
    co_free(mock);
}

static void mock_set(co_device *device, bool held, bool broken)
{
    mock_device *mock = (mock_device *)device;

    pthread_mutex_lock(&mock->lock);
    mock->held = held;
    mock->broken |= broken;
    while (broken && mock->busy)
        pthread_cond_wait(&mock->changed, &mock->lock);
    pthread_cond_broadcast(&mock->changed);
    pthread_mutex_unlock(&mock->lock);
}

void mock_hold(co_device *device)
{
    mock_set(device, true, false);
}

void mock_go_on(co_device *device)
{
    mock_set(device, false, false);
}

void mock_break(co_device *device)
{
    mock_set(device, false, true);
}

uint64_t mock_done(co_device *device)
{
    mock_device *mock = (mock_device *)device;
    uint64_t done;

    pthread_mutex_lock(&mock->lock);
    done = mock->done;
    pthread_mutex_unlock(&mock->lock);
    return done;
}
