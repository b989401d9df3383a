/* decode.c - the passes of a model that decodes, and the memory between them. */
#include "model/decode.h"

#include <inttypes.h>
#include <string.h>

#include "core/mem.h"
#include "device/device.h"
#include "ops/ops.h"

#define DECODE_MAX_FLOATS (INT64_C(1) << 34)

void co_model_drop_kept(co_model *model)
{
    for (int i = 0; model->kept && i < model->graph->n_node; i++)
        co_free(model->kept[i]);
    co_free(model->kept);
    model->kept = NULL;
}

/* The memory that co_model_drop_kept frees, all of it or, where it fails, a part. */
static co_status decode_allocate(co_model *model)
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

static co_status decode_keep(co_model *model)
{
    co_status st = decode_allocate(model);

    if (st != CO_OK)
        co_model_drop_kept(model);
    return st;
}

const co_node *co_model_looks_ahead(const co_model *model)
{
    for (int i = 0; i < model->graph->n_node; i++) {
        const co_node *node = &model->graph->node[i];

        if (node->op->along == CO_ALONG_ANY)
            return node;
        if (node->op == &co_op_attention && !((const co_attention_attr *)node->attr)->causal)
            return node;
    }
    return NULL;
}

static co_status decode_check_network(const co_model *model)
{
    const co_var *input = &model->graph->var[co_model_input(model)->var];
    const co_node *ahead = co_model_looks_ahead(model);

    if (input->dtype != CO_I32 || input->shape.ndim != 2 || !model->positions)
        return co_fail(CO_E_USAGE, "the network is no language model: it does not predict a token "
                                   "at each position of a sequence of tokens");
    if (ahead)
        return co_fail(CO_E_USAGE,
                       "layer %s: %s looks at later positions, so the network writes no text",
                       ahead->name, ahead->op->name);
    return CO_OK;
}

co_status co_model_decode(co_model *model)
{
    if (model->decode)
        return model->kept ? CO_OK : decode_keep(model);
    if (!co_device_is_host(model->store->device))
        return co_fail(CO_E_UNSUPPORTED, "text is written on the host alone");
    CO_TRY(decode_check_network(model));
    co_model_drop_plans(model);
    CO_TRY(co_graph_decode(&model->decode, model->graph));
    model->positions = 1;
    return decode_keep(model);
}

int64_t co_model_length(const co_model *model)
{
    return model->decode;
}

static co_status decode_check(const co_model *model, const float *out, const int32_t *token,
                              uint64_t count, int64_t position)
{
    if (!model->kept)
        return co_fail(CO_E_USAGE, "next: co_model_decode has not prepared the model for it");
    if (!out || !token)
        return co_fail(CO_E_USAGE, "next: no %s", token ? "room for the logits" : "tokens");
    if (position < 0 || position > model->read)
        return co_fail(CO_E_USAGE,
                       "next: tokens at position %" PRId64 ", and %" PRId64 " have been read",
                       position, model->read);
    if (count < 1 || count > (uint64_t)(model->decode - position))
        return co_fail(CO_E_USAGE,
                       "next: %" PRIu64 " tokens at position %" PRId64 "; the network has %" PRId64
                       " positions",
                       count, position, model->decode);
    return co_model_check_indices(model, co_model_input(model), token, count, "next");
}

co_status co_model_next(float *out, co_model *model, const int32_t *token, uint64_t count,
                        int64_t position)
{
    const co_decoding decoding = {.position = position, .kept = model->kept};
    const size_t classes = (size_t)model->classes;
    const float *output;

    CO_TRY(decode_check(model, out, token, count, position));
    model->read = position; /* what follows is lost, also where a pass fails */
    CO_TRY(co_model_outputs(&output, model, token, count, &decoding));
    memcpy(out, output + (count - 1) * classes, classes * sizeof(*out));
    model->read = position + (int64_t)count;
    return CO_OK;
}
