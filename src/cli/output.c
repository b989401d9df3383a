/* output.c - which process of a run may speak. */
#include <stdlib.h>
#include <string.h>

#include <cohort/launch.h>

#include "cli/cli.h"

bool cli_is_root(void)
{
    /* Open MPI, PMIx (srun), MPICH and Intel MPI. */
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};

    if (!co_launch_under_mpi())
        return true;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *rank = getenv(names[i]);

        if (rank)
            return strcmp(rank, "0") == 0;
    }
    return true;
}
