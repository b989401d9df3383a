/*
 * device_times.c - points of queues as fences with times, which are used again.
 *
 * CUDA gives the time between two events as a float in milliseconds: exact enough over a tenth of a
 * second, not over a run. So a point is measured from one shortly before it.
 */
#include "profile/device_times.h"

#include "core/clock.h"
#include "core/mem.h"

#define TIMES_FIRST   1024
#define TIMES_NEAR_NS 100000000

typedef struct times_point {
    co_device_point point;
    co_fence *fence;
} times_point;

struct co_device_times {
    co_device *device; /* borrowed */
    co_fence *base;    /* owned; a point, and when that was */
    uint64_t base_ns;
    size_t first, n, cap;
    times_point *point; /* owned; from `first` to `n` they wait to be taken */
    size_t n_spare;
    co_fence **spare; /* owned, (cap) */
    co_status failed;
};

/* The base, with the host's clock read as soon as the device has been there. */
static co_status times_start(co_device_times *t)
{
    co_queue *queue = NULL;
    co_status st = co_queue_create(&queue, t->device);

    if (st == CO_OK)
        st = co_timed_fence_create(&t->base, t->device);
    if (st == CO_OK)
        st = co_fence_record(t->base, queue);
    if (st == CO_OK)
        st = co_fence_wait(t->base, CO_DEVICE_WAIT_MS);
    t->base_ns = co_clock_ns();
    co_queue_destroy(queue);
    return st;
}

co_status co_device_times_create(co_device_times **out, co_device *device)
{
    co_device_times *t = co_calloc(1, sizeof(*t));
    co_status st;

    if (!t)
        return CO_E_NOMEM;
    t->device = device;
    st = times_start(t);
    if (st != CO_OK) {
        co_device_times_destroy(t);
        return st;
    }
    *out = t;
    return CO_OK;
}

void co_device_times_destroy(co_device_times *t)
{
    if (!t)
        return;
    for (size_t i = t->first; i < t->n; i++)
        co_fence_destroy(t->point[i].fence);
    for (size_t i = 0; i < t->n_spare; i++)
        co_fence_destroy(t->spare[i]);
    co_fence_destroy(t->base);
    co_free(t->point);
    co_free(t->spare);
    co_free(t);
}

/* At the end of the array; what was taken makes room first. */
static co_status times_make_room(co_device_times *t)
{
    const size_t cap = t->cap ? 2 * t->cap : TIMES_FIRST;
    times_point *point;
    co_fence **spare;

    if (t->n < t->cap)
        return CO_OK;
    for (size_t i = t->first; i < t->n; i++)
        t->point[i - t->first] = t->point[i];
    t->n -= t->first;
    t->first = 0;
    if (2 * t->n < t->cap)
        return CO_OK;
    spare = co_realloc(t->spare, cap, sizeof(*spare));
    t->spare = spare ? spare : t->spare;
    point = spare ? co_realloc(t->point, cap, sizeof(*point)) : NULL;
    if (!point)
        return CO_E_NOMEM;
    t->point = point;
    t->cap = cap;
    return CO_OK;
}

static co_status times_put(co_device_times *t, co_queue *queue, const co_device_point *point)
{
    times_point *to;

    CO_TRY(times_make_room(t));
    to = &t->point[t->n];
    *to = (times_point){.point = *point};
    if (t->n_spare > 0)
        to->fence = t->spare[--t->n_spare];
    else
        CO_TRY(co_timed_fence_create(&to->fence, t->device));
    t->n++;
    return co_fence_record(to->fence, queue);
}

void co_device_times_put(co_device_times *t, co_queue *queue, const co_device_point *point)
{
    if (t->failed == CO_OK)
        t->failed = times_put(t, queue, point);
}

/* The base becomes this point, if it is far from the old one; else its fence is free again. */
static void times_pass(co_device_times *t, co_fence *fence, uint64_t ns)
{
    co_fence *spare = fence;

    if (ns > t->base_ns + TIMES_NEAR_NS) {
        spare = t->base;
        t->base = fence;
        t->base_ns = ns;
    }
    t->spare[t->n_spare++] = spare;
}

bool co_device_times_take(co_device_point *out, uint64_t *ns, co_device_times *t)
{
    const times_point *next = &t->point[t->first];
    bool reached = false;
    double seconds = 0;

    if (t->failed != CO_OK || t->first == t->n)
        return false;
    t->failed = co_fence_reached(&reached, next->fence);
    if (t->failed == CO_OK && reached)
        t->failed = co_fence_seconds(&seconds, t->base, next->fence);
    if (t->failed != CO_OK || !reached)
        return false;
    *out = next->point;
    *ns = (uint64_t)((int64_t)t->base_ns + (int64_t)(seconds * 1e9));
    times_pass(t, next->fence, *ns);
    t->first++;
    return true;
}

co_status co_device_times_wait(co_device_times *t)
{
    for (size_t i = t->first; i < t->n && t->failed == CO_OK; i++)
        t->failed = co_fence_wait(t->point[i].fence, CO_DEVICE_WAIT_MS);
    return t->failed;
}
