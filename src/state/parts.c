/* parts.c - copies and gathers arrays of which ranks have parts, or copies of their own. */
#include "state/parts.h"

#include "comm/queued.h"
#include "device/device.h"
#include "tensor/store.h"

co_status co_state_copy_parts(float *to, const float *from, const co_state_source *source)
{
    const int rank = co_comm_rank(co_distributed_dividers(source->distributed));
    size_t begin, end;

    for (size_t i = 0; co_distributed_part(&begin, &end, source->distributed, rank, i); i++)
        CO_TRY(co_queue_copy(source->store->queue, to + begin, from + begin,
                             (end - begin) * sizeof(float)));
    return CO_OK;
}

/* n floats, which may be on a device, to rank 0, which takes them in memory of the host. */
static co_status parts_send(co_comm *comm, const float *x, size_t n, co_queue *queue)
{
    const co_coll_args args = {
        .coll = CO_COLL_SEND, .in = x, .count = n, .dtype = CO_F32, .queue = queue};

    return co_comm_enqueue_run(comm, &args);
}

co_status co_state_gather_parts(float *to, const float *live, const co_state_source *source, int r)
{
    co_comm *near = co_distributed_dividers(source->distributed);
    size_t begin, end;

    for (size_t i = 0; co_distributed_part(&begin, &end, source->distributed, r, i); i++) {
        if (co_comm_rank(near) == r)
            CO_TRY(parts_send(near, live + begin, end - begin, source->store->queue));
        if (to && co_comm_rank(near) == 0)
            CO_TRY(co_comm_recv(near, to + begin, end - begin, CO_F32, r));
    }
    return CO_OK;
}

co_status co_state_gather_copies(float *to, const co_state_source *source, const float *live,
                                 size_t n)
{
    const co_coll_args args = {.coll = CO_COLL_GATHER,
                               .in = live,
                               .out = to,
                               .count = n,
                               .dtype = CO_F32,
                               .queue = source->store->queue};

    return co_comm_enqueue_run(source->comm, &args);
}
