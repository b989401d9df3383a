/*
 * trainer_end.c - the end of a run: the strategy's last synchronization, the last evaluation,
 * saving.
 */
#include <math.h>
#include <string.h>

#include "comm/watch.h"
#include "core/clock.h"
#include "data/data.h"
#include "step/distributed.h"
#include "telemetry/telemetry.h"
#include "train/evaluate.h"
#include "train/rundir.h"
#include "train/trainer_internal.h"

/* Save the trained weights to a file of their own and put the averaged ones in their place. */
static co_status trainer_take_ema(trainer *t)
{
    if (!t->ema)
        return CO_OK;
    CO_TRY(trainer_average_buffers(t));
    if (co_comm_rank(t->comm) == 0)
        CO_TRY(co_rundir_save_trained(t->job->result->train.run_dir, t->job->model));
    return trainer_swap_ema(t);
}

static co_status trainer_end_checkpoints(trainer *t)
{
    const uint64_t start_ns = co_clock_ns();
    const co_status st = co_saver_finish(t->saver);

    t->checkpoint_ns += co_clock_ns() - start_ns;
    return st;
}

co_status trainer_save(trainer *t)
{
    co_train_summary *out = &t->job->result->train;
    const co_strategy_counts counts = co_distributed_report(t->distributed);
    co_event event = t->last;
    co_summary summary = {.info = &t->info,
                          .last = &event,
                          .weights_sha256 = out->weights_sha256,
                          .start_seconds = t->start_seconds,
                          .reached_seconds = t->reached_seconds,
                          .stop_metric = t->stop_metric,
                          .stop_reason =
                              t->step < t->info.total_steps ? t->stop_reason : CO_STOP_NONE,
                          .straggler = t->straggler.rank,
                          .n_straggler = t->straggler.n,
                          .shards = (uint64_t)t->job->spec.shards,
                          .counts_name = counts.name,
                          .counts = counts.count,
                          .n_counts = counts.n};

    co_watch_phase(t->comm, CO_PHASE_SAVING);
    CO_TRY(trainer_end_checkpoints(t));
    summary.checkpoints = t->job->result->saver.made;
    summary.checkpoint_failures = t->job->result->saver.failed;
    event.kind = CO_EVENT_END;
    event.best = t->best.figures;
    trainer_set_spent(&event, t); /* including the strategy's work at the end */
    event.samples_per_second = trainer_rate(t->samples, t->train_seconds);
    CO_TRY(co_rundir_save_weights(out->weights_sha256, out->run_dir, t->job->model));
    event.wall_seconds = trainer_wall_seconds(t);
    CO_TRY(co_summary_write(out->run_dir, &summary));
    out->test_accuracy = event.has_test ? event.test_accuracy : (double)NAN;
    out->test_loss = event.has_test ? event.test_loss : (double)NAN;
    out->train_accuracy = event.train_accuracy;
    out->train_loss = event.train_loss;
    out->train_seconds = event.train_seconds;
    out->samples_per_second = event.samples_per_second;
    out->steps = t->step;
    if (event.has_test)
        out->n_metric = co_measures_name(out->metric, &t->job->spec.metrics, event.test_metric);
    trainer_set_times(&t->times[0], t);
    event.times = t->times;
    CO_TRY(trainer_emit(t, &event));
    return co_saver_status(&t->job->result->saver);
}

/* Fails if every step was skipped. If ranks skip steps independently, one step of any rank is
   enough. */
static co_status trainer_check_moved(const trainer *t)
{
    int64_t taken = (int64_t)(t->step - co_distributed_skipped_steps(t->distributed));

    if (!t->overflow.kept || t->step == 0) /* without a loss scale no step is skipped */
        return CO_OK;
    CO_TRY(co_comm_allreduce(t->comm, &taken, &taken, 1, CO_I64, CO_MAX));
    if (taken > 0)
        return CO_OK;
    return co_fail(
        CO_E_FAILED,
        "no step has moved the weights: the gradients overflowed in all %llu, the last "
        "with a loss scale of %g; check `normalize`, train for longer, or take a smaller "
        "loss_scale or bf16",
        (unsigned long long)t->step, co_distributed_loss_scale(t->distributed));
}

co_status trainer_finish(trainer *t)
{
    uint64_t start_ns;
    co_tested test;

    CO_TRY(trainer_check_moved(t));
    CO_TRY(co_distributed_finish(t->distributed));
    CO_TRY(trainer_take_ema(t));
    if (t->job->test && !co_distributed_ends_with_finish(t->distributed))
        return CO_OK;
    CO_TRY(trainer_average_buffers(t));
    if (!t->job->test)
        return CO_OK;
    start_ns = co_clock_ns();
    CO_TRY(co_trainer_evaluate(&test, t->comm, t->job->model, &t->test));
    t->evaluate_ns += co_clock_ns() - start_ns;
    trainer_set_test(&t->last, t, &test);
    return CO_OK;
}

void trainer_check_stop(trainer *t, const co_event *last)
{
    const co_stop_at *stop = &t->job->spec.stop;
    char line[160];

    if (t->stop_reason == CO_STOP_CALLBACK)
        return;
    t->stop_reason = co_best_find_stop(&t->stop_metric, &t->best, stop, last);
    if (t->stop_reason == CO_STOP_PATIENCE && t->step >= t->info.total_steps)
        t->stop_reason = CO_STOP_NONE; /* the run was at its end anyway */
    if (t->stop_reason == CO_STOP_NONE)
        return;
    if (t->stop_reason == CO_STOP_REACHED)
        t->reached_seconds = last->wall_seconds;
    trainer_say(t, co_best_stop_message(line, sizeof(line), &t->best, stop, last));
}

co_status trainer_find_stragglers(trainer *t)
{
    const double seconds = (double)t->step_ns * 1e-9 + co_loader_wait_seconds(t->train.loader);
    const co_rank_work own = {t->step - t->first_step, seconds, (double)t->waited_ns * 1e-9};
    char line[128];

    CO_TRY(co_stragglers_find(&t->straggler, t->comm, &own));
    for (int i = 0; i < t->straggler.n; i++)
        trainer_say(t, co_straggler_message(line, sizeof(line), &t->straggler.rank[i]));
    return CO_OK;
}
