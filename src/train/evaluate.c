/*
 * evaluate.c - the test split: each sample once, whatever the number of ranks.
 */
#include "train/evaluate.h"

#include <string.h>

#include "comm/tree.h"
#include "comm/watch.h"
#include "data/data.h"
#include "model/metrics.h"

co_status co_trainer_average_buffers(co_comm *comm, co_model *model)
{
    co_store *store = model->store;

    if (store->n_buffer == 0 || co_comm_size(comm) == 1 || model->norm_comm)
        return CO_OK;
    return co_comm_allreduce(comm, store->buffer, store->buffer, store->n_buffer, CO_F32, CO_AVG);
}

/* A batch of several shards, each on its own, so that what is computed does not depend on who
   computes it; shard[s] gathers the figures of shard s. */
static co_status evaluate_shards(co_result *shard, co_model *model, const co_batch *batch,
                                 const co_feed *feed, int rank)
{
    uint64_t begin = 0;

    for (int s = co_tree_first(feed->tree, rank); s < co_tree_first(feed->tree, rank + 1); s++) {
        const uint64_t count = co_sampler_local(feed->sampler, batch->step, s);
        const co_batch part = co_batch_slice(batch, begin, count);
        co_result figures;

        CO_TRY(co_model_evaluate(&figures, model, &part));
        co_metrics_add(&shard[s], &figures);
        begin += count;
    }
    return CO_OK;
}

co_status co_trainer_evaluate(co_result *out, co_result *own, co_comm *comm, co_model *model,
                              const co_feed *feed)
{
    const uint64_t steps = co_sampler_steps(feed->sampler);
    const int shards = feed->tree ? feed->tree->leaves : 0;
    co_result shard[CO_TREE_MAX_LEAVES];

    memset(out, 0, sizeof(*out));
    memset(shard, 0, (size_t)shards * sizeof(*shard));
    co_watch_phase(comm, CO_PHASE_EVALUATING);
    for (uint64_t step = 0; step < steps; step++) {
        co_batch batch;
        co_result part;

        CO_TRY(co_loader_next(&batch, feed->loader));
        if (feed->tree) {
            CO_TRY(evaluate_shards(shard, model, &batch, feed, co_comm_rank(comm)));
        } else {
            CO_TRY(co_model_evaluate(&part, model, &batch));
            co_metrics_add(out, &part);
        }
        co_watch_beat(comm);
    }
    for (int s = 0; s < shards; s++)
        co_metrics_add(out, &shard[s]);
    if (own)
        *own = *out;
    return feed->tree ? co_metrics_reduce_shards(out, shard, shards, comm)
                      : co_metrics_reduce(out, comm);
}
