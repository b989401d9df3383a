/*
 * trainer.c - the training loop that each rank runs.
 *
 * Names no plugin: models, optimizers, strategies, data sets and sinks come from their registries.
 */
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "comm/watch.h"
#include "control/session.h"
#include "core/clock.h"
#include "data/data.h"
#include "launch/signal_thread.h"
#include "model/metrics.h"
#include "step/distributed.h"
#include "telemetry/telemetry.h"
#include "tensor/values.h"
#include "train/evaluate.h"
#include "train/trainer_internal.h"

static co_status trainer_diverged(const trainer *t, const char *what)
{
    return co_fail(CO_E_FAILED,
                   "%s not a number any more at step %llu (epoch %llu): training has diverged; "
                   "lower the learning rate, warm it up, or clip the gradients",
                   what, (unsigned long long)t->step, (unsigned long long)t->epoch);
}

/* Whether steps are only queued, and their results read once the queue has run. */
static bool trainer_is_late(const trainer *t)
{
    return t->job->model->store->ring;
}

static co_status trainer_check_loss(const trainer *t, const co_result *part)
{
    return isfinite(part->loss_sum) ? CO_OK : trainer_diverged(t, "the loss is");
}

/* A library's ReLU may turn NaN into 0, so the loss can look fine while weights are not finite. */
static co_status trainer_check_weights(const trainer *t)
{
    const co_store *store = t->job->model->store;
    float most;

    CO_TRY(co_store_max_abs(&most, store, store->param, store->n));
    if (!isfinite(most))
        return trainer_diverged(t, "a weight is");
    return CO_OK;
}

/* Micro-batch `k` of a rank's part of a batch. */
static co_batch trainer_slice(const trainer *t, const co_batch *batch, uint64_t k)
{
    const uint64_t parts = (uint64_t)t->job->spec.accumulate;
    const uint64_t begin = batch->count * k / parts, end = batch->count * (k + 1) / parts;

    return co_batch_slice(batch, begin, end - begin);
}

/* Add the result of a forward pass. */
static co_status trainer_count(co_result *seen, trainer *t, co_result *part, int shard)
{
    if (!co_overflow_forgive(&t->overflow, part)) {
        CO_TRY(trainer_check_loss(t, part));
        co_measures_take(&t->measures, t->job->model, shard);
    }
    co_metrics_add(seen, part);
    return CO_OK;
}

/* Without a queue the result is available at once; with one, trainer_take_late reads it. */
static co_status trainer_forward(co_result *seen, trainer *t, const co_batch *slice, uint64_t k,
                                 int shard)
{
    co_result part;

    if (trainer_is_late(t))
        return co_model_forward_late(t->job->model, slice, (int)k);
    CO_TRY(co_model_forward(&part, t->job->model, slice));
    return trainer_count(seen, t, &part, shard);
}

/* Forward and backward of this rank's part of a batch, or of its shard `shard`, in micro-batches.
   `more`: further shards of this rank follow. */
static co_status trainer_compute(co_result *seen, trainer *t, const co_batch *batch, int shard,
                                 bool more)
{
    const uint64_t parts = (uint64_t)t->job->spec.accumulate;

    for (uint64_t k = 0; k < parts; k++) {
        const co_batch slice = trainer_slice(t, batch, k);
        const bool last = k + 1 == parts;

        CO_TRY(trainer_forward(seen, t, &slice, k, shard));
        if (last && t->shards.tree)
            CO_TRY(co_shards_forward_done(&t->shards, seen, batch->global, !more));
        if (last && !more && !trainer_is_late(t))
            CO_TRY(co_recent_post(&t->recent, t->step + 1, t->shards.tree ? NULL : seen));
        CO_TRY(co_distributed_backward(t->distributed, &slice, more || !last));
    }
    return CO_OK;
}

/* The same for each shard of this rank; `seen` gets their sum. */
static co_status trainer_compute_shards(co_result *seen, trainer *t, const co_batch *batch)
{
    uint64_t begin = 0;

    co_shards_start(&t->shards);
    for (int i = 0; i < t->shards.n; i++) {
        const uint64_t count = co_sampler_local(t->train.sampler, batch->step, t->shards.first + i);
        const co_batch shard = co_batch_slice(batch, begin, count);
        const bool more = i + 1 < t->shards.n;
        co_result figures = {0};

        CO_TRY(trainer_compute(&figures, t, &shard, t->shards.first + i, more));
        if (more)
            CO_TRY(co_distributed_next_shard(t->distributed));
        co_metrics_add(seen, &figures);
        begin += count;
    }
    return CO_OK;
}

/* Add the step to t->seen: of this rank or, with shards, of all ranks, on rank 0 only. */
static co_status trainer_account(trainer *t, co_result *seen, uint64_t global)
{
    co_rank_means_add(&t->means, seen);
    co_profiler_enter(t->profiler, CO_PROFILE_SYNC);
    if (t->shards.tree)
        CO_TRY(co_shards_finish(seen, &t->shards));
    CO_TRY(co_measures_join(&t->measures));
    co_profiler_leave(t->profiler);
    if (!t->shards.tree || co_comm_rank(t->comm) == 0)
        co_metrics_add(&t->seen, seen);
    return co_recent_finish(&t->recent, seen, global, t->train_seconds + trainer_epoch_seconds(t));
}

/* Wait for the queued step, the only wait in it, and read its results. */
static co_status trainer_take_late(co_result *seen, trainer *t, const co_batch *batch)
{
    const uint64_t parts = (uint64_t)t->job->spec.accumulate;
    co_step_values values;

    if (!trainer_is_late(t))
        return CO_OK;
    CO_TRY(co_model_wait(t->job->model, t->comm));
    CO_TRY(co_values_read(&values, t->job->model->store));
    CO_TRY(co_distributed_take(t->distributed, &values));
    for (uint64_t k = 0; k < parts; k++) {
        const co_batch slice = trainer_slice(t, batch, k);
        co_result part;

        co_model_take_late(&part, t->job->model, &slice, (int)k);
        CO_TRY(trainer_count(seen, t, &part, 0));
    }
    return co_recent_post(&t->recent, t->step + 1, seen);
}

static void trainer_settle_overflow(trainer *t)
{
    char line[128];

    co_overflow_settle(&t->overflow);
    if (t->overflow.kept && co_distributed_skipped(t->distributed))
        trainer_say(t,
                    co_scaler_message(line, sizeof(line), co_distributed_scaler(t->distributed)));
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
    if (t->ema)
        co_ema_begin(t->ema, t->job->model->store, t->step + 1);
    CO_TRY(co_distributed_begin(t->distributed, &batch));
    co_overflow_keep(&t->overflow);
    if (t->shards.tree)
        CO_TRY(trainer_compute_shards(&seen, t, &batch));
    else
        CO_TRY(trainer_compute(&seen, t, &batch, 0, false));
    CO_TRY(co_distributed_step(t->distributed));
    CO_TRY(trainer_take_late(&seen, t, &batch));
    co_profiler_enter(t->profiler, CO_PROFILE_METRICS);
    CO_TRY(trainer_account(t, &seen, batch.global));
    trainer_settle_overflow(t);
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
        co_ema_update(t->ema, t->job->model->store);
    co_profiler_leave(t->profiler);
    t->epoch_step++;
    t->epoch_samples += batch.global;
    return CO_OK;
}

/* Where ranks share the weights, one of them swaps while the others wait. */
co_status trainer_swap_ema(trainer *t)
{
    co_store *store = t->job->model->store;
    co_comm *near = co_distributed_sharers(t->distributed);

    if (!t->ema)
        return CO_OK;
    if (near)
        CO_TRY(co_comm_barrier(near));
    co_ema_swap(t->ema, store, !near || co_comm_rank(near) == 0);
    return near ? co_comm_barrier(near) : CO_OK;
}

/* With shards all ranks have equal statistics, and averaging would round. */
co_status trainer_average_buffers(trainer *t)
{
    return t->shards.tree ? CO_OK : co_trainer_average_buffers(t->comm, t->job->model);
}

/* Averages the running statistics first, unless each rank has its own weights. */
static co_status trainer_evaluate(trainer *t)
{
    if (!co_distributed_is_local(t->distributed))
        CO_TRY(trainer_average_buffers(t));
    CO_TRY(trainer_swap_ema(t));
    if (t->ema)
        CO_TRY(trainer_average_buffers(t));
    CO_TRY(co_trainer_evaluate(&t->tested, t->comm, t->job->model, &t->test));
    return trainer_swap_ema(t);
}

/* Samples replaced in this epoch, over all ranks. */
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

/* After the last epoch, and every `evaluate_every` epochs. */
static bool trainer_evaluates(const trainer *t)
{
    const uint64_t every = (uint64_t)t->job->spec.evaluate_every;

    return t->job->test && ((t->epoch + 1) % every == 0 || t->step >= t->info.total_steps ||
                            t->stop_reason == CO_STOP_CALLBACK);
}

/* Reduce the metrics, evaluate, emit the epoch's event. */
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
    CO_TRY(co_measures_finish(event.train_metric, &t->measures));
    trainer_set_speed(&event, t, seconds);
    trainer_set_train(&event, t, &seen);
    if (trainer_evaluates(t)) {
        const uint64_t start_ns = co_clock_ns();

        CO_TRY(trainer_evaluate(t));
        trainer_set_test(&event, t, &t->tested);
        trainer_set_test_speed(&event, t, t->tested.all.count, start_ns);
        event.wall_seconds = trainer_wall_seconds(t);
    }
    CO_TRY(trainer_count_bad(&event, t));
    t->last = event;
    t->improved = co_best_take(&t->best, &t->job->spec.stop, &event);
    if (t->job->spec.log == CO_SPEC_LOG_RANKS)
        CO_TRY(
            co_ranks_gather(t->rank, t->comm, &t->means, event.has_test ? &t->tested.own : NULL));
    for (int r = 0; t->rank && t->info.learns_values && r < t->info.ranks; r++)
        t->rank[r].train_accuracy = t->rank[r].test_accuracy = (double)NAN;
    event.rank = t->rank;
    CO_TRY(trainer_emit(t, &event));
    trainer_check_stop(t, &event);
    return CO_OK;
}

/* After each step: requests from outside, events to the sinks, a checkpoint. */
static co_status trainer_after_step(trainer *t)
{
    const co_where where = trainer_where(t);

    co_profiler_enter(t->profiler, CO_PROFILE_SUPERVISE);
    CO_TRY(co_rank_control_after_step(&t->control, &where));
    co_profiler_leave(t->profiler);
    co_profiler_enter(t->profiler, CO_PROFILE_LOG);
    if (t->n_sink)
        CO_TRY(trainer_emit_step(t));
    co_profiler_leave(t->profiler);
    co_profiler_enter(t->profiler, CO_PROFILE_CHECKPOINT);
    if (t->epoch_step < t->info.steps_per_epoch && t->step < t->info.total_steps)
        CO_TRY(co_saver_step(t->saver, t->step));
    co_profiler_leave(t->profiler);
    return CO_OK;
}

/* Call the program's callback on every rank; if one wants to stop, all do. */
static co_status trainer_ask_program(trainer *t)
{
    const co_job *job = t->job;
    const co_step_info info = {.step = t->step,
                               .epoch = t->epoch,
                               .rank = co_comm_rank(t->comm),
                               .ranks = co_comm_size(t->comm),
                               .loss = t->last_step.loss,
                               .lr = co_distributed_lr(t->distributed),
                               .model = job->model};
    int32_t stop;

    if (!job->on_step)
        return CO_OK;
    stop = job->on_step(job->on_step_arg, &info);
    CO_TRY(co_comm_allreduce(t->comm, &stop, &stop, 1, CO_I32, CO_MAX));
    if (stop)
        t->stop_reason = CO_STOP_CALLBACK;
    return CO_OK;
}

/* Save a checkpoint at the end of an epoch if one is due. */
static co_status trainer_save_epoch(trainer *t)
{
    const co_watched by = co_best_by(&t->job->spec.stop, &t->last);
    const co_saver_epoch_end end = {.epoch = t->epoch,
                                    .step = t->step,
                                    .test = {t->last.has_test ? t->last.test_accuracy : (double)NAN,
                                             by.metric, co_watched_value(&by, &t->last)},
                                    .best = t->improved,
                                    .last = t->step >= t->info.total_steps ||
                                            t->stop_reason != CO_STOP_NONE};

    return co_saver_epoch(t->saver, &end);
}

/* Run the rest of the epoch (a restored trainer may start in the middle), then advance to the
   next. */
static co_status trainer_epoch(trainer *t)
{
    const uint64_t steps = t->info.steps_per_epoch, total = t->info.total_steps;

    t->epoch_start_ns = co_clock_ns();
    while (t->epoch_step < steps && t->step < total && t->stop_reason == CO_STOP_NONE) {
        co_profiler_begin_step(t->profiler, t->step);
        co_profiler_enter(t->profiler, CO_PROFILE_SUPERVISE);
        CO_TRY(co_rank_control_before_step(&t->control, t->step));
        co_profiler_leave(t->profiler);
        if (t->control.leaving)
            return CO_OK;
        CO_TRY(trainer_step(t));
        CO_TRY(trainer_after_step(t));
        CO_TRY(trainer_ask_program(t));
        co_profiler_end_step(t->profiler);
    }
    if (t->epoch_step == steps) {
        CO_TRY(trainer_end_epoch(t));
        trainer_next_epoch(t);
        return trainer_save_epoch(t);
    }
    /* The run ends in the middle of an epoch. Saved first, so that resuming continues as if it had
       not. */
    CO_TRY(co_saver_last(t->saver, t->step));
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
    co_measures_clear(&t->measures);
}

/* Over MPI, record that the ranks left early; otherwise the session does. */
static void trainer_note_stop(trainer *t)
{
    co_job_result *result = t->job->result;

    if (!t->control.stopped)
        return;
    result->train.stopped = true;
    result->train.steps = t->step;
    result->saved = t->control.saved;
    result->stopped_by = t->control.stopped_by;
}

/* Run epochs until the end, or until the ranks leave. */
static co_status trainer_run(trainer *t)
{
    /* A state may be of the last step of an epoch that has not been evaluated yet. */
    while (t->stop_reason == CO_STOP_NONE && (t->step < t->info.total_steps || t->epoch_step > 0)) {
        CO_TRY(trainer_epoch(t));
        if (t->control.leaving)
            return CO_OK;
        CO_TRY(co_rank_control_after_epoch(&t->control));
    }
    CO_TRY(trainer_finish(t));
    CO_TRY(trainer_find_stragglers(t));
    return co_comm_rank(t->comm) == 0 ? trainer_save(t) : CO_OK;
}

co_status co_trainer_run(co_comm *comm, co_job *job)
{
    trainer t = {.comm = comm, .job = job};
    co_status st;

    job->start_ns = co_session_start_ns(job->session, job->start_ns);
    st = trainer_open(&t);
    if (st == CO_OK)
        st = trainer_open_outputs(&t);
    if (st == CO_OK)
        trainer_say_precision(&t);
    if (st == CO_OK)
        st = trainer_say_kernels(&t);
    if (st == CO_OK)
        st = trainer_open_saver(&t);
    if (st == CO_OK && job->state && t.epoch_step == 0)
        trainer_check_stop(&t, &t.last);
    if (st == CO_OK)
        st = trainer_run(&t);
    trainer_note_stop(&t);
    if (st == CO_OK)
        st = trainer_profile_write(&t);
    if (st != CO_OK && job->listener) /* closing pending operations may end the process */
        co_signal_thread_end(job->listener, st, co_error_message());
    trainer_close(&t);
    return st;
}
