/*
 * run_mpi.c - a run as one rank of an MPI world: signals and time limits, and how it ends. Must not
 * know how the world was started.
 */
#include "train/run_mpi.h"

#include "launch/listener.h"

/* Over MPI there is one generation of ranks: whoever started it may start another. */
static co_status run_check_mpi(const co_job *job, const co_train_options *options)
{
    if (job->spec.on_failure == CO_SPEC_STOP || options->notes)
        return CO_OK;
    return co_fail(CO_E_USAGE,
                   "on_failure: when a rank dies mpiexec ends them all, so only `stop` is possible "
                   "here; to start again by itself, let cohort start mpiexec: cohort train CONFIG "
                   "--mpiexec 'mpiexec' -n RANKS");
}

/* How the run was ended before its time. */
static co_status run_mpi_verdict(const co_job_result *result)
{
    if (!result->train.stopped || result->stopped_by == CO_OK)
        return CO_OK;
    return co_fail(result->stopped_by, "%s after step %llu%s",
                   result->stopped_by == CO_E_INTERRUPTED ? "interrupted" : "terminated",
                   (unsigned long long)result->train.steps,
                   result->saved ? ", which is saved: --resume goes on from it" : "");
}

static co_status run_mpi_rank(co_comm *comm, void *arg)
{
    co_job *job = arg;
    co_status st;

    co_listener_begin(job->listener, comm);
    st = co_trainer_run(comm, job);
    if (st == CO_OK) /* ranks share no memory with rank 0 */
        st = co_comm_bcast(comm, job->result, sizeof(*job->result), CO_U8, 0);
    if (st != CO_OK)
        co_listener_end(job->listener, st, co_error_message());
    return st;
}

co_status co_run_mpi(co_job *job, const co_train_options *options, const co_launch_options *launch)
{
    co_status st;

    CO_TRY(run_check_mpi(job, options));
    CO_TRY(co_listener_open(&job->listener, options->notes));
    st = co_launch(launch, run_mpi_rank, job);
    if (st == CO_OK) {
        st = run_mpi_verdict(job->result);
        co_listener_end(job->listener, st, st == CO_OK ? "" : co_error_message());
    }
    co_listener_close(job->listener);
    job->listener = NULL;
    return options->notes && job->result->train.stopped ? CO_OK : st;
}
