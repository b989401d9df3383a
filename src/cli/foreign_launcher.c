/*
 * foreign_launcher.c - whether this process is one of several that a launcher of other programs has
 * started: each of them would then train a model of its own, and nobody would notice.
 *
 * Settles which variables say so. Those of an MPI launcher win: its ranks do make one world,
 * whatever else a script exports.
 */
#include <stdlib.h>
#include <string.h>

#include <cohort/launch.h>

#include "cli/cli.h"

#define STARTED_MAX 1000000

/* A variable that is a whole number from 0 on; -1: it is none. */
static long foreign_number(const char *name)
{
    const char *text = getenv(name);
    char *end = NULL;
    long number;

    if (!text || text[0] < '0' || text[0] > '9')
        return -1;
    number = strtol(text, &end, 10);
    return *end == '\0' && number <= STARTED_MAX ? number : -1;
}

/* torchrun's, or a script's after it: what PyTorch reads with init_method env://. */
static co_status foreign_by_torch(const char *command, const char *config)
{
    const char *address = getenv("MASTER_ADDR");
    const long ranks = foreign_number("WORLD_SIZE"), rank = foreign_number("RANK");

    if (!address || !address[0] || ranks < 2 || rank < 0 || rank >= ranks)
        return CO_OK;
    return co_fail(CO_E_USAGE,
                   "MASTER_ADDR, WORLD_SIZE and RANK say that this is process %ld of %ld, and "
                   "without an MPI launcher each would run by itself; type once `cohort %s %s -n "
                   "%ld` on one machine, or `mpiexec -n %ld cohort train ...` over "
                   "several; if the variables are left over: `env -u RANK cohort %s ...`",
                   rank, ranks, command, config, ranks, ranks, command);
}

/* srun without MPI. A batch script itself is no task of a step. */
static co_status foreign_by_slurm(const char *command, const char *config)
{
    const long ranks = foreign_number("SLURM_STEP_NUM_TASKS");
    const long rank = foreign_number("SLURM_PROCID");

    if (ranks < 2 || rank < 0 || rank >= ranks)
        return CO_OK;
    return co_fail(CO_E_USAGE,
                   "srun has started this as task %ld of %ld, but without MPI, and each would run "
                   "by itself; type `srun --mpi=pmix` or `--mpi=pmi2` (`srun --mpi=list` shows "
                   "which there are), or `cohort %s %s -n %ld` in one task; if you mean it: `env "
                   "-u SLURM_STEP_NUM_TASKS cohort %s ...`",
                   rank, ranks, command, config, ranks, command);
}

co_status cli_check_started(const char *command, const char *config)
{
    if (co_launch_under_mpi())
        return CO_OK;
    CO_TRY(foreign_by_torch(command, config));
    return foreign_by_slurm(command, config);
}
