/* predict.c - what a network gives for samples without labels. */
#include <inttypes.h>
#include <string.h>

#include "core/mem.h"
#include "model/decode.h"
#include "model/metrics.h"
#include "model/model.h"

static bool predict_takes_tokens(const co_model *model)
{
    return model->graph->var[co_model_input(model)->var].dtype != CO_F32;
}

static co_status predict_check(const float *out, const co_model *model, const void *input,
                               uint64_t count)
{
    CO_TRY(co_model_check_count(model, count));
    if (input && out)
        return CO_OK;
    return co_fail(CO_E_USAGE, "predict: %" PRIu64 " samples without %s", count,
                   input ? "room for their logits" : "input");
}

co_status co_model_outputs(const float **out, co_model *model, const void *input, uint64_t count,
                           const co_decoding *decoding)
{
    const co_run run = {.seed = model->seed, .values = model->store->values, .decoding = decoding};
    const bool whole_logits = model->whole_logits;
    const co_graph *graph = model->graph;
    const float *loss;
    co_plan *plan = NULL;
    co_status st;

    model->last = NULL;
    model->whole_logits = true;
    st = co_model_plan(&plan, model, count, false);
    model->whole_logits = whole_logits;
    CO_TRY(st);
    for (int i = 0; i < graph->n_input; i++) { /* zeros for the loss, which is not used */
        const bool given = &graph->input[i] == co_model_input(model);

        CO_TRY(co_plan_feed(plan, graph->input[i].name, given ? input : NULL,
                            co_model_input_bytes(model, &graph->input[i], count)));
    }
    CO_TRY(co_plan_forward(plan, &run));
    return co_plan_results(out, &loss, plan);
}

co_status co_model_predict(float *out, co_model *model, const float *input, uint64_t count)
{
    const float *score;

    if (count == 0)
        return CO_OK;
    CO_TRY(predict_check(out, model, input, count));
    if (predict_takes_tokens(model))
        return co_fail(CO_E_USAGE, "predict: the network takes tokens, not values; "
                                   "co_model_predict_tokens gives it some");
    CO_TRY(co_model_outputs(&score, model, input, count, NULL));
    memcpy(out, score, co_model_rows(model, count) * (size_t)model->classes * sizeof(float));
    return CO_OK;
}

static co_status predict_check_length(const co_model *model, int64_t length, int64_t whole)
{
    const co_node *ahead;

    if (length < 1 || length > whole)
        return co_fail(CO_E_USAGE,
                       "predict: sequences of %" PRId64 " tokens; the network takes 1 to %" PRId64
                       "%s",
                       length, whole, length > whole ? ", so give it the last of them" : "");
    if (length == whole)
        return CO_OK;
    if (!model->positions)
        return co_fail(CO_E_USAGE,
                       "predict: sequences of %" PRId64 " tokens; the network takes %" PRId64
                       ", as it gives no logits at each position",
                       length, whole);
    ahead = co_model_looks_ahead(model);
    if (!ahead)
        return CO_OK;
    return co_fail(CO_E_USAGE,
                   "predict: sequences of %" PRId64 " tokens; the network takes %" PRId64
                   ", as layer %s looks at later positions",
                   length, whole, ahead->name);
}

/* Sequences that are shorter than the network's, with zeros after them, on which what is before
   them does not depend. */
static co_status predict_short(float *out, co_model *model, const int32_t *token, uint64_t count,
                               size_t length, size_t whole)
{
    const size_t classes = (size_t)model->classes;
    int32_t *padded = co_calloc(count * whole, sizeof(*padded));
    const float *score;
    co_status st;

    if (!padded)
        return CO_E_NOMEM;
    for (uint64_t i = 0; i < count; i++)
        memcpy(padded + i * whole, token + i * length, length * sizeof(*token));
    st = co_model_outputs(&score, model, padded, count, NULL);
    for (uint64_t i = 0; st == CO_OK && i < count; i++)
        memcpy(out + i * length * classes, score + i * whole * classes,
               length * classes * sizeof(*out));
    co_free(padded);
    return st;
}

co_status co_model_predict_tokens(float *out, co_model *model, const int32_t *token, uint64_t count,
                                  int64_t length)
{
    const int64_t whole = (int64_t)co_model_sample_size(model);
    const float *score;

    if (count == 0)
        return CO_OK;
    CO_TRY(predict_check(out, model, token, count));
    if (!predict_takes_tokens(model))
        return co_fail(CO_E_USAGE, "predict: the network takes values, not tokens; "
                                   "co_model_predict gives it some");
    CO_TRY(predict_check_length(model, length, whole));
    CO_TRY(co_model_check_indices(model, co_model_input(model), token, count * (uint64_t)length,
                                  "predict"));
    if (length < whole)
        return predict_short(out, model, token, count, (size_t)length, (size_t)whole);
    CO_TRY(co_model_outputs(&score, model, token, count, NULL));
    memcpy(out, score, co_model_rows(model, count) * (size_t)model->classes * sizeof(*out));
    return CO_OK;
}
