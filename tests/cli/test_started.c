/*
 * test_started.c - processes started by torchrun, a script or srun without MPI, each of which would
 * train its own model: the error says what to type instead.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "cli/program.h"

#define JOB                                                                                        \
    "model: mlp\n"                                                                                 \
    "data: {name: synthetic, shape: [1, 4, 4], classes: 2, samples: 8}\n"                          \
    "batch: 4\n"                                                                                   \
    "max_steps: 2\n"

/* An environment without the variables that the test itself may have. */
#define CLEAN                                                                                      \
    "env", "-u", "MASTER_ADDR", "-u", "WORLD_SIZE", "-u", "RANK", "-u", "SLURM_PROCID", "-u",      \
        "SLURM_STEP_NUM_TASKS"

typedef struct environment {
    const char *set[6];
} environment;

static const program_result *run(const environment *e, const char *const *args)
{
    program_options options = {.before = {CLEAN}};
    size_t n = 0;

    while (options.before[n])
        n++;
    for (size_t i = 0; i < 6 && e->set[i]; i++)
        options.before[n++] = e->set[i];
    return program_run(args, &options);
}

static const char *const train[] = {"train", "job.yaml", "-q", "--run-dir", "run", NULL};
static const char *const compare[] = {"compare", "job.yaml", "--strategies", "sync", "-n",
                                      "1",       NULL};
static const char *const bench[] = {"bench", "train", "job.yaml", "--steps", "1", NULL};

static void refused(const environment *e, const char *const *args, const char *words)
{
    program_assert_error(run(e, args), 2, words);
    assert_false(program_exists("run"));
}

static void trains(const environment *e)
{
    program_assert_success(run(e, train));
    program_remove("run");
}

static void started_by_torchrun_is_refused(void **state)
{
    const environment torch = {{"MASTER_ADDR=10.0.0.1", "MASTER_PORT=29500", "WORLD_SIZE=4",
                                "RANK=2", "LOCAL_RANK=0", NULL}};
    const environment zero = {{"MASTER_ADDR=localhost", "WORLD_SIZE=2", "RANK=0", NULL}};

    (void)state;
    refused(&torch, train, "say that this is process 2 of 4");
    refused(&torch, train, "type once `cohort train job.yaml -n 4`");
    refused(&torch, train, "`mpiexec -n 4 cohort train ...` over several");
    refused(&torch, train, "if the variables are left over: `env -u RANK cohort train ...`");
    refused(&zero, train, "process 0 of 2");
    refused(&zero, compare, "`cohort compare job.yaml -n 2`");
    refused(&zero, bench, "`cohort bench train job.yaml -n 2`");
}

/* The remedy that the error names, and environments that are no such start. */
static void started_with_stale_variables_runs(void **state)
{
    const environment cases[] = {
        {{NULL}},
        {{"-u", "RANK", "MASTER_ADDR=a", "WORLD_SIZE=4", NULL}},
        {{"MASTER_ADDR=a", "WORLD_SIZE=1", "RANK=0", NULL}},
        {{"WORLD_SIZE=4", "RANK=2", NULL}},
        {{"MASTER_ADDR=", "WORLD_SIZE=4", "RANK=2", NULL}},
        {{"MASTER_ADDR=a", "WORLD_SIZE=4", "RANK=four", NULL}},
        {{"MASTER_ADDR=a", "WORLD_SIZE=4", "RANK=4", NULL}},
        {{"MASTER_ADDR=a", "WORLD_SIZE=", "RANK=0", NULL}},
        {{"MASTER_ADDR=a", "WORLD_SIZE=99999999999999999999", "RANK=0", NULL}},
        {{"SLURM_PROCID=0", "SLURM_NTASKS=4", NULL}}, /* a batch script */
        {{"SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=1", NULL}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        trains(&cases[i]);
}

static void started_by_srun_without_mpi_is_refused(void **state)
{
    const environment srun = {{"SLURM_PROCID=3", "SLURM_STEP_NUM_TASKS=4", NULL}};
    const environment both = {{"SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "MASTER_ADDR=a",
                               "WORLD_SIZE=2", "RANK=1", NULL}};

    (void)state;
    refused(&srun, train, "task 3 of 4, but without MPI");
    refused(&srun, train, "`srun --mpi=pmix` or `--mpi=pmi2`");
    refused(&srun, train, "`env -u SLURM_STEP_NUM_TASKS cohort train ...`");
    refused(&both, train, "process 1 of 2");
}

/* Scripts for mpiexec often export these variables, too; its ranks form one world anyway. */
static void started_by_mpiexec_ignores_other_variables(void **state)
{
    const program_options options = {
        .before = {CLEAN, "MASTER_ADDR=a", "WORLD_SIZE=2", "RANK=0", PROGRAM_MPIEXEC, "-n", "2"}};

    (void)state;
    program_need_mpi();
    program_assert_success(program_run(train, &options));
    program_remove("run");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(started_by_torchrun_is_refused),
        cmocka_unit_test(started_with_stale_variables_runs),
        cmocka_unit_test(started_by_srun_without_mpi_is_refused),
        cmocka_unit_test(started_by_mpiexec_ignores_other_variables),
    };
    int failed;

    if (program_init(argc > 1 ? argv[1] : NULL) != 0)
        return 1;
    program_write_text("job.yaml", JOB);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    program_fini();
    return failed;
}
