/*
 * init.c - MPI is initialised and finalized once per process, by the first communicator.
 *
 * MPI_Finalize waits for the other ranks, and does not always return: in MPICH before 4.2 over UCX
 * a rank waits in a barrier of its launcher without answering those that still close their
 * connections to it (pmodels/mpich, pull request 6596). By then a rank has done all its work, so it
 * ends without.
 */
#include "comm/mpi/internal.h"
#include "comm/mpi/mpi.h"

static bool init_is_ours; /* then finalizing is, too */

co_status co_mpi_init(uint32_t ms)
{
    bool initialized = false, finalized = false;
    co_mpi_limit limit;
    int code;

    CO_TRY(co_mpi_load());
    co_mpi->initialized(&initialized);
    co_mpi->finalized(&finalized);
    if (finalized)
        return co_fail(CO_E_USAGE, "MPI has been finalized; it cannot start twice");
    if (initialized)
        return CO_OK;
    ms = ms > CO_MPI_START_MS ? ms : CO_MPI_START_MS;
    co_mpi_limit_begin(&limit, "MPI_Init", ms, co_exit_code(CO_E_TIMEOUT));
    code = co_mpi->init();
    co_mpi_limit_end(&limit);
    CO_TRY(co_mpi_check(code, "init"));
    init_is_ours = true;
    return CO_OK;
}

void co_mpi_finalize(int exit_code)
{
    bool finalized = false;
    co_mpi_limit limit;

    if (!init_is_ours)
        return;
    co_mpi->finalized(&finalized);
    if (finalized)
        return;
    co_mpi_limit_begin(&limit, "MPI_Finalize", CO_MPI_END_MS, exit_code);
    co_mpi->finalize();
    co_mpi_limit_end(&limit);
}
