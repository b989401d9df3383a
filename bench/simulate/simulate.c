/*
 * simulate.c - collectives of Cohort's communicator over MPI on a simulated cluster, beside what
 * `cohort plan` predicts for them.
 *
 *   smpirun ... cohort_simulate.so CLUSTER allreduce BYTES...   sums over all ranks, one by one
 *   smpirun ... cohort_simulate.so CLUSTER mpi BYTES...         the same by MPI_Allreduce
 *   smpirun ... cohort_simulate.so CLUSTER step CONFIG...       steps of a training (step.c)
 *
 * Rank 0 prints a line for each: what, ranks, bytes, predicted and simulated microseconds. Every
 * sum is checked.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulate/step.h"

#include "comm/mpi/mpi.h"
#include "core/mem.h"

/* smpirun looks for it by its name. */
__attribute__((visibility("default"))) int main(int argc, char **argv);

static double simulate_predicted(const simulate_job *job, double bytes)
{
    const plan_exchange x = plan_exchange_whole(&job->layout, bytes);

    return x.own + x.wire + x.latency;
}

double simulate_meet(void)
{
    double now = simulate_now(), last;

    MPI_Allreduce(&now, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    last += 1;
    simulate_sleep(last - simulate_now());
    return last;
}

static co_status simulate_one(const simulate_job *job, size_t n)
{
    if (job->comm)
        return co_comm_allreduce(job->comm, job->data, job->data, n, CO_F32, CO_SUM);
    MPI_Allreduce(MPI_IN_PLACE, job->data, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return CO_OK;
}

/* Ranks add 0, 1, 2, ..., and 0 again after 16, so that sums are exact. */
static co_status simulate_check(const simulate_job *job, size_t n)
{
    float sum = 0;

    for (int i = 0; i < job->size; i++)
        sum += (float)(i % 16);
    for (size_t i = 0; i < n; i++)
        if (job->data[i] != sum + (float)(job->size * (int)(i % 7)))
            return co_fail(CO_E_FAILED, "rank %d has %g at %zu, which is not the sum", job->rank,
                           (double)job->data[i], i);
    return CO_OK;
}

static co_status simulate_allreduce(simulate_job *job, size_t bytes)
{
    const size_t n = bytes / sizeof(float);
    const double predicted = simulate_predicted(job, (double)bytes);
    double begin, took, most;

    for (size_t i = 0; i < n; i++)
        job->data[i] = (float)(job->rank % 16) + (float)(i % 7);
    simulate.poll = predicted / 200;
    begin = simulate_meet();
    CO_TRY(simulate_one(job, n));
    took = simulate_now() - begin;
    MPI_Allreduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    CO_TRY(simulate_check(job, n));
    if (job->rank == 0) {
        printf("%s %d %zu %.2f %.2f\n", job->comm ? "cohort" : "mpi", job->size, bytes,
               predicted * 1e6, most * 1e6);
        fflush(stdout);
    }
    return CO_OK;
}

static co_status simulate_sizes(simulate_job *job, int n, char **bytes)
{
    long most = 0;

    for (int i = 0; i < n; i++)
        most = atol(bytes[i]) > most ? atol(bytes[i]) : most;
    job->data = co_calloc((size_t)most + 1, 1);
    if (!job->data)
        return CO_E_NOMEM;
    for (int i = 0; i < n; i++)
        CO_TRY(simulate_allreduce(job, (size_t)atol(bytes[i])));
    return CO_OK;
}

static co_status simulate_steps(const simulate_job *job, int n, char **config)
{
    for (int i = 0; i < n; i++)
        CO_TRY(simulate_step(job, config[i]));
    return CO_OK;
}

static void simulate_lay_out(simulate_job *job)
{
    const int each = (int)co_plan_ranks_per_node(&job->cluster, 1);
    const int nodes = (job->size + each - 1) / each;
    char text[16];

    simulate = (simulate_options){.inside = job->cluster.inside.cost,
                                  .across = job->cluster.across.cost,
                                  .each = each,
                                  .poll = 1e-6,
                                  .look = 200e-6};
    job->layout = (plan_layout){
        .cluster = &job->cluster, .ranks = job->size, .nodes = (double)nodes, .each = each};
    snprintf(text, sizeof(text), "%d", each);
    setenv("COHORT_RANKS_PER_HOST", text, 1);
}

static co_status simulate_run(int argc, char **argv)
{
    simulate_job job = {.rank = 0};
    co_config *file = NULL;
    co_status st;

    CO_TRY(co_config_load(&file, argv[1]));
    CO_TRY(co_cluster_read(&job.cluster, file));
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.size);
    simulate_lay_out(&job);
    if (strcmp(argv[2], "mpi") != 0)
        CO_TRY(co_comm_create_mpi(&job.comm, 3600000));
    if (strcmp(argv[2], "step") == 0)
        st = simulate_steps(&job, argc - 3, argv + 3);
    else
        st = simulate_sizes(&job, argc - 3, argv + 3);
    co_comm_destroy(job.comm);
    co_free(job.data);
    co_config_destroy(file);
    return st;
}

int main(int argc, char **argv)
{
    co_status st;

    if (argc < 4) {
        fprintf(stderr, "usage: smpirun ... %s CLUSTER allreduce|mpi|step BYTES|CONFIG...\n",
                argv[0]);
        return 2;
    }
    MPI_Init(NULL, NULL);
    st = simulate_run(argc, argv);
    if (st != CO_OK) {
        fprintf(stderr, "simulate: error: %s\n", co_error_message());
        MPI_Abort(MPI_COMM_WORLD, co_exit_code(st));
    }
    MPI_Finalize();
    return co_exit_code(st);
}
