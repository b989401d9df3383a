/*
 * ranks.c - what ranks of a real run have and simulated ones do not: a library of MPI that is
 * chosen at run time, threads of their own, a clock, and cores that move data in shared memory.
 *
 * Defines the functions of src/comm/mpi/load.c, progress_thread.c, limit.c and src/core/clock.c in
 * their place; the linker wraps (--wrap) those that wait, or that take time in shared memory. Ranks
 * take turns in one thread, so one that waits has to sleep, in simulated time, for the others to
 * come. All else of the communicator is what runs on clusters.
 */
#include "simulate/ranks.h"

#include <mpi.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "comm/mpi/internal.h"
#include "core/clock.h"

simulate_options simulate;

/* ---- time ---- */

double simulate_now(void)
{
    return MPI_Wtime();
}

void simulate_sleep(double seconds)
{
    const struct timespec time = {(time_t)seconds,
                                  (long)((seconds - (double)(time_t)seconds) * 1e9)};

    (void)smpi_nanosleep(&time, NULL);
}

co_status simulate_compute(co_comm *comm, double seconds)
{
    while (seconds > 0) {
        const double part = comm && seconds > simulate.look ? simulate.look : seconds;

        simulate_sleep(part);
        seconds -= part;
        if (comm)
            CO_TRY(co_comm_progress(comm));
    }
    return CO_OK;
}

uint64_t co_clock_ns(void)
{
    return (uint64_t)(simulate_now() * 1e9);
}

uint64_t co_clock_coarse_ns(void)
{
    return co_clock_ns();
}

uint64_t co_clock_thread_ns(void)
{
    return co_clock_ns();
}

uint64_t co_clock_process_start_ns(void)
{
    return 0;
}

void co_clock_sleep_us(uint32_t us)
{
    simulate_sleep(us * 1e-6);
}

/* ---- load.c ---- */

static co_mpi_calls ranks_calls;
const co_mpi_calls *co_mpi;

co_status co_mpi_load(void)
{
    if (!co_mpi && !simulate_calls(&ranks_calls))
        return co_fail(CO_E_UNSUPPORTED, "the table of MPI's calls has another version");
    co_mpi = &ranks_calls;
    return CO_OK;
}

bool co_mpi_available(const char **why)
{
    *why = "";
    return true;
}

const char *co_mpi_name(int i)
{
    return i == 0 ? "smpi" : NULL;
}

char *co_mpi_library(char *out, size_t size)
{
    if (size)
        *out = '\0';
    return out;
}

/* ---- progress_thread.c, limit.c: there is one thread ---- */

void co_mpi_lock(void)
{
}

void co_mpi_unlock(void)
{
}

co_status co_mpi_progress_thread_open(mpi_comm *c)
{
    (void)c;
    return CO_OK;
}

void co_mpi_progress_thread_close(mpi_comm *c)
{
    (void)c;
}

void co_mpi_progress_thread_wake(mpi_comm *c)
{
    (void)c;
}

void co_mpi_progress_thread_post(mpi_comm *c, const co_coll_args *args)
{
    (void)c;
    (void)args;
}

void co_mpi_limit_begin(co_mpi_limit *limit, const char *what, uint32_t ms, int exit_code)
{
    *limit = (co_mpi_limit){.what = what, .ms = ms, .exit_code = exit_code};
}

void co_mpi_limit_end(co_mpi_limit *limit)
{
    limit->returned = true;
}

/* ---- waiting ---- */

co_status __wrap_co_request_wait(co_request *request);
co_status __wrap_co_request_order(co_request *request, co_queue *queue);
co_status __wrap_co_comm_run(co_comm *comm, const co_coll_args *args);
long __real_sysconf(int name);
long __wrap_sysconf(int name);

co_status __wrap_co_request_wait(co_request *request)
{
    bool done = false;

    CO_TRY(co_request_test(&done, request));
    while (!done) {
        simulate_sleep(simulate.poll);
        CO_TRY(co_request_test(&done, request));
    }
    return CO_OK;
}

co_status __wrap_co_request_order(co_request *request, co_queue *queue)
{
    (void)queue; /* the host's */
    return co_request_wait(request);
}

/* Never the transport's own blocking form: that waits without letting others run. */
co_status __wrap_co_comm_run(co_comm *comm, const co_coll_args *args)
{
    co_request *request;
    co_status st;

    CO_TRY(co_comm_post(&request, comm, args));
    st = co_request_wait(request);
    co_request_destroy(request);
    return st;
}

/* Each host reserves addresses by the machine's memory, and all hosts are in this process. */
long __wrap_sysconf(int name)
{
    return name == _SC_PHYS_PAGES ? ((long)64 << 20) / __real_sysconf(_SC_PAGESIZE)
                                  : __real_sysconf(name);
}

/* ---- memory that ranks of a host share, in the time of cost.h's co_cost_shared ---- */

co_status __real_co_comm_ireduce_scatter(co_request **request, co_comm *comm, void *out,
                                         const void *in, size_t count, co_dtype dtype,
                                         co_reduce_op op);
co_status __wrap_co_comm_ireduce_scatter(co_request **request, co_comm *comm, void *out,
                                         const void *in, size_t count, co_dtype dtype,
                                         co_reduce_op op);
co_status __real_co_comm_iallgather(co_request **request, co_comm *comm, void *out, const void *in,
                                    size_t count, co_dtype dtype);
co_status __wrap_co_comm_iallgather(co_request **request, co_comm *comm, void *out, const void *in,
                                    size_t count, co_dtype dtype);
co_status __real_co_comm_ireduce(co_request **request, co_comm *comm, void *out, const void *in,
                                 size_t count, co_dtype dtype, co_reduce_op op, int root);
co_status __wrap_co_comm_ireduce(co_request **request, co_comm *comm, void *out, const void *in,
                                 size_t count, co_dtype dtype, co_reduce_op op, int root);
co_status __real_co_comm_ibcast(co_request **request, co_comm *comm, void *inout, size_t count,
                                co_dtype dtype, int root);
co_status __wrap_co_comm_ibcast(co_request **request, co_comm *comm, void *inout, size_t count,
                                co_dtype dtype, int root);

co_status __real_co_comm_enqueue(co_request **request, co_comm *comm, const co_coll_args *args);
co_status __wrap_co_comm_enqueue(co_request **request, co_comm *comm, const co_coll_args *args);

/* A rank of a host moves `bytes`. */
static void ranks_move(const co_comm *comm, double bytes)
{
    if (comm->size <= simulate.each)
        simulate_sleep(simulate.inside.latency + bytes / simulate.inside.bandwidth);
}

co_status __wrap_co_comm_ireduce_scatter(co_request **request, co_comm *comm, void *out,
                                         const void *in, size_t count, co_dtype dtype,
                                         co_reduce_op op)
{
    ranks_move(comm, (double)((size_t)(comm->size - 1) * count * co_dtype_size(dtype)));
    return __real_co_comm_ireduce_scatter(request, comm, out, in, count, dtype, op);
}

co_status __wrap_co_comm_iallgather(co_request **request, co_comm *comm, void *out, const void *in,
                                    size_t count, co_dtype dtype)
{
    ranks_move(comm, (double)((size_t)(comm->size - 1) * count * co_dtype_size(dtype)));
    return __real_co_comm_iallgather(request, comm, out, in, count, dtype);
}

co_status __wrap_co_comm_ireduce(co_request **request, co_comm *comm, void *out, const void *in,
                                 size_t count, co_dtype dtype, co_reduce_op op, int root)
{
    ranks_move(comm, (double)(count * co_dtype_size(dtype)) * (comm->size - 1) / comm->size);
    return __real_co_comm_ireduce(request, comm, out, in, count, dtype, op, root);
}

co_status __wrap_co_comm_ibcast(co_request **request, co_comm *comm, void *inout, size_t count,
                                co_dtype dtype, int root)
{
    ranks_move(comm, (double)(count * co_dtype_size(dtype)) * (comm->size - 1) / comm->size);
    return __real_co_comm_ibcast(request, comm, inout, count, dtype, root);
}

/* One half of an all-reduce: every rank reads what the others have, or writes its own to them. */
co_status __wrap_co_comm_enqueue(co_request **request, co_comm *comm, const co_coll_args *args)
{
    if (args->each)
        ranks_move(comm,
                   (double)((size_t)(comm->size - 1) * args->each * co_dtype_size(args->dtype)));
    return __real_co_comm_enqueue(request, comm, args);
}
