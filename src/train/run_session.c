/*
 * run_session.c - the callbacks of a run's session (control/session.h): whether the run can
 * continue with another number of ranks, and what to save when it cannot.
 */
#include "train/run_session.h"

#include "core/mem.h"

co_status co_job_state_shape(co_state_shape *out, const co_job *job, int ranks)
{
    const co_distributed_values update = co_spec_update(&job->spec);

    return co_state_shape_of(out, &update, job->model, job->spec.ema != NULL, ranks);
}

co_status co_job_describe(co_checkpoint_run *out, const co_job *job)
{
    const co_spec *spec = &job->spec;

    *out = (co_checkpoint_run){.model = co_spec_model_name(spec),
                               .dataset = co_spec_plugin_name(spec->data, ""),
                               .strategy = co_spec_strategy_name(spec),
                               .precision = co_spec_precision_name(spec),
                               .seed = (uint64_t)spec->seed,
                               .train_samples = co_dataset_count(job->train),
                               .parameter_count = co_model_parameter_count(job->model),
                               .graph = job->model->graph};
    return co_spec_write_text(&out->config, spec);
}

static co_status session_fits(void *arg, int ranks)
{
    const co_job *job = arg;
    const co_spec *spec = &job->spec;
    const co_partition_ops *partition = co_partition_of(spec->partition);

    if (!spec->shards && !(partition && partition->independent_of_ranks))
        return co_fail(CO_E_USAGE, "with this partition the parts of the data depend on the number "
                                   "of ranks; `partition: global` or `shards` let it change");
    if (spec->batch_per_rank)
        return co_fail(CO_E_USAGE, "with batch_per_rank the batch depends on the number of ranks; "
                                   "give `batch` to let it change");
    if (!job->in_step)
        return co_fail(CO_E_USAGE,
                       "with the strategy '%s' ranks have state of their own; only one that keeps "
                       "replicas in sync, such as sync, lets their number change",
                       co_spec_strategy_name(spec));
    CO_TRY(co_job_check_ranks(job, ranks));
    return co_job_check_norms(job, ranks);
}

static void session_next(void *arg, const co_state *state, int ranks)
{
    co_job *job = arg;

    job->state = state;
    job->spec.ranks = ranks;
}

static co_status session_rescue(void *arg, const co_state *state)
{
    co_job *job = arg;
    co_checkpoint_run run = {.config = NULL};
    co_status st = co_job_learn_kernels(job);

    if (st == CO_OK)
        st = co_job_describe(&run, job);
    if (st == CO_OK)
        st = co_saver_rescue(&job->spec.saver, job->result->train.run_dir, state, &run);
    co_free(run.config);
    return st;
}

co_status co_job_open_session(co_session **out, co_job *job)
{
    const co_spec *spec = &job->spec;
    co_state_shape shape;
    const co_session_options options = {.ranks = (int)spec->ranks,
                                        .on_failure = (co_on_failure)spec->on_failure,
                                        .max_restarts = spec->max_restarts,
                                        .max_seconds = spec->max_seconds,
                                        .start_ns = job->start_ns,
                                        .asked_ns = job->asked_ns,
                                        .each_step = job->in_step,
                                        .shape = &shape,
                                        .snapshot = spec->saver.unit != CO_SAVER_OFF,
                                        .base = job->state,
                                        .fits = session_fits,
                                        .next = session_next,
                                        .rescue = session_rescue,
                                        .arg = job};

    CO_TRY(co_job_state_shape(&shape, job, (int)spec->ranks));
    CO_TRY(co_session_open(out, &options));
    job->session = *out;
    return CO_OK;
}

void co_job_close_session(co_session *session, co_job *job)
{
    job->session = NULL;
    job->state = NULL;
    co_session_close(session);
}
