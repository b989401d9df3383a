/*
 * mock_capture.c - captures of the mock device: the work of a queue, and of those that follow it
 * meanwhile, each of which is a queue of the capture's own when it is replayed.
 */
#include <stdint.h>

#include "core/mem.h"
#include "device/mock_queue.h"

static mock_device *mock_of(const co_queue *queue)
{
    return (mock_device *)queue->device;
}

static co_status capture_keep(mock_capture *capture, const mock_work *work)
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

co_status mock_keep(mock_queue *queue, const mock_work *work)
{
    mock_work own = *work;

    own.branch = queue->branch;
    queue->capture->branch[queue->branch].open = true;
    return capture_keep(queue->capture, &own);
}

co_status mock_keep_record(mock_fence *fence, mock_queue *queue)
{
    mock_capture *capture = queue->capture;
    const mock_work work = {.kind = MOCK_RECORD, .branch = queue->branch, .point = capture->points};

    fence->capture = capture->number;
    fence->point = capture->points;
    capture->branch[queue->branch].last = capture->points++;
    return capture_keep(capture, &work);
}

co_status mock_keep_follow(mock_queue *queue, const mock_fence *fence)
{
    mock_capture *capture = mock_of(&queue->base)->capturing;
    mock_work work = {.kind = MOCK_FOLLOW, .point = fence->point};

    if (!capture || fence->capture != capture->number)
        return co_fail(CO_E_USAGE, "a queue and the fence that it follows are of one capture");
    if (!queue->capture) {
        if (capture->branches == MOCK_BRANCHES)
            return co_fail(CO_E_USAGE, "a capture of too many queues");
        queue->capture = capture;
        queue->branch = capture->branches++;
        capture->branch[queue->branch].from = queue;
        capture->branch[queue->branch].last = SIZE_MAX;
    }
    capture->branch[queue->branch].open = true;
    for (int b = 1; b < capture->branches; b++)
        if (b != queue->branch && capture->branch[b].last == fence->point)
            capture->branch[b].open = false;
    work.branch = queue->branch;
    return capture_keep(capture, &work);
}

void mock_capture_destroy(co_capture *base)
{
    mock_capture *capture = (mock_capture *)base;

    for (int b = 1; b < capture->branches; b++)
        co_queue_destroy(capture->branch[b].queue);
    for (size_t i = 0; i < capture->n; i++)
        mock_forget(&capture->work[i]);
    co_free(capture->point);
    co_free(capture->work);
    co_free(capture);
}

co_status mock_capture_begin(co_queue *base)
{
    mock_queue *queue = (mock_queue *)base;
    mock_device *mock = mock_of(base);
    mock_capture *capture;

    if (mock->capturing)
        return co_fail(CO_E_USAGE, "the mock device has one capture at a time");
    capture = co_calloc(1, sizeof(*capture));
    if (!capture)
        return CO_E_NOMEM;
    capture->base.device = base->device;
    capture->number = ++mock->captures;
    capture->branches = 1;
    capture->branch[0].from = queue;
    mock->capturing = queue->capture = capture;
    queue->branch = 0;
    return CO_OK;
}

/* What it needs to be replayed. */
static co_status capture_finish(mock_capture *capture)
{
    for (int b = 1; b < capture->branches; b++)
        if (capture->branch[b].open)
            return co_fail(CO_E_USAGE, "a queue of a capture is not followed at its end");
    capture->point = co_calloc(capture->points ? capture->points : 1, sizeof(*capture->point));
    if (!capture->point)
        return CO_E_NOMEM;
    for (size_t i = 0; i < capture->points; i++)
        capture->point[i].base.device = capture->base.device;
    for (int b = 1; b < capture->branches; b++)
        CO_TRY(co_queue_create(&capture->branch[b].queue, capture->base.device));
    return CO_OK;
}

co_status mock_capture_end(co_capture **out, co_queue *base)
{
    mock_capture *capture = ((mock_queue *)base)->capture;
    co_status st;

    for (int b = 0; b < capture->branches; b++)
        capture->branch[b].from->capture = NULL;
    mock_of(base)->capturing = NULL;
    st = capture_finish(capture);
    if (st == CO_OK)
        *out = &capture->base;
    else
        mock_capture_destroy(&capture->base);
    return st;
}

co_status mock_capture_create(co_capture **out, co_queue *queue, co_status (*body)(void *arg),
                              void *arg)
{
    co_capture *capture = NULL;
    co_status st, ended;

    CO_TRY(mock_capture_begin(queue));
    st = body(arg);
    ended = mock_capture_end(&capture, queue);
    if (st == CO_OK && ended == CO_OK)
        *out = capture;
    else if (capture)
        mock_capture_destroy(capture);
    return st == CO_OK ? ended : st;
}

co_status mock_replay(co_capture *base, co_queue *queue)
{
    const mock_capture *capture = (const mock_capture *)base;
    mock_device *mock = mock_of(queue);

    pthread_mutex_lock(&mock->lock);
    mock_note(mock, &(mock_entry){.kind = MOCK_REPLAYED});
    pthread_mutex_unlock(&mock->lock);
    for (size_t i = 0; i < capture->n; i++) {
        const mock_work *work = &capture->work[i];
        co_queue *to = work->branch ? capture->branch[work->branch].queue : queue;

        if (work->kind == MOCK_RECORD)
            CO_TRY(mock_give_record((mock_queue *)to, &capture->point[work->point]));
        else if (work->kind == MOCK_FOLLOW)
            CO_TRY(mock_give_follow((mock_queue *)to, &capture->point[work->point]));
        else
            CO_TRY(mock_give((mock_queue *)to, work));
    }
    return CO_OK;
}
