/*
 * trainer_open.c - sets up and tears down all that a rank needs to train.
 *
 * Names no plugin: models, optimizers, strategies, data sets and sinks come from their registries.
 */
#include "control/session.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/text.h"
#include "core/thread.h"
#include "data/data.h"
#include "launch/rank_notes.h"
#include "step/distributed.h"
#include "telemetry/telemetry.h"
#include "train/resume.h"
#include "train/rundir.h"
#include "train/trainer_internal.h"

static co_status trainer_open_sinks(trainer *t)
{
    const co_spec *spec = &t->job->spec;
    const co_state *state = t->job->state; /* of this run, or of the previous generation of ranks */
    const co_sink_options options = {.run_dir = t->job->result->train.run_dir,
                                     .quiet = t->job->quiet,
                                     .lines = spec->log == CO_SPEC_LOG_LINES,
                                     .every = (uint64_t)spec->log_every,
                                     .tensorboard = spec->tensorboard,
                                     .board_names = (co_board_names)spec->board_names,
                                     .resumed = state != NULL,
                                     .step = state ? state->point.step : 0,
                                     .epoch_step = state ? state->point.epoch_step : 0};

    for (const co_sink_ops *const *ops = co_sinks; *ops && t->n_sink < CO_MAX_SINKS; ops++) {
        if ((*ops)->wanted && !(*ops)->wanted(&options))
            continue;
        CO_TRY((*ops)->open(&t->sink[t->n_sink], &t->info, &options));
        t->n_sink++;
    }
    return CO_OK;
}

co_status trainer_open_outputs(trainer *t)
{
    if (co_comm_rank(t->comm) != 0)
        return CO_OK;
    if (t->job->under_mpi)
        CO_TRY(co_resume_enter(&t->lock, t->job));
    t->times = co_calloc((size_t)co_comm_size(t->comm), sizeof(*t->times));
    if (!t->times)
        return CO_E_NOMEM;
    CO_TRY(trainer_open_sinks(t));
    CO_TRY(trainer_open_requests(t));
    if (t->job->spec.log != CO_SPEC_LOG_RANKS)
        return CO_OK;
    t->rank = co_calloc((size_t)co_comm_size(t->comm), sizeof(*t->rank));
    return t->rank ? CO_OK : CO_E_NOMEM;
}

/* Why the ranks were started again, if they were. */
static void trainer_describe_start(co_run_info *info, const co_job *job)
{
    if (job->state)
        info->first_step = job->state->point.step;
    if (!job->session && job->restart) {
        info->restarts = job->restart->count;
        info->cause = job->restart->count ? job->restart->cause : NULL;
        info->lost_rank = job->restart->lost_rank;
    }
    co_session_describe(info, job->session);
}

static const char *trainer_samples_at(const trainer *t, const co_feed *feed)
{
    return !t->job->model->store->device || !feed->loader ? NULL
           : feed->images                                 ? " (on the GPU)"
                                                          : " (read on the host)";
}

static void trainer_describe(trainer *t)
{
    const co_spec *spec = &t->job->spec;
    const co_job *job = t->job;
    uint64_t per_epoch = co_sampler_steps(t->train.sampler);
    uint64_t total = per_epoch * (uint64_t)spec->epochs;

    if (spec->max_steps && (uint64_t)spec->max_steps < total)
        total = (uint64_t)spec->max_steps;
    t->info = (co_run_info){
        .model = co_spec_model_name(spec),
        .strategy = co_spec_strategy_name(spec),
        .dataset = co_spec_plugin_name(spec->data, ""),
        .transport = co_comm_transport(t->comm),
        .under_mpi = t->job->under_mpi,
        .backend = spec->backend,
        .precision = co_spec_precision_name(spec),
        .ranks = co_comm_size(t->comm),
        .parameter_count = co_model_parameter_count(job->model),
        .train_samples = co_dataset_count(job->train),
        .test_samples = job->test ? co_dataset_count(job->test) : 0,
        .batch = co_spec_batch(spec, co_comm_size(t->comm)),
        .steps_per_epoch = per_epoch,
        .total_steps = total,
        .classes =
            co_model_target(job->model) == CO_TARGET_LABEL ? co_dataset_classes(job->train) : 0,
        .learns_values = co_model_target(job->model) == CO_TARGET_VALUES,
        .positions = (uint64_t)job->model->positions,
        .train_at = trainer_samples_at(t, &t->train),
        .test_at = trainer_samples_at(t, &t->test),
        .metrics = &spec->metrics,
        .epochs = (total + per_epoch - 1) / per_epoch,
        .cores = job->cores,
        .threads = co_spec_threads(spec),
    };
    trainer_describe_start(&t->info, job);
}

/* Why a device does not hold the samples, unless the config says so. */
static void trainer_say_samples(const trainer *t)
{
    if (t->job->spec.device.data_mib == 0 || co_comm_rank(t->comm) != 0 || t->job->quiet)
        return;
    if (*t->train.why)
        co_log(CO_LOG_INFO, "data: batches are read on the host: %s", CO_SHOW(t->train.why));
    else if (*t->test.why)
        co_log(CO_LOG_INFO, "data: test batches are read on the host: %s", CO_SHOW(t->test.why));
}

/* The test split where its weights are, once the training samples have taken what they may. */
static co_status trainer_open_data(trainer *t, const co_batch *first)
{
    const co_job *job = t->job;
    const co_feed_source train = {
        .dataset = job->train, .split = CO_SPLIT_TRAIN, .first = first, .queue = t->replay.copies};
    co_feed_source test = {
        .dataset = job->test, .split = CO_SPLIT_TEST, .queue = job->model->store->queue};

    CO_TRY(co_feed_open(&t->train, &job->spec, t->comm, &train));
    test.held = t->train.held;
    if (job->test)
        CO_TRY(co_feed_open(&t->test, &job->spec, t->comm, &test));
    trainer_say_samples(t);
    return CO_OK;
}

/* Open what observes steps: figures of recent steps, and requests to leave. */
static void trainer_open_watch(trainer *t)
{
    const co_job *job = t->job;
    const co_recent_options recent = {.comm = t->comm,
                                      .loader = t->train.loader,
                                      .every = (uint64_t)job->spec.log_every,
                                      .whole = t->shards.tree != NULL,
                                      .top5 = co_model_has_top5(job->model),
                                      .learns_values = t->info.learns_values};

    co_recent_open(&t->recent, &recent, t->train_seconds + t->epoch_seconds);
    t->control.options = (co_rank_control_options){.comm = t->comm,
                                                   .source = &t->source,
                                                   .session = job->session,
                                                   .listener = job->listener,
                                                   .max_seconds = job->spec.max_seconds,
                                                   .asked_ns = job->asked_ns};
}

co_status trainer_open(trainer *t)
{
    const co_spec *spec = &t->job->spec;
    const co_distributed_values values = co_spec_update(spec);
    co_distributed_options options = {.model = t->job->model,
                                      .comm = t->comm,
                                      .clip_norm = spec->clip_norm,
                                      .clip_value = spec->clip_value};
    const co_store *store = t->job->model->store;
    co_batch first = {0};

    if (t->job->state) {
        first.epoch = t->job->state->point.epoch;
        first.step = t->job->state->point.epoch_step;
    }
    co_thread_flush_denormals();
    CO_TRY(co_comm_set_timeout(t->comm, (uint32_t)spec->timeout_s * 1000));
    co_model_setup(t->job->model, co_spec_threads(spec));
    if (spec->sync_batch_norm)
        co_model_sync_batch_norm(t->job->model, t->comm);
    if (store->ring)
        CO_TRY(trainer_open_replay(t));
    CO_TRY(trainer_open_data(t, &first));
    CO_TRY(trainer_profile_open(t));
    trainer_describe(t);
    options.tree = t->train.tree;
    if (t->job->state)
        CO_TRY(co_state_check(t->job->state, t->info.batch, t->info.steps_per_epoch));
    options.steps_per_epoch = t->info.steps_per_epoch;
    options.total_steps = t->info.total_steps;
    options.batch = t->info.batch;
    CO_TRY(co_distributed_create_from(&t->distributed, &values, &options));
    CO_TRY(co_overflow_open(&t->overflow, t->distributed, t->job->model->store));
    CO_TRY(co_shards_open(&t->shards, t->train.tree, t->comm, t->job->model->store));
    CO_TRY(trainer_choose_together(t));
    CO_TRY(trainer_open_late(t));
    CO_TRY(co_measures_open(&t->measures, &t->job->spec.metrics, t->comm, t->train.tree));
    t->measures.form.bytes_per_token = 0; /* counted at the end of the first epoch */
    if (spec->ema)
        CO_TRY(co_ema_create(&t->ema, &spec->ema_options, t->job->model->store));
    t->best = co_best_none();
    trainer_set_source(t);
    if (t->job->state)
        CO_TRY(trainer_restore(t));
    trainer_open_watch(t);
    t->info.first_step = t->step;
    t->info.epoch_start_seconds = t->train_seconds;
    t->info.epoch_start_wait = t->last.data_wait_seconds;
    return CO_OK;
}

void trainer_close(trainer *t)
{
    trainer_close_late(t);
    trainer_drop_captures(t);
    co_rank_control_close(&t->control);
    while (t->n_sink > 0) {
        co_sink *sink = t->sink[--t->n_sink];

        sink->ops->close(sink);
    }
    co_saver_destroy(t->saver);
    if (t->lock)
        co_rundir_unlock(t->lock);
    co_free(t->rank);
    co_free(t->times);
    co_ema_destroy(t->ema);
    co_free(t->described.config);
    co_overflow_close(&t->overflow);
    co_recent_close(&t->recent);
    co_shards_close(&t->shards);
    co_measures_close(&t->measures);
    co_distributed_destroy(t->distributed);
    co_feed_close(&t->test);
    co_feed_close(&t->train);
    trainer_close_replay(t);
    trainer_profile_close(t);
}
