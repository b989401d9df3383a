/* parts.c - slices of equal size but for the last one, which ends with what is left over. */
#include "strategy/parts.h"

#include <string.h>

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

    if (ranks == 1)
        return CO_OK;
    memcpy(slice, store->param + strategy->update_begin, room * sizeof(float));
    CO_TRY(co_comm_allgather(comm, store->param, slice, room, CO_F32));
    return co_comm_bcast(comm, store->param + whole, store->n - whole, CO_F32, ranks - 1);
}
