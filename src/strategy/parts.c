/* parts.c - slices of equal size but for the last one, which ends with what is left over. */
#include "strategy/parts.h"

#include "comm/queued.h"
#include "tensor/store.h"

void co_parts_divide(co_strategy *strategy, co_comm *comm)
{
    const size_t n = strategy->store->n;
    const int rank = co_comm_rank(comm), ranks = co_comm_size(comm);

    strategy->divided = comm;
    strategy->update_begin = co_store_slice(n, rank, ranks);
    strategy->update_end = co_store_slice(n, rank + 1, ranks);
}

size_t co_parts_room(const co_strategy *strategy)
{
    return co_store_slice(strategy->store->n, 1, co_comm_size(strategy->divided));
}

co_status co_parts_gather(const co_strategy *strategy, float *slice)
{
    co_comm *comm = strategy->divided;
    const co_store *store = strategy->store;
    const int ranks = co_comm_size(comm);
    const size_t room = co_parts_room(strategy), whole = room * (size_t)ranks;
    const co_coll_args gather = {.coll = CO_COLL_ALLGATHER,
                                 .in = slice,
                                 .out = store->param,
                                 .count = room,
                                 .dtype = CO_F32,
                                 .queue = store->queue};
    const co_coll_args rest = {.coll = CO_COLL_BCAST,
                               .in = store->param + whole,
                               .out = store->param + whole,
                               .count = store->n - whole,
                               .dtype = CO_F32,
                               .peer = ranks - 1,
                               .queue = store->queue};

    if (ranks == 1)
        return CO_OK;
    store->vector->copy(store->queue, slice, store->param + strategy->update_begin, room);
    CO_TRY(co_comm_enqueue_run(comm, &gather));
    return co_comm_enqueue_run(comm, &rest);
}
