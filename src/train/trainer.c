/*
 * trainer.c - the one training loop, as each rank runs it.
 *
 * Must not name a plugin: models, optimizers, strategies, data sets and sinks come through their
 * registries.
 */
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "comm/watch.h"
#include "control/mpi_requests.h"
#include "control/session.h"
#include "core/clock.h"
#include "core/mem.h"
#include "core/thread.h"
#include "data/data.h"
#include "launch/signal_thread.h"
#include "model/metrics.h"
#include "state/state.h"
#include "step/distributed.h"
#include "telemetry/telemetry.h"
#include "train/resume.h"
#include "train/rundir.h"
#include "train/stragglers.h"
#include "train/trainer_internal.h"

static co_status trainer_open_sinks(trainer *t)
{
    const co_spec *spec = &t->job->spec;

    if (co_comm_rank(t->comm) != 0)
        return CO_OK;
    if (t->job->under_mpi)
        CO_TRY(co_resume_enter(&t->lock, t->job));
    if (t->job->state) /* of this run, or of the ranks before these */
        CO_TRY(co_sink_jsonl_cut(t->job->result->train.run_dir, t->job->state->point.step,
                                 t->job->state->point.epoch_step));
    CO_TRY(co_sink_jsonl_open(&t->sink[t->n_sink], &t->info, t->job->result->train.run_dir));
    t->n_sink++;
    if (spec->tensorboard) {
        CO_TRY(co_sink_tensorboard_open(&t->sink[t->n_sink], &t->info,
                                        t->job->result->train.run_dir,
                                        (co_board_names)spec->board_names));
        t->n_sink++;
    }
    if (!t->job->quiet) {
        if (spec->log == CO_SPEC_LOG_LINES)
            CO_TRY(co_sink_lines_open(&t->sink[t->n_sink], &t->info, (uint64_t)spec->log_every));
        else
            CO_TRY(co_sink_console_open(&t->sink[t->n_sink], &t->info));
        t->n_sink++;
    }
    if (t->job->listener)
        CO_TRY(co_ask_mpi_open(&t->ask, t));
    if (spec->log != CO_SPEC_LOG_RANKS)
        return CO_OK;
    t->rank = co_calloc((size_t)co_comm_size(t->comm), sizeof(*t->rank));
    return t->rank ? CO_OK : CO_E_NOMEM;
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
        .strategy = co_spec_plugin_name(spec->strategy, "sync"),
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
        .classes = co_dataset_classes(job->train),
        .epochs = (total + per_epoch - 1) / per_epoch,
    };
    co_session_describe(&t->info, job);
}

co_status trainer_open(trainer *t)
{
    const co_spec *spec = &t->job->spec;
    const co_distributed_values values = {.optimizer = spec->optimizer,
                                          .schedule = spec->schedule,
                                          .strategy = spec->strategy,
                                          .config = spec->config};
    co_distributed_options options = {.model = t->job->model,
                                      .comm = t->comm,
                                      .clip_norm = spec->clip_norm,
                                      .clip_value = spec->clip_value};
    co_batch first = {0};

    if (t->job->state) {
        first.epoch = t->job->state->point.epoch;
        first.step = t->job->state->point.epoch_step;
    }
    co_thread_flush_denormals();
    CO_TRY(co_comm_set_timeout(t->comm, (uint32_t)spec->timeout_s * 1000));
    CO_TRY(co_model_setup(t->job->model, co_spec_threads(spec)));
    if (spec->sync_batch_norm)
        co_model_sync_batch_norm(t->job->model, t->comm);
    CO_TRY(co_feed_open(&t->train, spec, t->job->train, t->comm, CO_SPLIT_TRAIN, &first));
    if (t->job->test)
        CO_TRY(co_feed_open(&t->test, spec, t->job->test, t->comm, CO_SPLIT_TEST, NULL));
    CO_TRY(trainer_profile_open(t));
    trainer_describe(t);
    options.tree = t->train.tree;
    if (t->job->state)
        CO_TRY(co_state_check(t, t->job->state));
    options.steps_per_epoch = t->info.steps_per_epoch;
    options.total_steps = t->info.total_steps;
    options.batch = t->info.batch;
    CO_TRY(co_distributed_create_from(&t->distributed, &values, &options));
    CO_TRY(trainer_overflow_open(t));
    CO_TRY(co_shards_open(&t->shards, t->train.tree, t->comm, t->job->model->store));
    if (spec->ema)
        CO_TRY(co_ema_create(&t->ema, &spec->ema_options, t->job->model->store));
    t->best = co_best_none();
    if (t->job->state)
        CO_TRY(co_state_restore(t, t->job->state));
    co_recent_open(t);
    t->info.first_step = t->step;
    t->info.epoch_start_seconds = t->train_seconds;
    t->info.epoch_start_wait = t->last.data_wait_seconds;
    return CO_OK;
}

void trainer_close(trainer *t)
{
    co_ask_mpi_close(t->ask);
    while (t->n_sink > 0) {
        co_sink *sink = t->sink[--t->n_sink];

        sink->ops->close(sink);
    }
    co_saver_destroy(t->saver);
    if (t->lock)
        co_rundir_unlock(t->lock);
    co_free(t->rank);
    co_ema_destroy(t->ema);
    co_free(t->kept_buffer);
    co_recent_close(t);
    co_shards_close(&t->shards);
    co_distributed_destroy(t->distributed);
    co_feed_close(&t->test);
    co_feed_close(&t->train);
    trainer_profile_close(t);
}

static co_status trainer_diverged(const trainer *t, const char *what)
{
    return co_fail(CO_E_FAILED,
                   "%s not a number any more at step %llu (epoch %llu): training has diverged; "
                   "lower the learning rate, warm it up, or clip the gradients",
                   what, (unsigned long long)t->step, (unsigned long long)t->epoch);
}

static co_status trainer_check_loss(const trainer *t, const co_result *part)
{
    return isfinite(part->loss_sum) ? CO_OK : trainer_diverged(t, "the loss is");
}

/* A library's ReLU makes zeros of what is not a number, and then the loss looks sound. */
static co_status trainer_check_weights(const trainer *t)
{
    const co_store *store = t->job->model->store;
    float most;

    CO_TRY(co_store_max_abs(&most, store, store->param, store->n));
    if (!isfinite(most))
        return trainer_diverged(t, "a weight is");
    return CO_OK;
}

/* Forward and backward of a rank's part of a batch, or of one shard of it, in micro-batches; `more`
   shards of this rank follow. */
static co_status trainer_compute(co_result *seen, trainer *t, const co_batch *batch, bool more)
{
    const uint64_t parts = (uint64_t)t->job->spec.accumulate;

    for (uint64_t k = 0; k < parts; k++) {
        const uint64_t begin = batch->count * k / parts, end = batch->count * (k + 1) / parts;
        const co_batch slice = co_batch_slice(batch, begin, end - begin);
        const bool last = k + 1 == parts;
        co_result part;

        CO_TRY(co_model_forward(&part, t->job->model, &slice));
        if (!trainer_overflow_forgive(t, &part))
            CO_TRY(trainer_check_loss(t, &part));
        co_metrics_add(seen, &part);
        if (last && t->shards.tree)
            CO_TRY(co_shards_forward_done(&t->shards, seen, batch->global, !more));
        if (last && !more)
            CO_TRY(co_recent_post(t, t->shards.tree ? NULL : seen));
        CO_TRY(co_distributed_backward(t->distributed, &slice, more || !last));
    }
    return CO_OK;
}

/* The same, shard by shard; `seen`: of all of this rank's. */
static co_status trainer_compute_shards(co_result *seen, trainer *t, const co_batch *batch)
{
    uint64_t begin = 0;

    co_shards_start(&t->shards);
    for (int i = 0; i < t->shards.n; i++) {
        const uint64_t count = co_sampler_local(t->train.sampler, batch->step, t->shards.first + i);
        const co_batch shard = co_batch_slice(batch, begin, count);
        const bool more = i + 1 < t->shards.n;
        co_result figures = {0};

        CO_TRY(trainer_compute(&figures, t, &shard, more));
        if (more)
            CO_TRY(co_distributed_next_shard(t->distributed));
        co_metrics_add(seen, &figures);
        begin += count;
    }
    return CO_OK;
}

/* Of this rank so far or, with shards, of all: then rank 0 keeps the account. */
static co_status trainer_account(trainer *t, co_result *seen, uint64_t global)
{
    co_rank_means_add(&t->means, seen);
    co_profiler_enter(t->profiler, CO_PROFILE_SYNC);
    if (t->shards.tree)
        CO_TRY(co_shards_finish(seen, &t->shards));
    co_profiler_leave(t->profiler);
    if (!t->shards.tree || co_comm_rank(t->comm) == 0)
        co_metrics_add(&t->seen, seen);
    return co_recent_finish(t, seen, global);
}

co_status trainer_step(trainer *t)
{
    co_result seen = {0};
    const uint64_t waited_ns = co_watch_waited_ns(t->comm);
    const uint64_t read_ns = co_clock_ns();
    uint64_t start_ns;
    co_batch batch;

    co_watch_step(t->comm, t->step + 1);
    co_watch_phase(t->comm, CO_PHASE_READING);
    co_profiler_enter(t->profiler, CO_PROFILE_DATA);
    CO_TRY(co_loader_next(&batch, t->train.loader));
    co_profiler_leave(t->profiler);
    co_watch_phase(t->comm, CO_PHASE_COMPUTING);
    start_ns = co_clock_ns();
    trainer_overflow_keep(t);
    if (t->shards.tree)
        CO_TRY(trainer_compute_shards(&seen, t, &batch));
    else
        CO_TRY(trainer_compute(&seen, t, &batch, false));
    CO_TRY(co_distributed_step(t->distributed));
    co_profiler_enter(t->profiler, CO_PROFILE_METRICS);
    CO_TRY(trainer_account(t, &seen, batch.global));
    trainer_overflow_settle(t);
    co_profiler_leave(t->profiler);
    t->step_ns += co_clock_ns() - start_ns;
    t->waited_ns += co_watch_waited_ns(t->comm) - waited_ns;
    trainer_set_last(t, &seen, batch.global, read_ns, start_ns);
    t->step_sync_ns = co_distributed_sync_ns(t->distributed);
    if (t->step == t->first_step)
        t->start_seconds = co_clock_seconds(t->job->start_ns, co_clock_ns());
    t->step++;
    co_profiler_enter(t->profiler, CO_PROFILE_EMA);
    if (t->ema)
        co_ema_update(t->ema, t->job->model->store, t->step);
    co_profiler_leave(t->profiler);
    t->epoch_step++;
    t->epoch_samples += batch.global;
    return CO_OK;
}

co_comm *trainer_sharers(const trainer *t)
{
    const co_store *store = t->job->model->store;

    return store->param != store->own_param ? co_comm_local(t->comm) : NULL;
}

/* The averaged weights into the model and the trained ones out of it, or back. Where ranks share
   the weights, one of them does it while the others wait. */
co_status trainer_swap_ema(trainer *t)
{
    co_store *store = t->job->model->store;
    co_comm *near = trainer_sharers(t);

    if (!t->ema)
        return CO_OK;
    if (near)
        CO_TRY(co_comm_barrier(near));
    co_ema_swap(t->ema, store, !near || co_comm_rank(near) == 0);
    return near ? co_comm_barrier(near) : CO_OK;
}

/* With shards all ranks have the same, and a mean would round. */
co_status trainer_average_buffers(trainer *t)
{
    return t->shards.tree ? CO_OK : co_trainer_average_buffers(t->comm, t->job->model);
}

/* Running statistics are those of all ranks, unless each has weights of its own. */
static co_status trainer_evaluate(co_result *out, trainer *t)
{
    if (!co_distributed_is_local(t->distributed))
        CO_TRY(trainer_average_buffers(t));
    CO_TRY(trainer_swap_ema(t));
    if (t->ema)
        CO_TRY(trainer_average_buffers(t));
    CO_TRY(co_trainer_evaluate(out, &t->tested, t->comm, t->job->model, &t->test));
    return trainer_swap_ema(t);
}

/* How many of the epoch's samples, of all ranks, were bad. */
static co_status trainer_count_bad(co_event *event, trainer *t)
{
    int64_t bad = (int64_t)co_loader_bad_samples(t->train.loader) - (int64_t)t->bad_before;

    if (!co_dataset_skips_bad(t->job->train))
        return CO_OK;
    if (t->job->test)
        bad += (int64_t)co_loader_bad_samples(t->test.loader);
    t->bad_before += (uint64_t)bad;
    CO_TRY(co_comm_allreduce(t->comm, &bad, &bad, 1, CO_I64, CO_SUM));
    event->bad_samples = (uint64_t)bad;
    return CO_OK;
}

/* After the last epoch, and after every so many others. */
static bool trainer_evaluates(const trainer *t)
{
    const uint64_t every = (uint64_t)t->job->spec.evaluate_every;

    return t->job->test && ((t->epoch + 1) % every == 0 || t->step >= t->info.total_steps);
}

/* Epoch's end: metrics of all ranks, evaluation, one event. */
static co_status trainer_end_epoch(trainer *t)
{
    double seconds = trainer_epoch_seconds(t);
    co_result seen = t->seen;
    co_event event;

    t->train_seconds += seconds;
    t->samples += t->epoch_samples;
    CO_TRY(trainer_check_weights(t));
    CO_TRY(co_metrics_reduce(&seen, t->comm));
    event = trainer_event(t, CO_EVENT_EPOCH);
    trainer_set_speed(&event, t, seconds);
    trainer_set_train(&event, t, &seen);
    if (trainer_evaluates(t)) {
        const uint64_t start_ns = co_clock_ns();
        co_result test;

        CO_TRY(trainer_evaluate(&test, t));
        trainer_set_test(&event, t, &test);
        trainer_set_test_speed(&event, t, test.count, start_ns);
        event.wall_seconds = trainer_wall_seconds(t);
    }
    CO_TRY(trainer_count_bad(&event, t));
    t->last = event;
    t->improved = co_best_take(&t->best, &t->job->spec, &event);
    if (t->job->spec.log == CO_SPEC_LOG_RANKS)
        CO_TRY(co_ranks_gather(t->rank, t->comm, &t->means, event.has_test ? &t->tested : NULL));
    event.rank = t->rank;
    CO_TRY(trainer_emit(t, &event));
    co_best_check(t, &event);
    return CO_OK;
}

/* What follows each step: requests from outside, events to the sinks, a checkpoint. */
static co_status trainer_behind_step(trainer *t)
{
    co_profiler_enter(t->profiler, CO_PROFILE_SUPERVISE);
    CO_TRY(co_session_after_step(t));
    co_profiler_leave(t->profiler);
    co_profiler_enter(t->profiler, CO_PROFILE_LOG);
    if (t->n_sink)
        CO_TRY(trainer_emit_step(t));
    co_profiler_leave(t->profiler);
    co_profiler_enter(t->profiler, CO_PROFILE_CHECKPOINT);
    if (t->epoch_step < t->info.steps_per_epoch && t->step < t->info.total_steps)
        CO_TRY(co_saver_step(t->saver, t));
    co_profiler_leave(t->profiler);
    return CO_OK;
}

/* The rest of an epoch, which a restored trainer may be in the middle of; with it the trainer
   is at the beginning of the next. */
static co_status trainer_epoch(trainer *t)
{
    const uint64_t steps = t->info.steps_per_epoch, total = t->info.total_steps;
    double accuracy;

    t->epoch_start_ns = co_clock_ns();
    while (t->epoch_step < steps && t->step < total) {
        co_profiler_begin_step(t->profiler, t->step);
        co_profiler_enter(t->profiler, CO_PROFILE_SUPERVISE);
        CO_TRY(co_session_before_step(t));
        co_profiler_leave(t->profiler);
        if (t->leaving)
            return CO_OK;
        CO_TRY(trainer_step(t));
        CO_TRY(trainer_behind_step(t));
        co_profiler_end_step(t->profiler);
    }
    if (t->epoch_step == steps) {
        CO_TRY(trainer_end_epoch(t));
        accuracy = t->last.has_test ? t->last.test_accuracy : (double)NAN;
        trainer_next_epoch(t);
        return co_saver_epoch(t->saver, t, accuracy, t->improved);
    }
    /* The run ends in the middle of an epoch: whoever continues after it does so as if it had not.
     */
    CO_TRY(co_saver_last(t->saver, t));
    CO_TRY(trainer_end_epoch(t));
    trainer_next_epoch(t);
    return CO_OK;
}

void trainer_next_epoch(trainer *t)
{
    t->epoch++;
    t->epoch_step = t->epoch_samples = 0;
    t->epoch_seconds = 0;
    memset(&t->seen, 0, sizeof(t->seen));
    memset(&t->means, 0, sizeof(t->means));
}

co_status co_trainer_run(co_comm *comm, co_job *job)
{
    trainer t = {.comm = comm, .job = job};
    co_status st;

    co_session_begin(&t);
    st = trainer_open(&t);
    if (st == CO_OK)
        st = trainer_open_sinks(&t);
    if (st == CO_OK)
        trainer_say_precision(&t);
    if (st == CO_OK)
        st = co_saver_create(&t.saver, &t);
    if (st == CO_OK && job->state && t.epoch_step == 0)
        co_best_check(&t, &t.last);
    /* A state may be of the last step, in an epoch that is not evaluated yet. */
    while (st == CO_OK && t.stop_reason == CO_STOP_NONE &&
           (t.step < t.info.total_steps || t.epoch_step > 0)) {
        st = trainer_epoch(&t);
        if (t.leaving)
            break;
        if (st == CO_OK)
            st = co_session_after_epoch(&t);
    }
    if (st == CO_OK && !t.leaving)
        st = trainer_finish(&t);
    if (st == CO_OK && !t.leaving)
        st = co_lateness_find(&t);
    if (st == CO_OK && !t.leaving && co_comm_rank(comm) == 0)
        st = trainer_save(&t);
    if (st == CO_OK)
        st = trainer_profile_write(&t);
    if (st != CO_OK && job->listener) /* closing what is under way may end the process */
        co_listener_end(job->listener, st, co_error_message());
    trainer_close(&t);
    return st;
}
