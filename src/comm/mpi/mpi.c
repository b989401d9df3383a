/*
 * mpi.c - a communicator over MPI: creation, and operations in posting order. If all ranks are on
 * one host, one_host.c takes over.
 *
 * Each collective first compares descriptors (agree.c), so that a mismatch is an error and not
 * undefined behaviour. Then collectives.c moves the data, or pipeline.c for all-reduces. A
 * message is a header, checked by the receiver, followed by its data.
 */
#include <stdio.h>
#include <string.h>

#include "comm/mpi/internal.h"
#include "comm/mpi/mpi.h"
#include "comm/transports.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/plural.h"

#define CO_MPI_HEADER ((int)sizeof(co_coll_descriptor))

co_status co_mpi_check(int code, const char *what)
{
    char text[512];

    if (code == co_mpi->success)
        return CO_OK;
    (void)co_mpi->error_string(code, text, sizeof(text));
    return co_fail(CO_E_FAILED, "MPI failed in %s: %s", what, text);
}

/* ---- posting ---- */

static co_status mpi_start_collective(mpi_comm *c, mpi_request *r)
{
    r->descriptor = co_comm_descriptor(&r->link.base.args, c->sequence++);
    co_comm_queue_push(&c->collectives, &r->link);
    return co_mpi_agree_begin(c, r);
}

static co_status mpi_start_message(mpi_comm *c, mpi_request *r)
{
    const co_coll_args *args = &r->link.base.args;
    int code;

    r->descriptor = co_comm_descriptor(args, 0);
    c->pending++;
    if (args->coll == CO_COLL_SEND) {
        co_comm_queue_push(&c->sends[args->peer], &r->link);
        code = co_mpi->isend(&r->descriptor, CO_MPI_HEADER, co_mpi->u8, args->peer,
                             CO_MPI_TAG_HEADER, c->data, &r->check);
    } else {
        co_comm_queue_push(&c->receives[args->peer], &r->link);
        code = co_mpi->irecv(&r->header, CO_MPI_HEADER, co_mpi->u8, args->peer, CO_MPI_TAG_HEADER,
                             c->data, &r->check);
    }
    return co_mpi_check(code, "a message's header");
}

/* ---- progress ---- */

/* Move the pieces one after another, each in one stage or two. */
static co_status mpi_move(mpi_comm *c, mpi_request *r, size_t elements)
{
    int arrived;
    bool ended;

    while (r->moved < elements) {
        if (r->data == co_mpi->no_transfer)
            CO_TRY(co_mpi_start_piece(c, r));
        CO_TRY(co_mpi_check(co_mpi->test(&r->data, &arrived),
                            co_comm_coll_name(r->link.base.args.coll)));
        if (!arrived)
            return CO_OK;
        c->arrivals++;
        CO_TRY(co_mpi_end_stage(&ended, c, r));
        r->moved += ended ? r->piece : 0;
    }
    co_mpi_finish_data(c, &r->link.base.args);
    return CO_OK;
}

/* Advance the oldest request of its queue; *done: it is complete. */
static co_status mpi_advance(bool *done, mpi_comm *c, mpi_request *r)
{
    const size_t elements = co_mpi_elements(c, &r->link.base.args);

    CO_TRY(co_mpi_compare(done, c, r));
    if (!*done)
        return CO_OK;
    if (co_mpi_is_piped(c, &r->link.base.args))
        CO_TRY(co_mpi_pipe_progress(c));
    else
        CO_TRY(mpi_move(c, r, elements));
    *done = r->moved == elements;
    return CO_OK;
}

static co_status mpi_advance_queue(mpi_comm *c, co_comm_queue *queue, int *pending)
{
    while (queue->head) {
        co_comm_link *link;
        bool done;

        CO_TRY(mpi_advance(&done, c, (mpi_request *)queue->head));
        if (!done)
            return CO_OK;
        link = queue->head;
        co_comm_queue_pop(queue);
        co_comm_queue_push(&c->finished, link);
        if (pending)
            (*pending)--;
    }
    return CO_OK;
}

co_status co_mpi_advance(mpi_comm *c)
{
    if (c->cause.status != CO_OK)
        return co_comm_cause_fail(&c->cause, c->world_rank);
    CO_TRY(co_mpi_agree_ahead(c));
    CO_TRY(mpi_advance_queue(c, &c->collectives, NULL));
    for (int p = 0; c->pending && p < c->base.size; p++) {
        CO_TRY(mpi_advance_queue(c, &c->sends[p], &c->pending));
        CO_TRY(mpi_advance_queue(c, &c->receives[p], &c->pending));
    }
    if (c->collectives.head)
        CO_TRY(co_mpi_note_waiting(c, (mpi_request *)c->collectives.head));
    return CO_OK;
}

static co_status mpi_progress(co_comm *comm)
{
    mpi_comm *c = (mpi_comm *)comm;
    co_status st;

    co_mpi_lock();
    st = co_mpi_advance(c);
    /* Not done by the progress thread, because the thread that reads `done` also reads the received
       data. */
    for (; c->finished.head; co_comm_queue_pop(&c->finished))
        c->finished.head->base.done = true;
    comm->arrivals = c->arrivals;
    co_mpi_unlock();
    return st;
}

static co_status mpi_start(mpi_comm *c, mpi_request *r)
{
    const co_coll_args *args = &r->link.base.args;
    co_status st;

    co_mpi_lock();
    if (c->cause.status != CO_OK)
        st = co_comm_cause_fail(&c->cause, c->world_rank);
    else if (args->coll == CO_COLL_SEND || args->coll == CO_COLL_RECV)
        st = mpi_start_message(c, r);
    else
        st = mpi_start_collective(c, r);
    if (st == CO_OK)
        co_mpi_progress_thread_post(c, args);
    co_mpi_unlock();
    return st;
}

static co_status mpi_post(co_request **out, co_comm *comm, const co_coll_args *args)
{
    mpi_comm *c = (mpi_comm *)comm;
    mpi_request *r;

    r = co_comm_take_request(comm, sizeof(*r), args);
    if (!r)
        return CO_E_NOMEM;
    r->check = r->data = co_mpi->no_transfer;
    *out = &r->link.base;
    return mpi_start(c, r);
}

static void mpi_describe_wait(const co_request *request, char *out, size_t size)
{
    mpi_comm *c = (mpi_comm *)request->comm;
    const mpi_request *r;
    const char *name = co_comm_coll_name(request->args.coll), *begun = "";
    char ranks[CO_COMM_CAUSE_SIZE / 4] = "";
    int n = 0;

    co_mpi_lock();
    r = (const mpi_request *)c->collectives.head;
    if (request->args.coll == CO_COLL_SEND || request->args.coll == CO_COLL_RECV) {
        co_comm_list_rank(ranks, sizeof(ranks), &n, request->args.peer);
        co_mpi_add_host(ranks, sizeof(ranks), c, request->args.peer);
    } else if (r) {
        begun = ((const mpi_request *)request)->checked ? ", which all ranks have begun" : "";
        co_mpi_read_notes(c);
        for (int p = 0; p < c->base.size; p++)
            if (p != c->base.rank && c->waiting[p] <= r->descriptor.sequence) {
                co_comm_list_rank(ranks, sizeof(ranks), &n, p);
                co_mpi_add_host(ranks, sizeof(ranks), c, p);
            }
    }
    co_mpi_unlock();
    if (n == 0)
        snprintf(out, size, "waiting in %s%s", name, begun);
    else
        snprintf(out, size, "waiting in %s for rank%s%s%s", name, co_plural((uint64_t)n), ranks,
                 begun);
}

static void mpi_tell_saving(co_comm *comm)
{
    mpi_comm *c = (mpi_comm *)comm;

    co_mpi_lock();
    if (c->cause.status == CO_OK)
        co_mpi_note_saving(c);
    co_mpi_unlock();
}

static bool mpi_is_saving(const co_request *request)
{
    mpi_comm *c = (mpi_comm *)request->comm;
    const mpi_request *r;
    uint32_t next;
    bool saving = false;

    co_mpi_lock();
    co_mpi_read_notes(c);
    r = (const mpi_request *)c->collectives.head;
    next = r ? r->descriptor.sequence + 1 : c->sequence + 1;
    for (int p = 0; p < c->base.size; p++)
        saving = saving || co_mpi_saves(c, p, next);
    co_mpi_unlock();
    return saving;
}

/* A collective in flight cannot be cancelled, so its memory must stay allocated. That happens only
   if the communicator is dead, so near the end of the process. */
static void mpi_destroy_request(co_request *request)
{
    if (request->done)
        co_comm_give_request(request);
}

/* ---- the communicator ---- */

static void mpi_fail(co_comm *comm, int rank, co_status status, const char *cause)
{
    mpi_comm *c = (mpi_comm *)comm;

    (void)rank; /* other ranks do not see this record */
    co_mpi_lock();
    if (c->cause.status == CO_OK)
        co_comm_cause_set(&c->cause, c->world_rank, status, cause);
    co_mpi_unlock();
}

void co_mpi_abort(co_comm *comm, co_status status, const char *cause)
{
    const mpi_comm *c = (const mpi_comm *)comm;
    co_mpi_limit limit;

    co_log(CO_LOG_ERROR, "rank %d failed: %s", c->world_rank, cause);
    co_log_wait_read(1000);
    co_mpi_end_launcher();
    /* MPICH's asks mpiexec to end the job and waits for an answer; its host may be gone. */
    co_mpi_limit_begin(&limit, "MPI_Abort", CO_MPI_END_MS, co_exit_code(status));
    co_mpi_lock(); /* never unlocked */
    co_mpi->abort(co_mpi->world, co_exit_code(status));
    co_mpi_limit_end(&limit);
}

static bool mpi_is_alive(const mpi_comm *c)
{
    return c->host.whole ? c->host.ranks->ops->progress(c->host.ranks) == CO_OK
                         : c->cause.status == CO_OK;
}

/* Freeing is collective, so a dead communicator's MPI objects are leaked. */
void co_mpi_destroy(co_comm *comm)
{
    mpi_comm *c = (mpi_comm *)comm;
    bool finalized = false, alive;
    co_mpi_limit limit;

    co_mpi_progress_thread_close(c);
    co_mpi->finalized(&finalized);
    alive = mpi_is_alive(c) && !finalized;
    co_mpi_lock();
    co_mpi_limit_begin(&limit, "freeing a communicator", comm->timeout_ms,
                       co_exit_code(CO_E_TIMEOUT));
    co_mpi_pipe_close(c, alive);
    if (alive) {
        co_mpi_read_last_notes(c);
        co_mpi->comm_free(&c->check);
        co_mpi->comm_free(&c->data);
        co_mpi_ops_free(c);
        co_mpi_tree_free(c); /* of a dead one, MPI may still write to the buffers */
    }
    co_mpi_limit_end(&limit);
    co_mpi_host_close(c);
    co_mpi_unlock();
    co_free(c->sends);
    co_free(c->receives);
    co_free(c->waiting);
    co_free(c->saving_until_ns);
    co_free(c->names);
    co_free(c);
}

/* Takes ownership of `check`. */
static co_status mpi_open(co_comm **out, mpi_communicator check)
{
    mpi_comm *c = co_calloc(1, sizeof(*c));
    size_t size;

    if (!c)
        return CO_E_NOMEM;
    c->base = (co_comm){.ops = &co_transport_mpi, .timeout_ms = CO_COMM_TIMEOUT_MS};
    c->check = check;
    co_mpi->comm_rank(check, &c->base.rank);
    co_mpi->comm_size(check, &c->base.size);
    co_mpi->comm_rank(co_mpi->world, &c->world_rank);
    size = (size_t)c->base.size;
    c->sends = co_calloc(size, sizeof(*c->sends));
    c->receives = co_calloc(size, sizeof(*c->receives));
    c->waiting = co_calloc(2 * size, sizeof(*c->waiting));
    c->saving_until_ns = co_calloc(size, sizeof(*c->saving_until_ns));
    *out = &c->base;
    if (!c->sends || !c->receives || !c->waiting || !c->saving_until_ns)
        return CO_E_NOMEM;
    c->saving = c->waiting + size;
    CO_TRY(co_mpi_ops_create(c));
    return co_mpi_check(co_mpi->comm_dup(check, &c->data), "making a communicator");
}

static co_status mpi_split_locked(co_comm **out, mpi_comm *c, int color, int key)
{
    mpi_communicator part;

    CO_TRY(co_mpi_check(co_mpi->comm_split(c->check, color, key, &part), "split"));
    if (color >= 0)
        CO_TRY(mpi_open(out, part));
    CO_TRY(co_mpi_host_split((mpi_comm *)*out, c, color, key));
    return *out ? co_mpi_pipe_open((mpi_comm *)*out) : CO_OK;
}

static co_status mpi_split_any(co_comm **out, co_comm *comm, int color, int key)
{
    co_mpi_limit limit;
    co_status st;

    /* Compares descriptors, too: afterwards all ranks are in the same call. */
    CO_TRY(co_comm_run(comm, &(co_coll_args){.coll = CO_COLL_SPLIT}));
    co_mpi_lock();
    co_mpi_limit_begin(&limit, "making a communicator", comm->timeout_ms,
                       co_exit_code(CO_E_TIMEOUT));
    st = mpi_split_locked(out, (mpi_comm *)comm, color, key);
    co_mpi_limit_end(&limit);
    co_mpi_unlock();
    return st;
}

/* Leaks what is half made, since freeing is collective. */
co_status co_mpi_split(co_comm **out, co_comm *comm, int color, int key)
{
    const co_status st = mpi_split_any(out, comm, color, key);

    if (st != CO_OK)
        *out = NULL;
    return st;
}

void co_mpi_set_timeout(co_comm *comm)
{
    const mpi_comm *c = (const mpi_comm *)comm;

    if (c->host.ranks)
        c->host.ranks->timeout_ms = comm->timeout_ms;
    if (c->host.spread)
        c->host.spread->timeout_ms = comm->timeout_ms;
    if (c->host.local)
        c->host.local->timeout_ms = comm->timeout_ms;
}

static co_comm *mpi_local(co_comm *comm)
{
    return ((mpi_comm *)comm)->host.local;
}

void *co_mpi_alloc(co_comm *comm, size_t bytes)
{
    co_comm *ranks = ((mpi_comm *)comm)->host.ranks;
    void *data = NULL;

    co_mpi_lock();
    if (ranks)
        data = ranks->ops->alloc(ranks, bytes);
    co_mpi_unlock();
    return data;
}

bool co_mpi_free(co_comm *comm, void *data, size_t bytes)
{
    co_comm *ranks = ((mpi_comm *)comm)->host.ranks;
    bool is_ours;

    co_mpi_lock();
    is_ours = ranks && ranks->ops->free(ranks, data, bytes);
    co_mpi_unlock();
    return is_ours;
}

static bool mpi_probe(const char **why)
{
    return co_mpi_available(why);
}

const co_comm_ops co_transport_mpi = {
    .name = "mpi",
    .summary = "ranks on many machines, started by mpiexec or srun",
    .polled = true,
    .hosts = true,
    .probe = mpi_probe,
    .post = mpi_post,
    .progress = mpi_progress,
    .describe_wait = mpi_describe_wait,
    .tell_saving = mpi_tell_saving,
    .is_saving = mpi_is_saving,
    .destroy_request = mpi_destroy_request,
    .split = co_mpi_split,
    .set_timeout = co_mpi_set_timeout,
    .slice_index = co_mpi_slice_index,
    .local = mpi_local,
    .alloc = co_mpi_alloc,
    .free = co_mpi_free,
    .fail = mpi_fail,
    .abort = co_mpi_abort,
    .destroy = co_mpi_destroy,
};

static co_status mpi_create(co_comm **out)
{
    mpi_communicator world;
    co_status st;

    CO_TRY(co_mpi_check(co_mpi->comm_dup(co_mpi->world, &world), "making a communicator"));
    st = mpi_open(out, world);
    if (st == CO_OK)
        st = co_mpi_host_open((mpi_comm *)*out);
    if (st == CO_OK)
        st = co_mpi_pipe_open((mpi_comm *)*out);
    if (st == CO_OK)
        st = co_mpi_progress_thread_open((mpi_comm *)*out);
    return st;
}

co_status co_comm_create_mpi(co_comm **out, uint32_t timeout_ms)
{
    co_mpi_limit limit;
    co_status st;

    *out = NULL;
    timeout_ms = timeout_ms ? timeout_ms : CO_COMM_TIMEOUT_MS;
    CO_TRY(co_mpi_init(timeout_ms));
    co_mpi_limit_begin(&limit, "making a communicator", timeout_ms, co_exit_code(CO_E_TIMEOUT));
    st = mpi_create(out);
    co_mpi_limit_end(&limit);
    if (st != CO_OK)
        *out = NULL; /* leaked, as in co_mpi_split */
    return st;
}
