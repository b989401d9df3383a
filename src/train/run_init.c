/* run_init.c - the config's `init`: whether its weights know the tokens of the data, and loading
   them into the model and its replicas. */
#include "data/data.h"
#include "model/initial_weights.h"
#include "train/run_internal.h"
#include "train/rundir.h"

/* Whether weights that stand for tokens are loaded. */
static bool run_init_knows_tokens(const co_job *job, const co_value *init)
{
    const co_graph *graph = job->model->graph;

    for (int i = 0; i < graph->n_node; i++) {
        const co_node *node = &graph->node[i];

        if (node->op->limit && node->n_param > 0 &&
            !co_init_skips(init, &graph->param[node->param[0]]))
            return true;
    }
    return false;
}

static co_status run_check_init(const co_job *job)
{
    const co_value *init = job->spec.init, *weights = init;

    if (init && init->kind == CO_VALUE_MAP)
        weights = co_value_get(init, "weights");
    if (!weights || weights->kind != CO_VALUE_SCALAR || !run_init_knows_tokens(job, init))
        return CO_OK;
    return co_rundir_check_weights(weights->text, job->train);
}

co_status co_run_init(const co_job *job)
{
    const co_spec *spec = &job->spec;

    CO_TRY(run_check_init(job));
    CO_TRY(co_init_load(job->model, spec->init, spec->config));
    for (int64_t rank = 0; job->replica && rank < spec->ranks; rank++)
        CO_TRY(co_init_load(job->replica[rank], spec->init, spec->config));
    return CO_OK;
}
