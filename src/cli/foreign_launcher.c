/*
 * foreign_launcher.c - detects that another program's launcher started several of this process.
 * Without this check each would silently train a model of its own.
 *
 * The variables of an MPI launcher take precedence: its ranks do form one world, whatever else a
 * script exports.
 */
#include <stdlib.h>
#include <string.h>

#include <cohort/launch.h>

#include "cli/cli.h"

#define STARTED_MAX 1000000

/* The variable as a whole number >= 0; -1 if it is not one. */
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

/* Variables of torchrun, or of a script that imitates it: those that PyTorch reads with init_method
   env:
   . */
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

/* srun without MPI. A batch script by itself is not a task of a step. */
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
