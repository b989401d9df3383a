/* evaluate.c - evaluates the test split: each sample once, on any number of ranks. */
#include "train/evaluate.h"

#include <string.h>

#include "comm/queued.h"
#include "comm/tree.h"
#include "comm/watch.h"
#include "core/clock.h"
#include "data/data.h"
#include "model/metrics.h"
#include "train/measures.h"

/* Ranks whose part of the training split has samples; *own: this rank is one of them. */
static int evaluate_trained_ranks(bool *own, const co_comm *comm, const co_sampler *train)
{
    int trained = 0;

    for (int rank = 0; rank < co_comm_size(comm); rank++)
        trained += co_sampler_part(train, rank) > 0;
    *own = co_sampler_part(train, co_comm_rank(comm)) > 0;
    return trained;
}

co_status co_trainer_average_buffers(co_comm *comm, co_model *model, const co_sampler *train)
{
    const co_store *store = model->store;
    const co_coll_args args = {.coll = CO_COLL_ALLREDUCE,
                               .in = store->buffer,
                               .out = store->buffer,
                               .count = store->n_buffer,
                               .dtype = CO_F32,
                               .op = CO_SUM,
                               .queue = store->queue};
    bool own;
    int trained;

    if (store->n_buffer == 0 || co_comm_size(comm) == 1 || model->norm_comm)
        return CO_OK;
    trained = evaluate_trained_ranks(&own, comm, train);
    if (!own)
        store->vector->zero(store->queue, store->buffer, store->n_buffer);
    CO_TRY(co_comm_enqueue_run(comm, &args));
    store->vector->divide(store->queue, store->buffer, (float)trained, store->n_buffer);
    return CO_OK;
}

/* Evaluate each shard of the batch on its own, so that results do not depend on which rank computes
   it; shard[s] sums up shard s. */
static co_status evaluate_shards(co_result *shard, co_measures *measures, co_model *model,
                                 const co_batch *batch, const co_feed *feed)
{
    const int rank = co_comm_rank(measures->comm);
    uint64_t begin = 0;

    for (int s = co_tree_first(feed->tree, rank); s < co_tree_first(feed->tree, rank + 1); s++) {
        const uint64_t count = co_sampler_local(feed->sampler, batch->step, s);
        const co_batch part = co_batch_slice(batch, begin, count);
        co_result figures;

        CO_TRY(co_model_evaluate_drawn(&figures, model, &part, feed->images));
        co_metrics_add(&shard[s], &figures);
        co_measures_take(measures, model, s);
        begin += count;
    }
    return CO_OK;
}

static co_status evaluate_batch(co_result *own, co_result *shard, co_measures *measures,
                                co_model *model, const co_feed *feed)
{
    co_batch batch;
    co_result part;

    CO_TRY(co_loader_next(&batch, feed->loader));
    if (feed->tree) {
        CO_TRY(evaluate_shards(shard, measures, model, &batch, feed));
    } else {
        CO_TRY(co_model_evaluate_drawn(&part, model, &batch, feed->images));
        co_metrics_add(own, &part);
        co_measures_take(measures, model, 0);
    }
    co_watch_beat(measures->comm);
    return CO_OK;
}

/* Evaluate this rank's part. */
static co_status evaluate_batches(co_result *own, co_result *shard, co_measures *measures,
                                  co_model *model, const co_feed *feed)
{
    const uint64_t steps = co_sampler_steps(feed->sampler);

    for (uint64_t step = 0; step < steps; step++)
        CO_TRY(evaluate_batch(own, shard, measures, model, feed));
    return co_measures_join(measures);
}

/* The first batch compiles, and counts only where it is the only one. */
static co_status evaluate_some(double *seconds, co_measures *measures, co_model *model,
                               const co_feed *feed, double most)
{
    const uint64_t steps = co_sampler_steps(feed->sampler);
    co_result own = {.count = 0}, shard[CO_TREE_MAX_LEAVES] = {{0}};
    uint64_t start = co_clock_ns(), done = 0;

    while (done < steps && (done < 2 || co_clock_seconds(start, co_clock_ns()) < most)) {
        CO_TRY(evaluate_batch(&own, shard, measures, model, feed));
        if (done++ == 0 && steps > 1)
            start = co_clock_ns();
    }
    *seconds =
        co_clock_seconds(start, co_clock_ns()) * (double)steps / (double)(done > 1 ? done - 1 : 1);
    return CO_OK;
}

co_status co_trainer_time_evaluation(double *seconds, co_comm *comm, co_model *model,
                                     const co_feed *feed, double most)
{
    static const co_metric_set none = {.n = 0};
    co_measures measures;
    co_status st;

    CO_TRY(co_measures_open(&measures, model->metrics ? model->metrics : &none, comm, feed->tree));
    st = evaluate_some(seconds, &measures, model, feed, most);
    co_measures_close(&measures);
    return st;
}

co_status co_trainer_evaluate(co_tested *out, co_comm *comm, co_model *model, const co_feed *feed)
{
    static const co_metric_set none = {.n = 0};
    const int shards = feed->tree ? feed->tree->leaves : 0;
    co_result shard[CO_TREE_MAX_LEAVES];
    co_measures measures;
    co_status st;

    memset(out, 0, sizeof(*out));
    memset(shard, 0, (size_t)shards * sizeof(*shard));
    CO_TRY(co_measures_open(&measures, model->metrics ? model->metrics : &none, comm, feed->tree));
    co_watch_phase(comm, CO_PHASE_EVALUATING);
    st = evaluate_batches(&out->own, shard, &measures, model, feed);
    if (st == CO_OK)
        st = co_measures_finish(out->value, &measures);
    co_measures_close(&measures);
    CO_TRY(st);
    for (int s = 0; s < shards; s++)
        co_metrics_add(&out->own, &shard[s]);
    out->all = out->own;
    return feed->tree ? co_metrics_reduce_shards(&out->all, shard, shards, comm)
                      : co_metrics_reduce(&out->all, comm);
}
