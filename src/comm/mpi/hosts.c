/*
 * hosts.c - finds which ranks of an MPI world share a host, and the memory they share.
 *
 * If all ranks are on one host, MPI only starts them, and operations use shared memory. Every rank
 * must come to the same conclusion here, or one would wait for another over a different transport.
 * Does not know how data is moved.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/mpi/internal.h"
#include "comm/mpi/mpi.h"
#include "comm/shm/shm.h"
#include "comm/watch.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/open.h"

#define HOST_ENV "COHORT_RANKS_PER_HOST"

/* Of the running system and the name it goes by, so that containers with names of their own count
   as hosts. Not what MPI_COMM_TYPE_SHARED says: MPICH 5.0.2 of Debian takes each rank for a host.
 */
static uint64_t host_id(void)
{
    char boot[64] = "", name[256] = "";
    FILE *file = co_open_system("/proc/sys/kernel/random/boot_id");

    if (file) {
        if (!fgets(boot, sizeof(boot), file))
            boot[0] = '\0';
        fclose(file);
    }
    (void)gethostname(name, sizeof(name) - 1);
    return co_hash(co_hash(CO_HASH, boot, sizeof(boot)), name, sizeof(name));
}

/* *out: the first rank of the same host; *before: how many ranks of it come before this one. */
static co_status host_first(int *out, int *before, mpi_communicator world)
{
    const uint64_t mine = host_id();
    uint64_t *ids;
    int rank, size, code;

    *before = 0;
    co_mpi->comm_rank(world, &rank);
    co_mpi->comm_size(world, &size);
    if (!(ids = co_calloc((size_t)size, sizeof(*ids))))
        return CO_E_NOMEM;
    ids[rank] = mine;
    code = co_mpi->allreduce(co_mpi->in_place, ids, size, co_mpi->u64, co_mpi->sum, world);
    *out = rank;
    for (int i = rank - 1; code == co_mpi->success && i >= 0; i--) {
        if (ids[i] == mine) {
            *out = i;
            (*before)++;
        }
    }
    co_free(ids);
    return co_mpi_check(code, "finding hosts");
}

co_status co_mpi_test_number(int *out, const char *variable, int least)
{
    const char *text = getenv(variable);

    *out = text ? atoi(text) : 0;
    if (text && *out < least)
        return co_fail(CO_E_USAGE, "%s: '%s'; give %d or more, or leave it unset", variable, text,
                       least);
    return CO_OK;
}

/* Ranks of this host in world order. For tests, every K of them may count as a host. */
static co_status host_find(mpi_communicator *out, mpi_communicator world)
{
    mpi_communicator all;
    int each, first, before, code;

    CO_TRY(co_mpi_test_number(&each, HOST_ENV, 1));
    CO_TRY(host_first(&first, &before, world));
    CO_TRY(co_mpi_check(co_mpi->comm_split(world, first, 0, &all), "finding hosts"));
    if (each == 0) {
        *out = all;
        return CO_OK;
    }
    code = co_mpi->comm_split(all, before / each, 0, out);
    co_mpi->comm_free(&all);
    return co_mpi_check(code, "finding hosts");
}

static co_status host_sum(int *total, mpi_communicator comm, int mine)
{
    return co_mpi_check(co_mpi->allreduce(&mine, total, 1, co_mpi->i32, co_mpi->sum, comm),
                        "counting hosts");
}

/* Whether every host has only one rank. */
static bool host_is_apart(const mpi_comm *c)
{
    return c->host.hosts == c->base.size && c->base.size > 1;
}

/* One rank creates the memory and the others join it; failures are reported in *why only. */
static co_status host_share(mpi_host *h, mpi_communicator host, int rank, int size,
                            const char **why)
{
    co_shm_address address = {.region = -1};

    *why = "";
    if (rank == 0 && co_shm_create_open(&h->shm, &address, size) != CO_OK)
        *why = co_error_message();
    CO_TRY(
        co_mpi_check(co_mpi->bcast(&address, sizeof(address), co_mpi->u8, 0, host), "an address"));
    if (rank > 0 && address.region < 0)
        return CO_OK; /* rank 0 could not create it */
    if (rank > 0 && co_shm_join(&h->shm, &address, size) != CO_OK)
        *why = co_error_message();
    return CO_OK;
}

static co_status host_open(mpi_comm *c, mpi_communicator host)
{
    const char *why;
    int rank, size, good;

    co_mpi->comm_rank(host, &rank);
    co_mpi->comm_size(host, &size);
    CO_TRY(host_sum(&c->host.hosts, c->check, rank == 0));
    if (host_is_apart(c))
        return CO_OK;
    CO_TRY(host_share(&c->host, host, rank, size, &why));
    if (*why)
        co_log(CO_LOG_WARN, "ranks of this host talk over MPI alone, which is slower: %s", why);
    CO_TRY(host_sum(&good, c->check, c->host.shm != NULL));
    if (good < c->base.size)
        return CO_OK;
    CO_TRY(co_shm_attach(&c->host.ranks, c->host.shm, rank));
    co_watch_attach(c->host.ranks, c->host.ranks->watch, c->world_rank);
    c->base.watch = c->host.ranks->watch;
    if (size == c->base.size) {
        co_mpi_hand_over(c);
        return CO_OK;
    }
    /* The rank's watch records operations of the world; those on the host are run by the progress
       thread. */
    c->host.ranks->watch = NULL;
    CO_TRY(co_comm_split(&c->host.spread, c->host.ranks, 0, 0));
    if (size == 1)
        return CO_OK;
    CO_TRY(co_comm_split(&c->host.local, c->host.ranks, 0, 0));
    c->host.local->watch = c->base.watch; /* the rank itself waits on this one */
    return CO_OK;
}

/* For messages. Each rank adds its name where the others have zeros. */
static co_status host_names(mpi_comm *c)
{
    const int words = c->base.size * CO_MPI_NAME_WORDS;

    c->names = co_calloc((size_t)c->base.size, sizeof(*c->names));
    if (!c->names)
        return CO_E_NOMEM;
    (void)gethostname((char *)c->names[c->base.rank], sizeof(*c->names) - 1);
    return co_mpi_check(
        co_mpi->allreduce(co_mpi->in_place, c->names, words, co_mpi->u64, co_mpi->sum, c->check),
        "naming hosts");
}

void co_mpi_add_host(char *out, size_t size, const mpi_comm *c, int rank)
{
    const size_t used = strlen(out);

    if (c->names)
        snprintf(out + used, size - used, " (%s)", (const char *)c->names[rank]);
}

co_status co_mpi_host_open(mpi_comm *c)
{
    mpi_communicator host;
    co_status st;

    CO_TRY(host_names(c));
    CO_TRY(host_find(&host, c->check));
    st = host_open(c, host);
    co_mpi->comm_free(&host);
    return st;
}

/* Communicators of this host's ranks that belong to the new communicator. If there is no room for
   more, no host uses any. */
static co_status host_split(mpi_host *h, const mpi_comm *part, co_comm *ranks, int color, int key)
{
    co_status st = co_comm_split(&h->ranks, ranks, color, key);

    if (st == CO_OK && part && h->ranks && h->ranks->size < part->base.size)
        st = co_comm_split(&h->spread, h->ranks, 0, 0);
    return st == CO_E_USAGE ? CO_OK : st;
}

static void host_close(mpi_host *h)
{
    co_comm_destroy(h->local);
    co_comm_destroy(h->spread);
    co_comm_destroy(h->ranks);
    co_shm_destroy(h->shm);
    *h = (mpi_host){.hosts = h->hosts};
}

co_status co_mpi_host_split(mpi_comm *part, mpi_comm *c, int color, int key)
{
    mpi_host own = {.hosts = 0}, *h = part ? &part->host : &own;
    bool whole;
    int good;

    if (!c->host.ranks)
        return CO_OK;
    CO_TRY(host_split(h, part, c->host.ranks, color, key));
    if (!part)
        return CO_OK;
    whole = h->ranks && h->ranks->size == part->base.size;
    CO_TRY(host_sum(&h->hosts, part->check, h->ranks && h->ranks->rank == 0));
    CO_TRY(host_sum(&good, part->check, whole || h->spread));
    if (good < part->base.size || host_is_apart(part))
        host_close(h);
    else if (whole)
        co_mpi_hand_over(part);
    return CO_OK;
}

struct co_watch *co_mpi_watch(const co_comm *comm, int i)
{
    const mpi_host *h = &((const mpi_comm *)comm)->host;

    return h->ranks && i < h->ranks->size ? co_shm_watch(h->shm, i) : NULL;
}

void co_mpi_host_close(mpi_comm *c)
{
    host_close(&c->host);
}
