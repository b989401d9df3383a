/*
 * agree.c - brings the descriptors of all ranks together, so that each can compare them before data
 * moves: from the ranks of a host to its first, over hosts on the levels of a sum (levels.h), and
 * back to the ranks. (A non-blocking all-reduce of MPI's goes up a tree of all ranks, and down.)
 *
 * Several operations are compared at a time, and each rank continues with those for which messages
 * have come. So messages of a level may overtake each other, and have tags by operation.
 */
#include "comm/mpi/pipeline.h"
#include "core/mem.h"

#define AGREE_AHEAD 8   /* operations that are compared at a time */
#define AGREE_TAGS  64  /* that tell operations apart; more than those */
#define AGREE_TAG   128 /* the first; sum_over_hosts.c has those below */

/* One operation's messages. What they have brought is in the request. */
struct mpi_agree {
    mpi_agree *next; /* in the list of those that are free */
    int stage;       /* 0: within the host; then levels; then within the host */
    int n_transfer, arrived, n_in;
    mpi_transfer *transfer;
    uint64_t (*in)[2 * CO_MPI_FIELDS];
};

static bool agree_is_first(const mpi_comm *c)
{
    return c->pipe->first == c->base.rank;
}

static int agree_last_stage(const mpi_comm *c)
{
    return agree_is_first(c) ? c->pipe->levels + 1 : 0;
}

/* ---- memory ---- */

/* Most messages in each direction that a stage has. */
static size_t agree_room(const mpi_comm *c)
{
    const mpi_pipe *p = c->pipe;
    int most = p->n_member > 1 ? p->n_member : 1;

    for (int k = 0; k < p->levels; k++)
        most = p->group[k].n > most ? p->group[k].n : most;
    return (size_t)most;
}

static co_status agree_take(mpi_agree **out, mpi_comm *c)
{
    const size_t room = agree_room(c);
    mpi_agree *a = c->pipe->spare_agree;

    *out = a;
    if (a) {
        c->pipe->spare_agree = a->next;
        return CO_OK;
    }
    a = co_calloc(1, sizeof(*a) + 2 * room * sizeof(*a->transfer) + room * sizeof(*a->in));
    if (!a)
        return CO_E_NOMEM;
    a->in = (void *)(a + 1);
    a->transfer = (void *)(a->in + room);
    *out = a;
    return CO_OK;
}

static void agree_give(mpi_comm *c, mpi_request *r)
{
    r->agree->next = c->pipe->spare_agree;
    c->pipe->spare_agree = r->agree;
    r->agree = NULL;
}

co_status co_mpi_agree_open(mpi_comm *c)
{
    const co_comm *ranks = c->host.ranks;
    mpi_pipe *p = c->pipe;
    int32_t mine = c->base.rank;

    p->first = c->base.rank;
    if (!ranks)
        return CO_OK;
    p->member = co_calloc((size_t)ranks->size, sizeof(*p->member));
    if (!p->member)
        return CO_E_NOMEM;
    CO_TRY(co_comm_allgather(c->host.ranks, p->member, &mine, 1, CO_I32));
    p->first = p->member[0];
    p->n_member = agree_is_first(c) ? ranks->size : 0;
    return CO_OK;
}

void co_mpi_agree_close(mpi_pipe *p)
{
    while (p->spare_agree) {
        mpi_agree *a = p->spare_agree;

        p->spare_agree = a->next;
        co_free(a);
    }
    co_free(p->member);
}

/* ---- messages ---- */

/* Tags of up to `most` kinds for each operation. */
static int agree_tag(const mpi_request *r, int kind, int most)
{
    return AGREE_TAG + (int)(r->descriptor.sequence % AGREE_TAGS) * most + kind;
}

static co_status agree_send(mpi_request *r, int to, int tag, mpi_communicator comm)
{
    mpi_agree *a = r->agree;

    return co_mpi_check(co_mpi->isend(r->most, 2 * CO_MPI_FIELDS, co_mpi->u64, to, tag, comm,
                                      &a->transfer[a->n_transfer++]),
                        "comparing descriptors");
}

static co_status agree_receive(mpi_request *r, int from, int tag, mpi_communicator comm)
{
    mpi_agree *a = r->agree;

    return co_mpi_check(co_mpi->irecv(a->in[a->n_in++], 2 * CO_MPI_FIELDS, co_mpi->u64, from, tag,
                                      comm, &a->transfer[a->n_transfer++]),
                        "comparing descriptors");
}

/* Within the host: up to its first rank, or down from it. */
static co_status agree_in_host(mpi_comm *c, mpi_request *r, bool down)
{
    const mpi_pipe *p = c->pipe;

    if (!agree_is_first(c)) {
        CO_TRY(agree_receive(r, p->first, agree_tag(r, 1, 2), c->check));
        return agree_send(r, p->first, agree_tag(r, 0, 2), c->check);
    }
    for (int i = 1; i < p->n_member; i++)
        CO_TRY(down ? agree_send(r, p->member[i], agree_tag(r, 1, 2), c->check)
                    : agree_receive(r, p->member[i], agree_tag(r, 0, 2), c->check));
    return CO_OK;
}

static co_status agree_on_level(const mpi_pipe *p, mpi_request *r, int level)
{
    const mpi_group *g = &p->group[level];
    const int tag = agree_tag(r, level, CO_LEVELS_MAX);

    for (int k = 1; k < g->n; k++)
        CO_TRY(agree_receive(r, g->first + (g->me + g->n - k) % g->n * g->stride, tag, p->across));
    for (int k = 1; k < g->n; k++)
        CO_TRY(agree_send(r, g->first + (g->me + k) % g->n * g->stride, tag, p->across));
    return CO_OK;
}

/* ---- stages ---- */

static co_status agree_start(mpi_comm *c, mpi_request *r)
{
    mpi_agree *a = r->agree;

    a->n_transfer = a->arrived = a->n_in = 0;
    if (a->stage == 0 || a->stage > c->pipe->levels)
        return agree_in_host(c, r, a->stage > 0);
    return agree_on_level(c->pipe, r, a->stage - 1);
}

/* The next stage that has messages, or the last one. */
static co_status agree_next(mpi_comm *c, mpi_request *r)
{
    do {
        r->agree->stage++;
        CO_TRY(agree_start(c, r));
    } while (r->agree->n_transfer == 0 && r->agree->stage < agree_last_stage(c));
    return CO_OK;
}

static co_status agree_has_arrived(bool *all, mpi_agree *a)
{
    int there = 1;

    for (; a->arrived < a->n_transfer && there; a->arrived += there)
        CO_TRY(co_mpi_check(co_mpi->test(&a->transfer[a->arrived], &there), "a descriptor"));
    *all = there;
    return CO_OK;
}

static void agree_combine(mpi_request *r)
{
    for (int k = 0; k < r->agree->n_in; k++)
        for (int i = 0; i < 2 * CO_MPI_FIELDS; i++)
            if (r->agree->in[k][i] > r->most[i])
                r->most[i] = r->agree->in[k][i];
}

co_status co_mpi_agree_begin(mpi_comm *c, mpi_request *r)
{
    co_mpi_describe_fields(r->most, &r->descriptor);
    CO_TRY(agree_take(&r->agree, c));
    r->agree->stage = -1;
    return agree_next(c, r);
}

co_status co_mpi_agree_advance(bool *done, mpi_comm *c, mpi_request *r)
{
    for (;;) {
        CO_TRY(agree_has_arrived(done, r->agree));
        if (!*done)
            return CO_OK;
        agree_combine(r);
        if (r->agree->stage == agree_last_stage(c))
            break;
        CO_TRY(agree_next(c, r));
    }
    agree_give(c, r);
    return CO_OK;
}

co_status co_mpi_agree_ahead(mpi_comm *c)
{
    mpi_request *r = (mpi_request *)c->collectives.head;
    bool there;

    while (r && r->checked)
        r = (mpi_request *)r->link.next;
    for (int i = 0; r && i < AGREE_AHEAD; i++) {
        CO_TRY(co_mpi_compare(&there, c, r));
        r = (mpi_request *)r->link.next;
    }
    return CO_OK;
}
