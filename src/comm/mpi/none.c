/* none.c - replaces mpi.c in a build without MPI, and reports that with the remedy. */
#include "comm/mpi/mpi.h"
#include "comm/transports.h"

static const char mpi_none_why[] =
    "this build has no MPI; install libopenmpi-dev and openmpi-bin, and build again";

static bool mpi_none_probe(const char **why)
{
    *why = mpi_none_why;
    return false;
}

const co_comm_ops co_transport_mpi = {
    .name = "mpi",
    .summary = "ranks on many machines, started by mpiexec or srun",
    .probe = mpi_none_probe,
};

bool co_mpi_available(const char **why)
{
    return mpi_none_probe(why);
}

char *co_mpi_library(char *out, size_t size)
{
    if (size)
        out[0] = '\0';
    return out;
}

co_status co_comm_create_mpi(co_comm **out)
{
    *out = NULL;
    return co_fail(CO_E_UNSUPPORTED, "%s", mpi_none_why);
}

struct co_watch *co_mpi_watch(const co_comm *comm, int i)
{
    (void)comm;
    (void)i;
    return NULL;
}

void co_mpi_finalize(void)
{
}
