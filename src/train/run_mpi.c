/*
 * run_mpi.c - a run as one rank of an MPI world: signals, time limits, and how it ends.
 *
 * Does not know how the world was started.
 */
#include "train/run_mpi.h"

#include <stdio.h>
#include <string.h>

#include <cohort/version.h>

#include "core/mem.h"
#include "launch/rank_notes.h"
#include "launch/signal_thread.h"
#include "state/state.h"

/* Over MPI ranks are not restarted from inside; the launcher may start a new world. */
co_status co_run_check_mpi(const co_job *job, const co_train_options *options)
{
    if (job->spec.on_failure == CO_ON_FAILURE_STOP || options->notes)
        return CO_OK;
    return co_fail(CO_E_USAGE,
                   "on_failure: when a rank dies mpiexec ends them all, so only `stop` is possible "
                   "here; to start again by itself, let cohort start mpiexec: cohort train CONFIG "
                   "--mpiexec 'mpiexec' -n RANKS");
}

/* What must be the same on all ranks, line by line: each has read its own files. */
static co_status run_mpi_text(char **out, const co_job *job)
{
    char *config = NULL;
    const uint64_t step = job->state ? job->state->point.step : 0;
    size_t size;

    CO_TRY(co_spec_write_text(&config, &job->spec));
    size = strlen(config) + 256;
    *out = co_calloc(size, 1);
    if (*out)
        snprintf(*out, size,
                 "%sCohort %s\n%lld training samples\n%lld test samples\n"
                 "begins after step %llu\n",
                 config, co_version(), (long long)co_dataset_count(job->train),
                 (long long)(job->test ? co_dataset_count(job->test) : 0),
                 (unsigned long long)step);
    co_free(config);
    return *out ? CO_OK : CO_E_NOMEM;
}

/* Fail with the first line that differs. */
static co_status run_mpi_compare(const char *mine, const char *first)
{
    while (*mine || *first) {
        const size_t m = strcspn(mine, "\n"), n = strcspn(first, "\n");

        if (m != n || memcmp(mine, first, m) != 0)
            return co_fail(CO_E_USAGE,
                           "config, data or checkpoint differ from rank 0's: '%.*s' here, '%.*s' "
                           "there; every host must see the same files under the same paths",
                           (int)m, mine, (int)n, first);
        mine += m + (mine[m] == '\n');
        first += n + (first[n] == '\n');
    }
    return CO_OK;
}

/* Ranks that differ would fail to understand each other, or silently train on different things. */
static co_status run_mpi_check_same(co_comm *comm, const char *mine)
{
    int64_t length = (int64_t)strlen(mine);
    co_status st = CO_E_NOMEM;
    char *first;

    CO_TRY(co_comm_bcast(comm, &length, 1, CO_I64, 0));
    first = co_calloc((size_t)length + 1, 1);
    if (first && co_comm_rank(comm) == 0)
        memcpy(first, mine, (size_t)length);
    if (first)
        st = co_comm_bcast(comm, first, (size_t)length, CO_U8, 0);
    if (st == CO_OK)
        st = run_mpi_compare(mine, first);
    co_free(first);
    return st;
}

static co_status run_mpi_check(co_comm *comm, const co_job *job)
{
    char *mine = NULL;
    co_status st = run_mpi_text(&mine, job);

    if (st == CO_OK)
        st = run_mpi_check_same(comm, mine);
    co_free(mine);
    return st;
}

/* The status of a run that was stopped early. */
static co_status run_mpi_status(const co_job_result *result)
{
    if (!result->train.stopped || result->stopped_by == CO_OK)
        return CO_OK;
    return co_fail(result->stopped_by, "%s after step %llu%s",
                   result->stopped_by == CO_E_INTERRUPTED ? "interrupted" : "terminated",
                   (unsigned long long)result->train.steps,
                   result->saved ? ", which is saved: --resume continues from it" : "");
}

/* Report before MPI_Finalize, which may not return; everything is saved by now. */
static void run_mpi_note_end(const co_job *job)
{
    const co_status st = run_mpi_status(job->result);

    co_signal_thread_end(job->listener, st, st == CO_OK ? "" : co_error_message());
}

static co_status run_mpi_rank(co_comm *comm, void *arg)
{
    co_job *job = arg;
    co_status st;

    co_signal_thread_begin(job->listener, comm);
    st = run_mpi_check(comm, job);
    if (st == CO_OK)
        st = co_job_check_norms(job, co_comm_size(comm));
    if (st == CO_OK)
        st = co_job_enter_device(job, comm);
    if (st == CO_OK)
        st = co_trainer_run(comm, job);
    if (st == CO_OK) /* ranks do not share memory with rank 0 */
        st = co_comm_bcast(comm, job->result, sizeof(*job->result), CO_U8, 0);
    if (st != CO_OK)
        co_signal_thread_end(job->listener, st, co_error_message());
    else
        run_mpi_note_end(job);
    return st;
}

co_status co_run_mpi(co_job *job, const co_train_options *options, const co_launch_options *launch)
{
    co_notes_restart restart;
    co_status st;

    CO_TRY(co_run_check_mpi(job, options));
    if (options->notes) {
        co_notes_read_restart(&restart, options->notes);
        job->restart = &restart;
    }
    CO_TRY(co_signal_thread_open(&job->listener, options->notes, launch->timeout_ms));
    st = co_launch(launch, run_mpi_rank, job);
    if (st == CO_OK)
        st = run_mpi_status(job->result);
    co_signal_thread_close(job->listener);
    job->listener = NULL;
    job->restart = NULL;
    return options->notes && job->result->train.stopped ? CO_OK : st;
}
