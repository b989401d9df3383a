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
#include "core/log.h"
#include "data/data.h"
#include "launch/signal_thread.h"
#include "model/metrics.h"
#include "step/distributed.h"
#include "telemetry/telemetry.h"
#include "tensor/values.h"
#include "train/evaluate.h"
#include "train/finite.h"
#include "train/trainer_internal.h"

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
    if (t->shards.tree)
        return CO_OK;
    return co_trainer_average_buffers(t->comm, t->job->model, t->train.sampler);
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

int64_t trainer_bad_samples(const trainer *t)
{
    int64_t bad = (int64_t)co_loader_bad_samples(t->train.loader) - t->bad_before;

    if (t->job->test)
        bad += (int64_t)co_loader_bad_samples(t->test.loader);
    return bad;
}

/* Samples replaced in this epoch, over all ranks. */
static co_status trainer_count_bad(co_event *event, trainer *t)
{
    int64_t bad = trainer_bad_samples(t);

    if (!co_dataset_skips_bad(t->job->train))
        return CO_OK;
    t->bad_before += bad;
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

/* All tokens of a split may have to be read for it, which takes longer than to begin, and less than
   an epoch by far. */
static void trainer_count_bytes(trainer *t)
{
    co_metric_form *form = &t->measures.form;

    if (form->bytes_per_token > 0 || !(t->measures.set->form.bytes_per_token > 0))
        return;
    form->bytes_per_token = co_dataset_bytes_per_token(t->job->train);
}

/* Rank 0 says once why the test loss is not a number; training goes on. */
static void trainer_explain_tested(trainer *t)
{
    const co_job *job = t->job;

    if (t->test_explained || isfinite(t->tested.all.loss_sum))
        return;
    t->test_explained = true;
    if (co_comm_rank(t->comm) == 0 &&
        co_finite_explain(&t->tested.all, job->test, job->model->graph, &job->spec) != CO_OK)
        co_log(CO_LOG_WARN, "%s", co_error_message());
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
    trainer_count_bytes(t);
    CO_TRY(co_measures_finish(event.train_metric, &t->measures));
    trainer_set_speed(&event, t, seconds);
    trainer_set_train(&event, t, &seen);
    if (trainer_evaluates(t)) {
        const uint64_t start_ns = co_clock_ns();

        CO_TRY(trainer_evaluate(t));
        t->evaluate_ns += co_clock_ns() - start_ns;
        trainer_explain_tested(t);
        trainer_set_test(&event, t, &t->tested);
        trainer_set_test_speed(&event, t, t->info.test_samples, start_ns);
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
    CO_TRY(trainer_gather_times(t));
    event.times = t->times;
    CO_TRY(trainer_emit(t, &event));
    CO_TRY(trainer_show_epoch(t));
    trainer_check_stop(t, &event);
    return CO_OK;
}

/* Steps of this epoch that have been started. */
static uint64_t trainer_epoch_given(const trainer *t)
{
    return t->epoch_step + (t->given - t->step);
}

/* Handle outside requests and make a checkpoint. Capturing a state reads all results first. */
static co_status trainer_after_step(trainer *t)
{
    const co_where where = trainer_where(t);
    uint64_t start_ns;

    co_profiler_enter(t->profiler, CO_PROFILE_SUPERVISE);
    CO_TRY(co_rank_control_after_step(&t->control, &where));
    co_profiler_leave(t->profiler);
    start_ns = co_clock_ns();
    co_profiler_enter(t->profiler, CO_PROFILE_CHECKPOINT);
    if (trainer_epoch_given(t) < t->info.steps_per_epoch && t->given < t->info.total_steps)
        CO_TRY(co_saver_step(t->saver, t->given));
    co_profiler_leave(t->profiler);
    t->checkpoint_ns += co_clock_ns() - start_ns;
    return CO_OK;
}

/* Call the program's callback on every rank; if one wants to stop, all do. */
static co_status trainer_ask_program(trainer *t)
{
    const co_job *job = t->job;
    co_step_info info = {.size = sizeof(info),
                         .epoch = t->epoch,
                         .rank = co_comm_rank(t->comm),
                         .ranks = co_comm_size(t->comm),
                         .model = job->model};
    int32_t stop;

    if (!job->on_step)
        return CO_OK;
    CO_TRY(trainer_settle(t)); /* it sees the model after this step */
    info.step = t->step;
    info.loss = t->last_step.loss;
    info.lr = co_distributed_lr(t->distributed);
    stop = job->on_step(job->on_step_arg, &info);
    CO_TRY(co_comm_allreduce(t->comm, &stop, &stop, 1, CO_I32, CO_MAX));
    if (stop)
        t->stop_reason = CO_STOP_CALLBACK;
    return CO_OK;
}

/* What the last evaluation found. */
static co_checkpoint_test trainer_last_test(const trainer *t)
{
    const co_watched by = co_best_by(&t->job->spec.stop, &t->last);

    return (co_checkpoint_test){t->last.has_test ? t->last.test_accuracy : (double)NAN, by.metric,
                                co_watched_value(&by, &t->last)};
}

/* Save a checkpoint at the end of an epoch if one is due. */
static co_status trainer_save_epoch(trainer *t)
{
    const co_saver_epoch_end end = {.epoch = t->epoch,
                                    .step = t->step,
                                    .test = trainer_last_test(t),
                                    .best = t->improved,
                                    .last = t->step >= t->info.total_steps ||
                                            t->stop_reason != CO_STOP_NONE};
    const uint64_t start_ns = co_clock_ns();
    const co_status st = co_saver_epoch(t->saver, &end);

    t->checkpoint_ns += co_clock_ns() - start_ns;
    return st;
}

/* The run ends in the middle of an epoch. The state is captured first, so that resuming continues
   as if it had not, and kept whatever becomes of the evaluation. */
static co_status trainer_end_within(trainer *t)
{
    co_checkpoint_test test;
    co_status st;

    CO_TRY(co_saver_last(t->saver, t->step));
    st = trainer_end_epoch(t);
    test = trainer_last_test(t);
    CO_TRY(co_saver_tested(t->saver, st == CO_OK ? &test : NULL));
    trainer_next_epoch(t);
    return st;
}

/* Run the rest of the epoch (a restored trainer may start in the middle), then advance to the
   next. */
static co_status trainer_epoch(trainer *t)
{
    const uint64_t steps = t->info.steps_per_epoch, total = t->info.total_steps;

    t->epoch_start_ns = co_clock_ns();
    while (trainer_epoch_given(t) < steps && t->given < total && t->stop_reason == CO_STOP_NONE) {
        co_profiler_begin_step(t->profiler, t->given);
        co_profiler_enter(t->profiler, CO_PROFILE_SUPERVISE);
        CO_TRY(co_rank_control_before_step(&t->control, t->given));
        co_profiler_leave(t->profiler);
        if (t->control.leaving)
            return trainer_settle(t);
        CO_TRY(trainer_step(t));
        CO_TRY(trainer_after_step(t));
        CO_TRY(trainer_ask_program(t));
        co_profiler_end_step(t->profiler);
    }
    CO_TRY(trainer_settle(t));
    if (t->epoch_step == steps) {
        CO_TRY(trainer_end_epoch(t));
        trainer_next_epoch(t);
        return trainer_save_epoch(t);
    }
    return trainer_end_within(t);
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
    t->begun_ns = co_clock_ns();
    t->until = t->info.total_steps;
    /* A state may be of the last step of an epoch that has not been evaluated yet. */
    while (t->stop_reason == CO_STOP_NONE && (t->step < t->info.total_steps || t->epoch_step > 0)) {
        CO_TRY(trainer_epoch(t));
        if (t->control.leaving)
            return CO_OK;
        CO_TRY(co_rank_control_after_epoch(&t->control));
    }
    CO_TRY(trainer_finish(t));
    CO_TRY(trainer_find_stragglers(t));
    CO_TRY(trainer_gather_times(t));
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
        st = trainer_choose_kernels(&t);
    if (st == CO_OK)
        st = trainer_say_kernels(&t);
    if (st == CO_OK)
        st = trainer_show_start(&t);
    if (st == CO_OK)
        st = trainer_open_saver(&t);
    if (st == CO_OK && job->state && t.epoch_step == 0)
        trainer_check_stop(&t, &t.last);
    if (st == CO_OK)
        st = trainer_run(&t);
    trainer_note_failure(&t, st);
    trainer_note_stop(&t);
    if (st == CO_OK)
        st = trainer_profile_write(&t);
    if (st != CO_OK && job->listener) /* closing pending operations may end the process */
        co_signal_thread_end(job->listener, st, co_error_message());
    trainer_close(&t);
    return st;
}
