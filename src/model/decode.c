/* decode.c - the passes of a model that decodes, and the memory between them. */
#include "model/decode.h"

#include <inttypes.h>

#include "core/mem.h"
#include "device/device.h"

#define DECODE_MAX_FLOATS (INT64_C(1) << 34)

void co_model_drop_kept(co_model *model)
{
    for (int i = 0; model->kept && i < model->graph->n_node; i++)
        co_free(model->kept[i]);
    co_free(model->kept);
    model->kept = NULL;
}

static co_status decode_keep(co_model *model)
{
    const co_graph *graph = model->graph;

    model->kept = co_calloc((size_t)graph->n_node, sizeof(*model->kept));
    if (!model->kept)
        return CO_E_NOMEM;
    for (int i = 0; i < graph->n_node; i++) {
        const co_node *node = &graph->node[i];
        const int64_t each =
            node->op->keeps ? node->op->keeps(&graph->var[node->in[0]].shape, node->attr) : 0;

        if (each > DECODE_MAX_FLOATS / model->decode)
            return co_fail(CO_E_NOMEM, "layer %s: too much to keep of %" PRId64 " positions",
                           node->name, model->decode);
        if (each == 0)
            continue;
        model->kept[i] = co_calloc((size_t)(each * model->decode), sizeof(float));
        if (!model->kept[i])
            return CO_E_NOMEM;
    }
    return CO_OK;
}

co_status co_model_decode(co_model *model)
{
    if (!co_device_is_host(model->store->device))
        return co_fail(CO_E_UNSUPPORTED, "text is written on the host alone");
    co_model_drop_plans(model);
    CO_TRY(co_graph_decode(&model->decode, model->graph));
    model->positions = 1;
    return decode_keep(model);
}

int64_t co_model_length(const co_model *model)
{
    return model->decode;
}

co_status co_model_next(const float **logits, co_model *model, const int32_t *token, uint64_t n,
                        int64_t position)
{
    const co_decoding decoding = {.position = position, .kept = model->kept};
    const co_run run = {.seed = model->seed, .values = model->store->values, .decoding = &decoding};
    const co_graph *graph = model->graph;
    const float *output, *loss;
    co_plan *plan = NULL;

    if (position < 0 || n < 1 || (int64_t)n > model->decode - position)
        return co_fail(CO_E_USAGE, "%" PRIu64 " tokens at %" PRId64 " of %" PRId64 " positions", n,
                       position, model->decode);
    CO_TRY(co_model_plan(&plan, model, n, false));
    for (int i = 0; i < graph->n_input; i++) { /* zeros for the loss, which is not used */
        const bool tokens = graph->input[i].var == co_graph_find_input(graph, CO_FIELD_INPUT);

        CO_TRY(co_plan_feed(plan, graph->input[i].name, tokens ? token : NULL, n * sizeof(*token)));
    }
    CO_TRY(co_plan_forward(plan, &run));
    CO_TRY(co_plan_results(&output, &loss, plan));
    *logits = output + (n - 1) * (uint64_t)model->classes;
    return CO_OK;
}
