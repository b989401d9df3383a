/*
 * request.c - waiting for an operation without burning a core for long, and without forever.
 *
 * Waits are short when ranks are in step: spin first. Then leave the core to whoever can use it,
 * at last sleep for a sixteenth of the time waited so far, so that the sleep adds at most that.
 */
#include <sched.h>
#include <string.h>

#include "comm/comm_internal.h"
#include "core/clock.h"
#include "core/mem.h"

#define REQUEST_SPINS        64
#define REQUEST_SPIN_NS      20000
#define REQUEST_YIELD_NS     1000000
#define REQUEST_SLEEP_MAX_US 1000

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

static void request_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void request_back_off(uint64_t waited_ns)
{
    uint64_t us = waited_ns / 16000;

    if (waited_ns < REQUEST_SPIN_NS)
        request_pause();
    else if (waited_ns < REQUEST_YIELD_NS)
        sched_yield();
    else
        co_clock_sleep_us((uint32_t)(us < REQUEST_SLEEP_MAX_US ? us : REQUEST_SLEEP_MAX_US));
}

/* The first cause wins: of ranks that time out together all report the same. */
static co_status request_time_out(const co_request *request)
{
    co_comm *comm = request->comm;
    char waiting[CO_COMM_CAUSE_SIZE / 2];

    comm->ops->describe_wait(request, waiting, sizeof(waiting));
    co_fail(CO_E_TIMEOUT, "rank %d timed out after %u ms, %s", comm->rank, comm->timeout_ms,
            waiting);
    comm->ops->fail(comm, CO_E_TIMEOUT, co_error_message());
    return comm->ops->progress(comm);
}

co_status co_request_wait(co_request *request)
{
    co_comm *comm = request->comm;
    const uint64_t limit_ns = (uint64_t)comm->timeout_ms * 1000000;
    uint64_t start_ns = 0;

    for (uint64_t spin = 0; !request->done; spin++) {
        uint64_t waited_ns;

        CO_TRY(co_comm_progress(comm));
        if (request->done || spin < REQUEST_SPINS)
            continue;
        if (start_ns == 0)
            start_ns = co_clock_ns();
        waited_ns = co_clock_ns() - start_ns;
        if (waited_ns >= limit_ns)
            return request_time_out(request);
        request_back_off(waited_ns);
    }
    return CO_OK;
}

co_status co_request_test(bool *done, co_request *request)
{
    *done = request->done;
    if (*done)
        return CO_OK;
    CO_TRY(co_comm_progress(request->comm));
    *done = request->done;
    return CO_OK;
}

void co_request_destroy(co_request *request)
{
    if (!request)
        return;
    /* The transport still points to it, so it must never look again. */
    if (!request->done)
        request->comm->ops->fail(request->comm, CO_E_USAGE,
                                 "a request was destroyed before its operation was complete");
    request->comm->ops->destroy_request(request);
}
