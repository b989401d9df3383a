/*
 * run.c - from a config to running ranks: `cohort train` and `bench train`; run_eval.c evaluates.
 *
 * All errors in a config or its data are found here, before ranks start. Data and model are created
 * once, so that forked ranks share them.
 */
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include <cohort/launch.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/plural.h"
#include "core/sized.h"
#include "core/thread.h"
#include "data/data.h"
#include "data/images.h"
#include "device/cuda/cuda.h"
#include "model/metrics.h"
#include "step/distributed.h"
#include "train/evaluate.h"
#include "train/measures.h"
#include "train/resume.h"
#include "train/run_internal.h"
#include "train/run_mpi.h"
#include "train/run_session.h"
#include "train/rundir.h"
#include "train/trainer.h"

#define RUN_OVERSUBSCRIBED 4 /* ranks per core above which to warn */

static co_status run_open_model(co_model **out, const co_job *job)
{
    const co_dataset *dataset = job->train ? job->train : job->test;

    CO_TRY(co_spec_create_model(out, &job->spec, co_dataset_shape(dataset),
                                co_dataset_classes(dataset)));
    if (job->train) /* else they are loaded */
        CO_TRY(co_model_draw(*out));
    return co_model_freeze_value(*out, job->spec.freeze);
}

/* Models for ranks that are threads; processes get theirs by fork. */
static co_status run_open_replicas(co_job *job)
{
    const size_t ranks = (size_t)job->spec.ranks;

    if (!(job->needs & CO_STRATEGY_NEEDS_THREADS))
        return CO_OK;
    job->replica = co_calloc(ranks, sizeof(*job->replica));
    if (!job->replica)
        return CO_E_NOMEM;
    for (size_t rank = 0; rank < ranks; rank++)
        CO_TRY(run_open_model(&job->replica[rank], job));
    return CO_OK;
}

static co_status run_open_metrics(co_job *job)
{
    CO_TRY(co_model_measure(job->model, &job->spec.metrics));
    for (int64_t rank = 0; job->replica && rank < job->spec.ranks; rank++)
        CO_TRY(co_model_measure(job->replica[rank], &job->spec.metrics));
    return CO_OK;
}

co_status co_run_open(co_job *job, const co_train_options *options, bool train)
{
    co_spec *spec = &job->spec;

    job->under_mpi = co_launch_under_mpi();
    job->quiet = options->quiet || co_log_is_taken();
    job->on_step = options->on_step;
    job->on_step_arg = options->on_step_arg;
    job->start_ns = co_clock_process_start_ns();
    job->asked_ns = co_clock_ns();
    job->cores = co_thread_cores();
    CO_TRY(co_spec_open(spec, options));
    if (options->run_dir)
        CO_TRY(co_rundir_keep_characters(spec, options->run_dir));
    if (!train)
        spec->test_partition = NULL; /* totals do not depend on the partition */
    if (train)
        CO_TRY(co_job_check_update(job));
    if (train)
        CO_TRY(co_dataset_open_value(&job->train, spec->data, spec->config, CO_SPLIT_TRAIN));
    if (job->images)
        CO_TRY(co_dataset_open_images(&job->test, spec->data, spec->config, job->images));
    else if (!train || (spec->evaluate && job->bench_rounds == 0))
        CO_TRY(co_dataset_open_value(&job->test, spec->data, spec->config, CO_SPLIT_TEST));
    if (job->train && job->test)
        CO_TRY(co_dataset_check_splits(job->train, job->test));
    if (train)
        CO_TRY(co_job_check_ranks(job, (int)spec->ranks));
    CO_TRY(run_open_model(&job->model, job));
    CO_TRY(co_job_check_model(job));
    if (train && !job->under_mpi)
        CO_TRY(co_job_check_norms(job, (int)spec->ranks));
    CO_TRY(run_open_replicas(job));
    CO_TRY(run_open_metrics(job));
    if (train)
        CO_TRY(co_job_check_kernels(job, job->under_mpi ? 0 : co_spec_part(spec)));
    if (train)
        CO_TRY(co_job_open_kernels(job));
    /* A resumed run has its own weights; the initial file may be gone. */
    if (train && !job->resume)
        CO_TRY(co_run_init(job));
    job->result =
        co_map(sizeof(*job->result), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
    return job->result ? CO_OK : co_fail(CO_E_NOMEM, "out of memory");
}

void co_run_close(co_job *job)
{
    if (job->result)
        munmap(job->result, sizeof(*job->result));
    for (int64_t rank = 0; job->replica && rank < job->spec.ranks; rank++)
        co_model_destroy(job->replica[rank]);
    co_free(job->replica);
    co_job_close_kernels(job);
    co_model_destroy(job->model);
    co_cuda_close(job->device);
    co_dataset_destroy(job->test);
    co_dataset_destroy(job->train);
    co_spec_unload(&job->spec);
}

static co_launch_options run_launch_options(const co_job *job, const co_train_options *options)
{
    return (co_launch_options){.ranks = job->under_mpi ? options->ranks : (int)job->spec.ranks,
                               .timeout_ms = (uint32_t)job->spec.timeout_s * 1000,
                               .bind = true,
                               .fork_one = true,
                               .threads = job->replica != NULL};
}

/* A few ranks per core are common in studies; many are probably a mistake, and slow. */
static void run_warn_oversubscribed(const co_job *job)
{
    const int cores = co_thread_cores();

    if (!job->under_mpi && job->spec.ranks > (int64_t)RUN_OVERSUBSCRIBED * cores)
        co_log(CO_LOG_WARN,
               "%lld ranks share %d core%s and take turns on %s: a step takes longer than with "
               "-n %d, and each rank needs memory of its own",
               (long long)job->spec.ranks, cores, co_plural((uint64_t)cores),
               cores == 1 ? "it" : "them", cores);
}

co_status co_run_launch(co_job *job, const co_train_options *options,
                        const co_launch_policy *policy, co_rank_fn fn)
{
    const co_launch_options launch = run_launch_options(job, options);

    run_warn_oversubscribed(job);
    return co_launch_with(&launch, policy, fn, job);
}

co_job co_run_rank_job(const co_job *job, const co_comm *comm)
{
    co_job mine = *job;

    if (job->replica)
        mine.model = job->replica[co_comm_rank(comm)];
    return mine;
}

co_status co_run_share_result(co_comm *comm, const co_job *job)
{
    return job->under_mpi ? co_comm_bcast(comm, job->result, sizeof(*job->result), CO_U8, 0)
                          : CO_OK;
}

static co_status run_train_rank(co_comm *comm, void *arg)
{
    co_job job;

    CO_TRY(co_job_enter_device(arg, comm));
    job = co_run_rank_job(arg, comm);
    CO_TRY(co_trainer_run(comm, &job));
    return co_run_share_result(comm, &job);
}

/* On one machine the session may start ranks again. */
static co_status run_session(co_job *job, const co_train_options *options)
{
    const co_launch_policy *policy;
    const co_launch_options launch = run_launch_options(job, options);
    co_train_summary *train = &job->result->train;
    co_session *session = NULL;
    bool stopped = false;
    uint64_t steps = 0;
    co_status st;

    if (job->under_mpi)
        return co_run_mpi(job, options, &launch);
    CO_TRY(co_job_open_session(&session, job));
    st = co_session_policy(&policy, session, train->run_dir);
    if (st == CO_OK)
        st = co_session_status(&stopped, &steps, session,
                               co_run_launch(job, options, policy, run_train_rank));
    if (stopped) {
        train->stopped = true;
        train->steps = steps;
    }
    co_job_close_session(session, job);
    return st;
}

/* Find the run directory and the point to start from. Over MPI every process reads, and rank 0
   writes once ranks exist (co_trainer_run). */
static co_status run_enter(co_resume_kind *kind, co_state **state, co_job *job)
{
    co_train_summary *train = &job->result->train;

    *kind = CO_RESUME_FRESH;
    if (!job->resume)
        return job->under_mpi ? CO_OK
                              : co_rundir_create(&job->lock, train->run_dir, sizeof(train->run_dir),
                                                 &job->spec, job->train);
    if (!job->under_mpi)
        CO_TRY(co_rundir_lock(&job->lock, train->run_dir));
    CO_TRY(co_resume_find(kind, state, train->run_dir, job));
    if (*kind == CO_RESUME_FRESH)
        CO_TRY(co_run_init(job));
    job->state = *state;
    if (job->under_mpi || *kind == CO_RESUME_COMPLETE)
        return CO_OK;
    return co_resume_prepare(train->run_dir, job, job->state);
}

/* The summary of a run that is already complete. */
static void run_fill_complete(co_train_summary *out, const co_state *state,
                              const co_metric_set *metrics)
{
    const co_event *last = &state->point.last;

    out->steps = state->point.step;
    out->train_loss = last->train_loss;
    out->train_accuracy = last->train_accuracy;
    out->test_loss = last->has_test ? last->test_loss : (double)NAN;
    out->test_accuracy = last->has_test ? last->test_accuracy : (double)NAN;
    out->train_seconds = last->train_seconds;
    out->samples_per_second = (double)NAN;
    if (last->has_test)
        out->n_metric = co_measures_name(out->metric, metrics, last->test_metric);
}

static co_status run_train(co_train_summary *out, size_t out_size, const co_train_options *options)
{
    co_job job = {.quiet = options->quiet,
                  .resume = options->resume,
                  .profile_steps = options->profile_steps,
                  .profile_skip = options->profile_skip,
                  .lock = -1};
    co_resume_kind kind = CO_RESUME_FRESH;
    co_state *state = NULL;
    co_status st;

    CO_TRY(co_rundir_check_named(options->run_dir, options->resume));
    st = co_run_open(&job, options, true);
    if (st == CO_OK && options->run_dir)
        memcpy(job.result->train.run_dir, options->run_dir, strlen(options->run_dir) + 1);
    if (st == CO_OK)
        st = run_enter(&kind, &state, &job);
    if (st == CO_OK && kind == CO_RESUME_COMPLETE)
        run_fill_complete(&job.result->train, state, &job.spec.metrics);
    else if (st == CO_OK)
        st = run_session(&job, options);
    if (st == CO_OK)
        co_sized_write(out, out_size, &job.result->train, sizeof(job.result->train));
    co_state_destroy(state);
    co_rundir_unlock(job.lock);
    co_run_close(&job);
    return st;
}

CO_SIZED_END(co_train_options, on_step_arg);
CO_SIZED_END(co_train_summary, metric);
CO_SIZED_END(co_bench_summary, peak_device_memory_bytes);

co_status co_train_sized(co_train_summary *out, size_t out_size, const co_train_options *options,
                         size_t size)
{
    co_train_options o;

    CO_TRY(CO_SIZED_READ(&o, options, size, co_train_options));
    return run_train(out, out_size, &o);
}

static co_status run_bench_rank(co_comm *comm, void *arg)
{
    co_job job;

    CO_TRY(co_job_enter_device(arg, comm));
    job = co_run_rank_job(arg, comm);
    CO_TRY(co_trainer_bench(comm, &job));
    return co_run_share_result(comm, &job);
}

co_status co_bench_train_sized(co_bench_summary *out, size_t out_size,
                               const co_train_options *given, size_t size, uint64_t warmup,
                               uint64_t steps, int rounds)
{
    co_job job = {.quiet = true,
                  .bench_warmup = warmup ? warmup : 1,
                  .bench_steps = steps,
                  .bench_rounds = rounds};
    co_train_options o, *options = &o;
    co_status st;

    CO_TRY(CO_SIZED_READ(&o, given, size, co_train_options));
    job.bench_utilization = options->utilization;
    if (steps < 1 || rounds < 1 || rounds > CO_BENCH_MAX_ROUNDS)
        return co_fail(CO_E_USAGE, "time at least 1 step in 1 to %d rounds", CO_BENCH_MAX_ROUNDS);
    st = co_run_open(&job, options, true);
    if (st == CO_OK)
        st = co_run_launch(&job, options, NULL, run_bench_rank);
    if (st == CO_OK)
        co_sized_write(out, out_size, &job.result->bench, sizeof(job.result->bench));
    co_run_close(&job);
    return st;
}
