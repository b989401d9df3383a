/*
 * launch.c - starts ranks as a rank of an MPI world, as child processes, as threads or in this
 * process, and runs one.
 */
#include <cohort/launch.h>

#include <stdlib.h>
#include <unistd.h>

#include <cohort/ext/comm.h>

#include "comm/mpi/mpi.h"
#include "comm/watch.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/plural.h"
#include "core/sized.h"
#include "core/status.h"
#include "core/thread.h"
#include "launch/crash_handler.h"
#include "launch/root.h"
#include "launch/supervise.h"

#define MAX_RANKS 1024

/* A number from the first of these environment variables that is set; -1: none. */
static int launch_env(const char *const *names)
{
    for (; *names; names++) {
        const char *text = getenv(*names);

        if (text && *text)
            return atoi(text);
    }
    return -1;
}

bool co_launch_under_mpi(void)
{
    /* Open MPI, MPICH and Intel MPI, Slurm's own PMI. srun sets SLURM_PROCID for every job step,
       batch scripts too, so only its PMI variables count. */
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", NULL};

    return launch_env(names) >= 0;
}

bool co_launch_is_root(void)
{
    /* Open MPI, PMIx (srun), MPICH and Intel MPI. */
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", NULL};

    return !co_launch_under_mpi() || launch_env(names) <= 0;
}

/* Bind before the rank allocates memory, which is placed near the core that first touches it. */
static co_status launch_bind(const co_launch_options *options, int local_rank, int local_ranks)
{
    int cores;

    return options->bind && local_ranks > 1 ? co_thread_bind_share(&cores, local_rank, local_ranks)
                                            : CO_OK;
}

static co_status launch_prepare(co_comm *comm, const co_launch_options *options)
{
    co_log_set_rank(co_comm_rank(comm) > 0 ? co_comm_rank(comm) : -1);
    return options->timeout_ms ? co_comm_set_timeout(comm, options->timeout_ms) : CO_OK;
}

static co_status launch_attach(co_comm **comm, const co_launch_options *options, co_shm *shm,
                               int rank)
{
    if (options->ranks > 1)
        return co_shm_attach(comm, shm, rank);
    CO_TRY(co_comm_create_self(comm));
    co_watch_attach(*comm, co_shm_watch(shm, 0), 0);
    return CO_OK;
}

/* Ensures that a failure has a message. */
static co_status launch_call(co_rank_fn fn, co_comm *comm, void *arg)
{
    const uint64_t before = co_fail_count();
    const co_status st = fn(comm, arg);

    if (st == CO_OK || co_fail_count() != before)
        return st;
    return co_fail(st, "it failed without saying why (co_fail)");
}

co_status co_rank_run(const co_launch_options *options, co_shm *shm, int rank, co_rank_fn fn,
                      void *arg)
{
    co_comm *comm = NULL;
    co_status st = launch_bind(options, rank, options->ranks);

    if (st == CO_OK)
        st = launch_attach(&comm, options, shm, rank);
    if (st == CO_OK)
        st = launch_prepare(comm, options);
    if (st == CO_OK)
        st = launch_call(fn, comm, arg);
    if (st == CO_OK)
        co_watch_go(co_shm_watch(shm, rank), CO_WATCH_LEFT);
    else
        co_shm_abort(shm, rank, st, co_error_message());
    co_log_set_tail(NULL);
    co_comm_destroy(comm);
    return st;
}

/* mpiexec binds ranks by its own rules, unless told not to or oversubscribed. */
static bool launch_bound_already(void)
{
    return co_thread_cores() < (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* The launcher of one MPI and the library of another make many worlds of one rank each. */
static co_status launch_check_world(const co_comm *comm)
{
    static const char *const world[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", NULL};
    const int started = launch_env(world);

    if (started < 1 || started == co_comm_size(comm))
        return CO_OK;
    return co_fail(
        CO_E_USAGE,
        "%d ranks were started, and MPI knows of %d: mpiexec and the MPI in use are not "
        "of one kind; set COHORT_MPI to the kind of mpiexec (openmpi, mpich), or unset it",
        started, co_comm_size(comm));
}

static co_status launch_mpi_rank(co_comm *comm, const co_launch_options *options, co_rank_fn fn,
                                 void *arg)
{
    static const char *const local_rank[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                             "SLURM_LOCALID", NULL};
    static const char *const local_size[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", NULL};
    int index = launch_env(local_rank), count = launch_env(local_size);

    CO_TRY(launch_check_world(comm));
    if (options->ranks && options->ranks != co_comm_size(comm))
        return co_fail(CO_E_USAGE, "%d rank%s asked for, but mpiexec has started %d; leave out -n",
                       options->ranks, co_plural((uint64_t)options->ranks), co_comm_size(comm));
    if (index < 0 || count <= index || launch_bound_already())
        count = 1;
    CO_TRY(launch_bind(options, index, count));
    CO_TRY(launch_prepare(comm, options));
    return launch_call(fn, comm, arg);
}

static co_status launch_mpi(const co_launch_options *options, co_rank_fn fn, void *arg)
{
    co_comm *comm = NULL;
    co_watch *watch = NULL;
    co_status st;

    CO_TRY(co_comm_create_mpi(&comm, options->timeout_ms));
    if (!comm->watch) { /* not shared with other processes */
        watch = co_calloc_aligned(1, sizeof(*watch));
        if (watch)
            co_watch_attach(comm, watch, co_comm_rank(comm));
    }
    st = CO_E_NOMEM;
    if (comm->watch) {
        st = co_crash_handler_install(comm->watch, 1);
        if (st == CO_OK)
            st = launch_mpi_rank(comm, options, fn, arg);
    }
    if (st != CO_OK)
        co_comm_abort(comm, st, co_error_message());
    else
        co_watch_go(comm->watch, CO_WATCH_LEFT);
    (void)co_crash_handler_install(NULL, 0);
    co_log_set_tail(NULL);
    co_comm_destroy(comm);
    co_free(watch);
    co_mpi_finalize(co_exit_code(st));
    return st;
}

static co_status launch_here(const co_launch_options *options, co_rank_fn fn, void *arg)
{
    co_comm *comm = NULL;
    co_status st;

    CO_TRY(co_comm_create_self(&comm));
    st = launch_prepare(comm, options);
    if (st == CO_OK)
        st = launch_call(fn, comm, arg);
    co_comm_destroy(comm);
    return st;
}

CO_SIZED_END(co_launch_options, timeout_ms);

co_status co_launch_sized(const co_launch_options *given, size_t size, co_rank_fn fn, void *arg)
{
    co_launch_options options;

    CO_TRY(CO_SIZED_READ(&options, given, size, co_launch_options));
    return co_launch_with(&options, NULL, fn, arg);
}

co_status co_launch_with(const co_launch_options *options, const co_launch_policy *policy,
                         co_rank_fn fn, void *arg)
{
    co_launch_options o = *options;

    if (!fn)
        return co_fail(CO_E_USAGE, "launch: the function of a rank is missing (NULL)");
    if (o.ranks < 0 || o.ranks > MAX_RANKS)
        return co_fail(CO_E_USAGE, "%d ranks: give 1 to %d", o.ranks, MAX_RANKS);
    if (co_launch_under_mpi())
        return launch_mpi(&o, fn, arg);
    if (o.ranks == 0)
        o.ranks = 1;
    if (o.fork_one || (o.ranks > 1 && !o.threads))
        return co_supervise(&o, policy, fn, arg);
    return o.ranks > 1 ? co_launch_threads(&o, fn, arg) : launch_here(&o, fn, arg);
}
