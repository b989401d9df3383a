/*
 * trainer_step.c - one step of a rank, in two halves: queueing its work and reading its results.
 *
 * On the host the second half follows the first at once. On a device the next step, or the next few
 * of a launch, is queued before the results of those before are read, so that the device does not
 * wait for the host. All results are read first (trainer_settle) before a state is saved, an epoch
 * ends, the run stops or the model is shown.
 */
#include <math.h>
#include <string.h>

#include "comm/queued.h"
#include "comm/watch.h"
#include "core/clock.h"
#include "data/data.h"
#include "model/metrics.h"
#include "step/distributed.h"
#include "train/trainer_internal.h"

_Static_assert(CO_MODEL_LATE_STEPS <= CO_VALUES_KEPT, "the store has room for their values");

/* Whether steps are only queued, and their results read once the queue has run. */
static bool step_is_late(const trainer *t)
{
    return t->job->model->store->ring;
}

static trainer_given *step_of(trainer *t, uint64_t step)
{
    return &t->in_flight[step % CO_MODEL_LATE_STEPS];
}

co_status trainer_open_late(trainer *t)
{
    for (uint64_t i = 0; i < TRAINER_HALVES * t->together; i++)
        CO_TRY(co_values_late_open(&t->replay.found[i], t->job->model->store));
    return CO_OK;
}

void trainer_close_late(trainer *t)
{
    const co_store *store = t->job->model->store;

    (void)co_store_wait(store, co_comm_timeout(t->comm));
    for (uint64_t i = 0; i < TRAINER_HALVES * t->together; i++)
        co_values_late_close(&t->replay.found[i], store);
}

/* Micro-batch `k` of a rank's part of a batch, or of its shard. */
static co_batch step_slice(const trainer *t, const co_batch *batch, uint64_t k)
{
    const uint64_t parts = (uint64_t)t->job->spec.accumulate;
    const uint64_t begin = batch->count * k / parts, end = batch->count * (k + 1) / parts;

    return co_batch_slice(batch, begin, end - begin);
}

/* This rank's shard `i`, of which the batch has one after another. */
static co_batch step_shard(const trainer *t, const co_batch *batch, int i)
{
    const co_sampler *sampler = t->train.sampler;
    uint64_t begin = 0;

    for (int s = 0; s < i; s++)
        begin += co_sampler_local(sampler, batch->step, t->shards.first + s);
    return co_batch_slice(batch, begin,
                          co_sampler_local(sampler, batch->step, t->shards.first + i));
}

/* Shards of this rank in a step. */
static uint64_t step_shards(const trainer *t)
{
    return t->shards.tree ? (uint64_t)t->shards.n : 1;
}

uint64_t trainer_parts(const trainer *t)
{
    return (uint64_t)t->job->spec.accumulate * step_shards(t);
}

co_batch trainer_part(const trainer *t, const co_batch *batch, uint64_t part)
{
    const uint64_t parts = (uint64_t)t->job->spec.accumulate;
    const co_batch of = t->shards.tree ? step_shard(t, batch, (int)(part / parts)) : *batch;

    return step_slice(t, &of, part % parts);
}

/* The part of a step's samples that are here. */
static double step_share(const co_batch *batch)
{
    return batch->global ? (double)batch->count / (double)batch->global : 0;
}

/* Add the result of a forward pass. */
static co_status step_count(co_result *seen, trainer *t, co_result *part, int shard)
{
    if (!co_overflow_forgive(&t->overflow, part)) {
        if (!isfinite(part->loss_sum))
            return trainer_diverged(t, "the loss is");
        co_measures_take(&t->measures, t->job->model, shard);
    }
    co_metrics_add(seen, part);
    return CO_OK;
}

/* Without a queue the result is available at once; with one, step_take_late reads it. `i`: of this
   rank's shards. */
static co_status step_forward(co_result *seen, trainer *t, const co_batch *slice, int i, uint64_t k)
{
    const uint64_t part = (uint64_t)i * (uint64_t)t->job->spec.accumulate + k;
    co_result result;

    if (step_is_late(t))
        return co_model_forward_late(t->job->model, slice, t->now->place, part);
    CO_TRY(co_distributed_announce(t->distributed, slice));
    CO_TRY(co_model_forward(&result, t->job->model, slice));
    return step_count(seen, t, &result, t->shards.first + i);
}

/* Forward and backward of this rank's part of a batch, or of its shard `i`, in micro-batches.
   `more`: further shards of this rank follow. */
static co_status step_compute(co_result *seen, trainer *t, const co_batch *batch, int i, bool more)
{
    const uint64_t parts = (uint64_t)t->job->spec.accumulate;

    for (uint64_t k = 0; k < parts; k++) {
        const co_batch slice = step_slice(t, batch, k);
        const bool last = k + 1 == parts;

        CO_TRY(step_forward(seen, t, &slice, i, k));
        if (last && t->shards.tree)
            CO_TRY(co_shards_forward_done(&t->shards, seen, step_share(batch), !more));
        if (last && !more && !step_is_late(t))
            CO_TRY(co_recent_post(&t->recent, t->given + 1, t->now->meet,
                                  t->shards.tree ? NULL : seen));
        CO_TRY(co_distributed_backward(t->distributed, &slice, more || !last));
    }
    return CO_OK;
}

/* The same for each shard of this rank; `seen` gets their sum. */
static co_status step_compute_shards(co_result *seen, trainer *t, const co_batch *batch)
{
    co_shards_start(&t->shards);
    for (int i = 0; i < t->shards.n; i++) {
        const co_batch shard = step_shard(t, batch, i);
        const bool more = i + 1 < t->shards.n;
        co_result figures = {0};

        CO_TRY(step_compute(&figures, t, &shard, i, more));
        if (more)
            CO_TRY(co_distributed_next_shard(t->distributed));
        co_metrics_add(seen, &figures);
    }
    return CO_OK;
}

static co_status step_read_batch(trainer_given *g, trainer *t, uint64_t step)
{
    co_watch_step(t->comm, step + 1);
    co_watch_phase(t->comm, CO_PHASE_READING);
    g->read_ns = co_clock_ns();
    co_profiler_enter(t->profiler, CO_PROFILE_DATA);
    CO_TRY(co_loader_next(&g->batch, t->train.loader));
    co_profiler_leave(t->profiler);
    co_watch_phase(t->comm, CO_PHASE_COMPUTING);
    g->start_ns = co_clock_ns();
    return CO_OK;
}

/* The update and all that follows from it; with shards g->seen becomes that of all ranks. */
static co_status step_update(trainer_given *g, trainer *t)
{
    CO_TRY(co_distributed_step(t->distributed));
    g->own = g->seen;
    co_profiler_enter(t->profiler, CO_PROFILE_SYNC);
    if (t->shards.tree)
        CO_TRY(co_shards_finish(&g->seen, &t->shards));
    co_profiler_leave(t->profiler);
    co_overflow_settle(&t->overflow);
    co_profiler_enter(t->profiler, CO_PROFILE_EMA);
    if (t->ema)
        co_ema_update(t->ema, t->job->model->store);
    co_profiler_leave(t->profiler);
    return CO_OK;
}

/* All that is the same in each step, once its batch and its values are there. */
co_status trainer_work(void *arg)
{
    trainer *t = arg;
    trainer_given *g = t->now;

    co_overflow_keep(&t->overflow);
    if (t->shards.tree)
        CO_TRY(step_compute_shards(&g->seen, t, &g->batch));
    else
        CO_TRY(step_compute(&g->seen, t, &g->batch, 0, false));
    return step_update(g, t);
}

/* The batches of the next `n` steps, on a device at their places. */
static co_status step_read(trainer *t, uint64_t n)
{
    const int first = t->replay.half * (int)t->together, last = first + (int)n - 1;

    for (uint64_t i = 0; i < n; i++) {
        trainer_given *g = step_of(t, t->given + i);

        g->place = first + (int)i;
        g->last = last;
        g->together = i == 0 ? (int)n : 0;
        g->seen = (co_result){.count = 0};
        CO_TRY(step_read_batch(g, t, t->given + i));
        if (step_is_late(t))
            CO_TRY(trainer_stage(t, g));
    }
    return CO_OK;
}

static co_status step_begin(trainer *t, trainer_given *g, uint64_t step)
{
    t->now = g;
    if (t->ema)
        co_ema_begin(t->ema, t->job->model->store, step + 1);
    CO_TRY(co_distributed_begin(t->distributed, &g->batch));
    g->meet = co_distributed_synchronizes(t->distributed);
    if ((step + 1) % (uint64_t)t->job->spec.log_every == 0)
        co_distributed_want_norm(t->distributed);
    return CO_OK;
}

co_status trainer_give_plainly(trainer *t, trainer_given *g, uint64_t step)
{
    CO_TRY(step_begin(t, g, step));
    return trainer_work(t);
}

/* Do, or queue, the work of the next step. */
static co_status step_give_one(trainer *t)
{
    trainer_given *g = step_of(t, t->given);
    co_comm_give give = CO_GIVE_PLAINLY;
    trainer_capture *kept = NULL;

    if (!trainer_can_replay(t))
        return trainer_give_plainly(t, g, t->given);
    CO_TRY(step_begin(t, g, t->given));
    CO_TRY(trainer_agree(&give, &kept, t, 1));
    if (give != CO_GIVE_PLAINLY)
        return trainer_replay_work(t, kept, give, 1, trainer_work);
    CO_TRY(trainer_work(t));
    trainer_note_given(t, kept);
    return CO_OK;
}

/* Do, or queue, the next `n` steps. */
static co_status step_give(trainer *t, uint64_t n)
{
    const co_store *store = t->job->model->store;
    uint64_t start_ns;

    CO_TRY(step_read(t, n));
    start_ns = step_of(t, t->given)->start_ns;
    CO_TRY(n == 1 ? step_give_one(t) : trainer_give_together(t, n));
    CO_TRY(co_distributed_queue_norm(t->distributed));
    if (step_is_late(t))
        CO_TRY(co_values_late_queue(&t->replay.found[step_of(t, t->given)->last], store));
    t->replay.half = (t->replay.half + 1) % TRAINER_HALVES;
    t->given += n;
    t->step_ns += co_clock_ns() - start_ns;
    return CO_OK;
}

/* Wait for a queued step, the only wait for it, and read its results. */
static co_status step_take_late(trainer_given *g, trainer *t)
{
    const uint64_t parts = (uint64_t)t->job->spec.accumulate, shards = step_shards(t);
    co_result shard[CO_MODEL_MAX_LATE] = {{0}};

    if (!step_is_late(t))
        return CO_OK;
    CO_TRY(co_comm_wait_fence(t->comm, t->replay.found[g->last].done));
    CO_TRY(co_distributed_take(t->distributed, t->replay.found[g->place].values));
    for (uint64_t i = 0; i < shards; i++) {
        for (uint64_t k = 0; k < parts; k++) {
            co_result part;

            co_model_take_late(&part, t->job->model, g->place, i * parts + k);
            CO_TRY(step_count(&shard[i], t, &part, t->shards.first + (int)i));
        }
        co_metrics_add(&g->seen, &shard[i]);
    }
    g->own = g->seen;
    if (t->shards.tree)
        CO_TRY(co_shards_take_late(&g->seen, &t->shards, shard));
    return co_recent_post(&t->recent, t->step + 1, g->meet, t->shards.tree ? NULL : &g->seen);
}

/* Add the step to t->seen: of this rank or, with shards, of all ranks, on rank 0 only. */
static co_status step_account(trainer *t, const trainer_given *g)
{
    co_rank_means_add(&t->means, &g->own);
    co_profiler_enter(t->profiler, CO_PROFILE_SYNC);
    CO_TRY(co_measures_join(&t->measures));
    co_profiler_leave(t->profiler);
    if (!t->shards.tree || co_comm_rank(t->comm) == 0)
        co_metrics_add(&t->seen, &g->seen);
    return co_recent_finish(&t->recent, &g->seen, g->batch.global,
                            t->train_seconds + trainer_epoch_seconds(t));
}

static void step_say_overflow(trainer *t)
{
    char line[128];

    if (t->overflow.kept && co_distributed_skipped(t->distributed))
        trainer_say(t,
                    co_scaler_message(line, sizeof(line), co_distributed_scaler(t->distributed)));
}

/* Read the results of the oldest step that has not been read, and report it. */
static co_status step_take(trainer *t)
{
    trainer_given *g = step_of(t, t->step);
    const uint64_t begin_ns = co_clock_ns();

    CO_TRY(step_take_late(g, t));
    co_profiler_enter(t->profiler, CO_PROFILE_METRICS);
    CO_TRY(step_account(t, g));
    step_say_overflow(t);
    co_profiler_leave(t->profiler);
    trainer_set_last(t, g);
    t->taken_ns = co_clock_ns();
    t->step_ns += t->taken_ns - begin_ns;
    t->step_sync_ns = co_distributed_sync_ns(t->distributed);
    if (t->step == t->first_step)
        t->start_seconds = co_clock_seconds(t->job->start_ns, co_clock_ns());
    t->step++;
    t->epoch_step++;
    t->epoch_samples += g->batch.global;
    t->local_samples += (double)g->batch.count;
    co_profiler_enter(t->profiler, CO_PROFILE_LOG);
    if (t->n_sink)
        CO_TRY(trainer_emit_step(t));
    co_profiler_leave(t->profiler);
    return CO_OK;
}

/* Until at most `left` steps are in flight. */
static co_status step_take_until(trainer *t, uint64_t left)
{
    while (t->given - t->step > left) {
        const uint64_t waited_ns = co_watch_waited_ns(t->comm);

        CO_TRY(step_take(t));
        t->waited_ns += co_watch_waited_ns(t->comm) - waited_ns;
    }
    return CO_OK;
}

co_status trainer_step(trainer *t)
{
    const uint64_t waited_ns = co_watch_waited_ns(t->comm), n = trainer_next_together(t);

    CO_TRY(step_give(t, n));
    t->waited_ns += co_watch_waited_ns(t->comm) - waited_ns;
    return step_take_until(t, step_is_late(t) ? n : 0);
}

co_status trainer_settle(trainer *t)
{
    return step_take_until(t, 0);
}
