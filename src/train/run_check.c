/* run_check.c - checks that config, data and network fit each other, before ranks start. */
#include <cohort/ext/strategy.h>

#include "data/data.h"
#include "train/loader_setup.h"
#include "train/trainer.h"

co_status co_job_check_ranks(const co_job *job, int ranks)
{
    co_sampler *sampler = NULL;

    if (job->under_mpi)
        return CO_OK;
    CO_TRY(co_spec_check_ranks(&job->spec, ranks));
    CO_TRY(co_feed_sampler(&sampler, &job->spec, job->train, ranks, CO_SPLIT_TRAIN));
    co_sampler_destroy(sampler);
    if (!job->test)
        return CO_OK;
    CO_TRY(co_feed_sampler(&sampler, &job->spec, job->test, ranks, CO_SPLIT_TEST));
    co_sampler_destroy(sampler);
    return CO_OK;
}

/* Options that need ranks to have the same weights. */
static co_status run_check_apart(const co_spec *spec)
{
    const char *what = spec->ema               ? "ema"
                       : spec->sync_batch_norm ? "sync_batch_norm"
                       : spec->freeze          ? "freeze"
                                               : NULL;

    if (!what)
        return CO_OK;
    return co_value_fail(spec->strategy,
                         "%s: each rank steps by itself with the strategy '%s'; use sync, stale "
                         "or threads",
                         what, co_spec_strategy_name(spec));
}

co_status co_job_check_update(co_job *job)
{
    co_distributed_values values = co_spec_update(&job->spec);

    values.shards = (int)job->spec.shards;
    values.ranks = job->under_mpi ? 0 : (int)job->spec.ranks;
    CO_TRY(co_distributed_check(&job->needs, &job->common, &job->in_step, &values));
    if (!job->common)
        CO_TRY(run_check_apart(&job->spec));
    if (job->under_mpi && job->needs)
        return co_value_fail(job->spec.strategy,
                             "the strategy '%s' needs ranks that share memory; start them on one "
                             "machine with -n, without mpiexec",
                             co_spec_strategy_name(&job->spec));
    return CO_OK;
}

/* Values of each channel that a layer takes its statistics from, for each sample; 0: it takes none
   over the batch. */
static int64_t run_normed_values(const co_graph *graph, const co_node *node)
{
    const co_shape *shape = &graph->var[node->out[0]].shape;
    bool over_batch = false;

    for (int i = 0; node->op->is_norm && i < node->n_param; i++)
        over_batch |= graph->param[node->param[i]].spec.buffer;
    return over_batch ? co_shape_count(shape) / shape->dim[1] : 0;
}

/* Parts of a batch whose statistics are of one sample. */
static co_status run_single_parts(int *out, const co_job *job, int ranks)
{
    const co_spec *spec = &job->spec;
    const int parts = spec->shards ? (int)spec->shards : ranks;
    co_sampler *sampler = NULL;
    int single = 0;

    CO_TRY(co_feed_sampler(&sampler, spec, job->train, ranks, CO_SPLIT_TRAIN));
    for (int rank = 0; rank < parts; rank++) {
        const uint64_t most = co_sampler_local_max(sampler, rank);

        single += most > 0 && most <= (uint64_t)spec->accumulate;
    }
    co_sampler_destroy(sampler);
    *out = single;
    return CO_OK;
}

/* A single value is its own mean: then the layer gives its bias, and nothing before it learns. */
co_status co_job_check_norms(const co_job *job, int ranks)
{
    const co_graph *graph = job->model->graph;
    const co_spec *spec = &job->spec;
    const char *name = NULL;
    int single;

    for (int i = 0; i < graph->n_node && !name; i++)
        if (run_normed_values(graph, &graph->node[i]) == 1)
            name = graph->node[i].name;
    if (!name || (spec->sync_batch_norm && co_spec_batch(spec, ranks) > 1))
        return CO_OK;
    CO_TRY(run_single_parts(&single, job, ranks));
    if (single == 0)
        return CO_OK;
    return co_fail(CO_E_USAGE,
                   "batch: layer '%s' takes its mean over the batch, of which %d %s%s never more "
                   "than one sample in a pass, so that nothing before it would learn; take a "
                   "larger batch, fewer %s, or less accumulation%s",
                   name, single, spec->shards ? "shard" : "rank", single == 1 ? " has" : "s have",
                   spec->shards ? "shards" : "ranks",
                   spec->shards || !job->common || ranks == 1 ? "" : ", or sync_batch_norm: true");
}

static co_status run_check_watched(const co_watched *watched, const co_metric_form *form,
                                   const co_value *place)
{
    if (co_metric_is_defined(watched->metric, form))
        return CO_OK;
    return co_value_fail(place,
                         "%s: such a network has no %s; `cohort list metrics` says what each is, "
                         "and every network has a loss",
                         watched->metric->name, watched->metric->name);
}

/* Of a language model the loss: the likeliest token of most positions never changes, however much
   its probability does. */
static void run_watch_loss(co_stop_at *stop)
{
    if (!stop->best.metric)
        stop->best = (co_watched){&co_metric_loss, -1};
    if (!stop->awaited.metric)
        stop->awaited = (co_watched){&co_metric_loss, -1};
}

/* Every token of the data has a row of each embedding. */
static co_status run_check_tokens(const co_graph *graph, int64_t vocabulary)
{
    for (int i = 0; i < graph->n_node; i++) {
        const co_node *node = &graph->node[i];

        if (node->op->limit && graph->var[node->in[0]].producer < 0 &&
            node->op->limit(node->attr) < vocabulary)
            return co_fail(CO_E_USAGE, "layer '%s': it knows %lld tokens, and the data has %lld",
                           node->name, (long long)node->op->limit(node->attr),
                           (long long)vocabulary);
    }
    return CO_OK;
}

co_status co_job_check_model(co_job *job)
{
    co_metric_form form = co_model_form(job->model);

    if (form.positions) {
        form.bytes_per_token = co_dataset_bytes_per_token(job->test ? job->test : job->train);
        run_watch_loss(&job->spec.stop);
    }
    if (job->train && job->model->graph->n_store == 0)
        return co_fail(CO_E_USAGE, "the network has no parameter that could be trained");
    CO_TRY(co_model_check_data(job->model, job->train ? job->train : job->test));
    CO_TRY(run_check_tokens(job->model->graph,
                            co_dataset_vocabulary(job->train ? job->train : job->test)));
    for (int i = 0; i < job->spec.stop.n; i++)
        CO_TRY(run_check_watched(&job->spec.stop.target[i].of, &form, job->spec.stop_at));
    if (job->spec.stop.awaited.metric)
        CO_TRY(run_check_watched(&job->spec.stop.awaited, &form, job->spec.stop_at));
    if (job->spec.stop.best.metric)
        CO_TRY(run_check_watched(&job->spec.stop.best, &form, job->spec.checkpoint));
    return co_metric_set_fit(&job->spec.metrics, &form, job->spec.metrics_value);
}
