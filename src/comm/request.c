/*
 * request.c - waits for an operation without keeping a core busy for long, and not for ever.
 *
 * Waits are short if ranks are in step, so spin first, then sleep for a sixteenth of the time
 * waited so far, which bounds the delay. Oversubscribed ranks yield the core instead of spinning;
 * others do not, as whatever else is there, even a process that only wants idle cores, would keep
 * it for some milliseconds while the next rank waits and yields, too. If an operation takes many
 * polls each sleep adds to it, so these stay short, and there are none while its messages keep
 * coming; a rank that always yielded instead would have used up its share of a busy core when its
 * turn comes. Polls of hundreds of ranks would fill all cores, so sleeps grow with the number of
 * ranks.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "comm/comm_internal.h"
#include "comm/nccl.h"
#include "comm/queued.h"
#include "comm/watch.h"
#include "core/clock.h"
#include "core/mem.h"
#include "device/device.h"

#define REQUEST_SPINS         256
#define REQUEST_SOON_NS       1000000
#define REQUEST_ARRIVAL_NS    100000 /* after a message of an operation another one may be near */
#define REQUEST_SLEEP_MAX_US  1000
#define REQUEST_SLEEP_EACH_US 50
#define REQUEST_POLL_US       50
#define REQUEST_LOOK_NS       50000000 /* between checks for dead ranks */

void *co_comm_take_request(co_comm *comm, size_t size, const co_coll_args *args)
{
    co_request *request = comm->spare;

    if (request) {
        comm->spare = request->next_spare;
        memset(request, 0, size);
    } else {
        request = co_calloc(1, size);
        if (!request)
            return NULL;
    }
    request->comm = comm;
    request->args = *args;
    return request;
}

void co_comm_give_request(co_request *request)
{
    request->next_spare = request->comm->spare;
    request->comm->spare = request;
}

void co_comm_free_spare(co_comm *comm)
{
    while (comm->spare) {
        co_request *request = comm->spare;

        comm->spare = request->next_spare;
        co_free(request);
    }
}

static void request_back_off(const co_comm *comm, uint64_t waited_ns, uint64_t still_ns)
{
    const uint64_t us = comm->ops->polled ? REQUEST_POLL_US : waited_ns / 16000;
    const uint64_t all_us = (uint64_t)comm->size * REQUEST_SLEEP_EACH_US;
    const uint64_t max_us = all_us > REQUEST_SLEEP_MAX_US ? all_us : REQUEST_SLEEP_MAX_US;
    const bool soon = waited_ns < REQUEST_SOON_NS || still_ns < REQUEST_ARRIVAL_NS;

    if (soon && !comm->oversubscribed)
        co_comm_pause();
    else if (soon)
        sched_yield();
    else
        co_clock_sleep_us((uint32_t)(us < max_us ? us : max_us));
}

/* Describe the ranks that the operation waits for. */
static void request_describe_late(const co_request *request, char *out, size_t size)
{
    const co_comm *comm = request->comm;

    for (int p = 0; comm->ops->late && p < comm->size; p++) {
        const co_watch *watch = comm->ops->late(request, p);
        const size_t used = strlen(out);

        if (!watch || p == comm->rank || used + 3 > size)
            continue;
        memcpy(out + used, "; ", 3);
        co_watch_describe(out + used + 2, size - used - 2, watch);
    }
}

/* Last sign of progress of the late rank that has been silent for longest; 0: unknown. */
static uint64_t request_late_beat(const co_request *request)
{
    const co_comm *comm = request->comm;
    uint64_t oldest = UINT64_MAX;

    for (int p = 0; comm->ops->late && p < comm->size; p++) {
        const co_watch *watch = comm->ops->late(request, p);
        uint64_t beat;

        if (!watch || p == comm->rank)
            continue;
        beat = atomic_load(&((co_watch *)watch)->beat_ns);
        oldest = beat < oldest ? beat : oldest;
    }
    return oldest == UINT64_MAX ? 0 : oldest;
}

/* fsync may take long and shows no progress. */
static bool request_waits_for_saving(const co_request *request, uint64_t waited_ns)
{
    const co_comm *comm = request->comm;
    const uint64_t limit_ns = (uint64_t)comm->timeout_ms * 1000000 * CO_WATCH_SAVING;

    if (waited_ns >= limit_ns)
        return false;
    for (int p = 0; comm->ops->late && p < comm->size; p++) {
        const co_watch *watch = comm->ops->late(request, p);

        if (watch && p != comm->rank &&
            atomic_load(&((co_watch *)watch)->phase) == CO_PHASE_SAVING &&
            !co_watch_is_stopped(watch))
            return true;
    }
    return comm->ops->is_saving && comm->ops->is_saving(request);
}

/* The rank at fault: the late rank, if there is only one and it waits for nobody; else this one. */
static int request_culprit(const co_request *request)
{
    const co_comm *comm = request->comm;
    int culprit = -1, late = 0;

    for (int p = 0; comm->ops->late && p < comm->size; p++) {
        const co_watch *watch = comm->ops->late(request, p);

        if (!watch || p == comm->rank)
            continue;
        late++;
        culprit = atomic_load(&((co_watch *)watch)->waiting) ? -1 : p;
    }
    return late == 1 && culprit >= 0 ? culprit : comm->rank;
}

/* "before allreduce of 10 f32 (sum): ", of an operation that others have to be agreed on by. */
static void request_describe_whole(const co_request *request, char *out, size_t size)
{
    co_coll_descriptor descriptor;
    char text[CO_COMM_DESCRIBE_MAX];

    if (!request->whole)
        return;
    descriptor = co_comm_descriptor(request->whole, 0);
    snprintf(out, size, "before %s: ", co_comm_describe(text, sizeof(text), &descriptor));
}

/* The first cause wins, so ranks that time out together all return the same. */
static co_status request_time_out(const co_request *request, uint64_t waited_ns)
{
    co_comm *comm = request->comm;
    char waiting[CO_COMM_CAUSE_SIZE / 4], late[CO_COMM_CAUSE_SIZE / 2] = "";
    char whole[CO_COMM_DESCRIBE_MAX + 16] = "";

    comm->ops->describe_wait(request, waiting, sizeof(waiting));
    request_describe_late(request, late, sizeof(late));
    request_describe_whole(request, whole, sizeof(whole));
    co_fail(CO_E_TIMEOUT, "rank %d timed out after %llu ms, %s%s%s", comm->rank,
            (unsigned long long)(waited_ns / 1000000), whole, waiting, late);
    comm->ops->fail(comm, request_culprit(request), CO_E_TIMEOUT, co_error_message());
    return comm->ops->progress(comm);
}

/* A late rank that has ended; -1: none known. */
static int request_find_gone(const co_request *request)
{
    const co_comm *comm = request->comm;

    for (int p = 0; comm->ops->late && p < comm->size; p++) {
        const co_watch *watch = comm->ops->late(request, p);

        if (watch && p != comm->rank && co_watch_gone(watch))
            return p;
    }
    return -1;
}

static co_status request_give_up(const co_request *request, int gone, const co_watch *watch)
{
    co_comm *comm = request->comm;
    const int how = co_watch_gone(watch);
    char text[256] = "has left";

    if (how > 0)
        co_watch_describe_killed(text, sizeof(text), watch, how);
    co_fail(CO_E_PEER, "rank %d %s%s, and rank %d waits for it in %s", gone, how > 0 ? "was " : "",
            text, comm->rank,
            co_comm_coll_name(request->whole ? request->whole->coll : request->args.coll));
    comm->ops->fail(comm, gone, CO_E_PEER, co_error_message());
    return comm->ops->progress(comm);
}

/* Poll once more. Once `gone` is known to have ended, all its writes are visible, so if it is still
   late now it stays late. */
static co_status request_look(const co_request *request, int gone)
{
    co_comm *comm = request->comm;
    const co_watch *watch;

    CO_TRY(co_comm_progress(comm));
    if (gone < 0 || request->done)
        return CO_OK;
    watch = comm->ops->late(request, gone);
    return watch ? request_give_up(request, gone, watch) : CO_OK;
}

/* The slow part of a wait. Does not time out while a late rank still makes progress. */
static co_status request_wait_long(co_request *request)
{
    const uint64_t limit_ns = (uint64_t)request->comm->timeout_ms * 1000000;
    const uint64_t start_ns = co_clock_ns();
    uint64_t now_ns = start_ns, look_ns = start_ns + REQUEST_LOOK_NS, arrival_ns = start_ns;
    uint64_t arrivals = request->comm->arrivals;
    co_status st = CO_OK;

    co_watch_wait(request, start_ns);
    while (st == CO_OK && !request->done) {
        const uint64_t waited_ns = now_ns - start_ns;
        int gone = -1;

        if (waited_ns >= limit_ns && now_ns >= request_late_beat(request) + limit_ns &&
            !request_waits_for_saving(request, waited_ns)) {
            /* another thread may have advanced it since the last poll */
            st = request_look(request, -1);
            if (st == CO_OK && !request->done)
                st = request_time_out(request, waited_ns);
            break;
        }
        if (now_ns >= look_ns) {
            gone = request_find_gone(request);
            look_ns = now_ns + REQUEST_LOOK_NS;
        }
        request_back_off(request->comm, waited_ns, now_ns - arrival_ns);
        st = request_look(request, gone);
        now_ns = co_clock_ns();
        if (request->comm->arrivals != arrivals) {
            arrivals = request->comm->arrivals;
            arrival_ns = now_ns;
        }
    }
    co_watch_wait_over(request, now_ns);
    return st;
}

co_status co_request_wait(co_request *request)
{
    const int spins = request->comm->oversubscribed ? 1 : REQUEST_SPINS;

    if (request->staged)
        return co_staged_wait(request);
    if (request->nccl)
        return co_nccl_wait(request);
    for (int spin = 0; !request->done && spin < spins; spin++)
        CO_TRY(co_comm_progress(request->comm));
    if (!request->done)
        CO_TRY(request_wait_long(request));
    co_watch_done(request);
    return CO_OK;
}

co_status co_request_test(bool *done, co_request *request)
{
    if (request->staged)
        return co_staged_test(done, request);
    if (request->nccl)
        return co_nccl_test(done, request);
    *done = request->done;
    if (*done)
        return CO_OK;
    CO_TRY(co_comm_progress(request->comm));
    *done = request->done;
    if (*done)
        co_watch_done(request);
    return CO_OK;
}

void co_request_destroy(co_request *request)
{
    if (!request)
        return;
    if (request->staged) {
        co_staged_destroy(request);
        return;
    }
    if (request->nccl) {
        co_nccl_destroy(request);
        return;
    }
    if (request->observer)
        co_watch_forget(request);
    /* The transport still points to it, so the communicator must never poll again. */
    if (!request->done)
        request->comm->ops->fail(request->comm, request->comm->rank, CO_E_USAGE,
                                 "a request was destroyed before its operation was complete");
    request->comm->ops->destroy_request(request);
}

co_status co_request_order(co_request *request, co_queue *queue)
{
    if (!queue)
        return co_request_wait(request);
    if (request->staged)
        return co_staged_order(request, queue);
    if (request->nccl)
        return co_nccl_order(request, queue);
    return request->comm->ops->order ? request->comm->ops->order(request, queue) : CO_OK;
}

/* Report the failure of this rank's device to all ranks. */
static co_status request_fail_fence(co_comm *comm, co_status st)
{
    co_nccl_abort(comm);
    comm->ops->fail(comm, comm->rank, st, co_error_message());
    return st;
}

static co_status request_fence_late(co_comm *comm, const co_fence *fence, uint64_t waited_ns)
{
    char more[2 * CO_COMM_DESCRIBE_MAX];

    return co_fail(CO_E_TIMEOUT, "rank %d: the device %s has not done its work after %llu ms%s",
                   comm->rank, co_device_name(fence->device),
                   (unsigned long long)(waited_ns / 1000000),
                   co_nccl_describe_replay(more, sizeof(more), comm));
}

co_status co_comm_wait_fence(co_comm *comm, const co_fence *fence)
{
    const uint64_t limit_ns = (uint64_t)comm->timeout_ms * 1000000, start_ns = co_clock_ns();
    bool reached = false;

    for (;;) {
        const co_status st = co_fence_reached(&reached, fence);
        const uint64_t waited_ns = co_clock_ns() - start_ns;

        if (st != CO_OK)
            return request_fail_fence(comm, st);
        if (reached)
            return CO_OK;
        CO_TRY(co_comm_progress(comm));
        if (waited_ns >= limit_ns)
            return request_fail_fence(comm, request_fence_late(comm, fence, waited_ns));
        request_back_off(comm, waited_ns, waited_ns);
    }
}
