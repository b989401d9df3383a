/*
 * model.c - a network with its weights: create, forward, backward.
 *
 * Does not know optimizers, strategies or the training loop.
 */
#include "model/model.h"

#include <string.h>

#include "backends/backends.h"
#include "core/hints.h"
#include "core/mem.h"
#include "core/sized.h"
#include "model/decode.h"
#include "model/kernels.h"
#include "model/metrics.h"
#include "models/models.h"
#include "profile/profiler.h"
#include "tensor/values.h"

#define MODEL_MAX_THREADS 1024

void co_model_setup(co_model *model, int threads)
{
    threads = threads > 0 ? threads : 1;
    if (threads != model->threads)
        co_model_drop_plans(model);
    model->threads = threads;
}

/* Describe the tensors in the store, so that its users do not need the graph. */
static co_status model_create_store(co_model *model)
{
    const co_graph *graph = model->graph;
    co_store_tensor *tensor = co_calloc((size_t)graph->n_param + 1, sizeof(*tensor));
    size_t n = 0;
    co_status st;

    if (!tensor)
        return CO_E_NOMEM;
    for (int i = graph->n_node - 1; i >= 0; i--) /* the order of co_graph_finish */
        for (int k = 0; k < graph->node[i].n_param; k++) {
            const co_param *param = &graph->param[graph->node[i].param[k]];
            const size_t rows =
                param->spec.shape.ndim > 0 ? (size_t)param->spec.shape.dim[0] : param->count;

            if (!param->spec.buffer && param->count > 0 && param->owner == i)
                tensor[n++] = (co_store_tensor){param->offset, rows, param->count / rows};
        }
    st = co_store_create(&model->store, graph->n_store, graph->n_buffer);
    if (st == CO_OK)
        st = co_store_set_tensors(model->store, tensor, n);
    co_free(tensor);
    return st;
}

static co_status model_unknown_backend(const char *name)
{
    const char *hint = co_hint_name("backend", name);

    return co_fail(CO_E_USAGE, "unknown backend '%s'; `cohort list kernels` shows them%s%s", name,
                   hint ? "; " : "", hint ? hint : "");
}

co_status co_model_create_from(co_model **out, const co_model_values *values,
                               const co_model_options *options)
{
    const co_backend *const *backends = co_backends_find(options->backend);
    const co_shape *output;
    co_model *model;
    co_status st;

    if (!backends)
        return model_unknown_backend(options->backend);
    model = co_calloc(1, sizeof(*model));
    if (!model)
        return CO_E_NOMEM;
    model->config = values->config;
    model->backends = backends;
    model->seed = options->seed;
    model->direct_convolution = options->direct_convolution;
    model->recompute = options->recompute;
    st = co_precision_read(&model->precision, values->precision, co_config_arena(values->config));
    if (st == CO_OK)
        st = co_model_build(&model->graph, values->model, values->layers, values->loss,
                            values->config, &options->sample, options->classes);
    if (st == CO_OK && options->recompute && model->graph->n_block == 0)
        st = co_fail(CO_E_USAGE, "recompute: the network has no blocks; those of ResNets, of "
                                 "transformers and of `residual` layers are computed again");
    if (st == CO_OK)
        st = co_model_set_kernels(model, values->kernels);
    if (st == CO_OK)
        st = model_create_store(model);
    if (st != CO_OK) {
        co_model_destroy(model);
        return st;
    }
    output = &model->graph->var[model->graph->output].shape;
    model->classes = output->dim[output->ndim - 1];
    model->positions = output->ndim == 3 ? output->dim[1] : 0;
    *out = model;
    return CO_OK;
}

co_status co_model_draw(co_model *model)
{
    return co_graph_init(model->graph, model->store, model->seed);
}

CO_SIZED_END(co_model_options, seed);
CO_SIZED_END(co_batch, bad_message);

co_status co_model_create_sized(co_model **out, const co_model_options *given, size_t size)
{
    co_model_values values = {NULL};
    const co_value *root = NULL;
    co_model_options o, *options = &o;
    co_status st;

    CO_TRY(CO_SIZED_READ(&o, given, size, co_model_options));
    if (o.threads < 0 || o.threads > MODEL_MAX_THREADS)
        return co_fail(CO_E_USAGE, "model: %d threads: give 1 to %d, or 0 for one", o.threads,
                       MODEL_MAX_THREADS);
    CO_TRY(co_config_parse(&values.config, "{}", 2, "model"));
    st = co_config_add_text(&root, values.config, options->model);
    if (st == CO_OK && root->kind == CO_VALUE_LIST)
        values.layers = root;
    else
        values.model = root;
    if (st == CO_OK && options->loss)
        st = co_config_add_text(&values.loss, values.config, options->loss);
    if (st == CO_OK && options->precision)
        st = co_config_add_text(&values.precision, values.config, options->precision);
    if (st == CO_OK)
        st = co_model_create_from(out, &values, options);
    if (st != CO_OK) {
        co_config_destroy(values.config);
        return st;
    }
    (*out)->owns_config = true;
    co_model_setup(*out, options->threads);
    st = co_model_draw(*out);
    if (st != CO_OK) {
        co_model_destroy(*out);
        *out = NULL;
    }
    return st;
}

void co_model_drop_plans(co_model *model)
{
    model->moves++;
    for (int i = 0; i < 2; i++)
        while (model->plans[i]) {
            model_plan *entry = model->plans[i];

            model->plans[i] = entry->next;
            co_plan_destroy(entry->plan);
            co_free(entry);
        }
    model->last = NULL;
}

void co_model_destroy(co_model *model)
{
    if (!model)
        return;
    co_model_drop_plans(model);
    co_plan_block_free(&model->block);
    co_model_drop_late(model);
    co_store_destroy(model->store);
    co_model_drop_kept(model);
    co_free(model->metric_sums);
    co_free(model->pick);
    co_graph_destroy(model->graph);
    if (model->owns_config)
        co_config_destroy(model->config);
    co_free(model);
}

uint64_t co_model_parameter_count(const co_model *model)
{
    return co_graph_param_count(model->graph);
}

co_plan_options co_model_plan_options(const co_model *model, int64_t batch, bool training)
{
    return (co_plan_options){.batch = batch,
                             .training = training,
                             .backends = model->backends,
                             .threads = model->threads,
                             .direct_convolution = model->direct_convolution,
                             .over_ranks = model->norm_comm != NULL,
                             .decode = model->decode,
                             .recompute = model->recompute,
                             .logit_rows = co_model_logit_rows(model),
                             .precision = model->precision.plan,
                             .pick = model->pick};
}

/* The plan for this batch size, compiled on first use. All plans share one memory block. When it
   must grow, the other plans are dropped and recompiled on demand; usually the largest batches, in
   training, come first. */
co_status co_model_plan(co_plan **out, co_model *model, uint64_t batch, bool training)
{
    const uint64_t moves = model->block.moves;
    co_plan_options options = co_model_plan_options(model, (int64_t)batch, training);
    model_plan *entry;
    co_status st;

    options.block = &model->block;
    for (entry = model->plans[training]; entry; entry = entry->next)
        if (co_plan_batch(entry->plan) == options.batch &&
            entry->logit_rows == options.logit_rows) {
            *out = entry->plan;
            return CO_OK;
        }
    entry = co_calloc(1, sizeof(*entry));
    if (!entry)
        return CO_E_NOMEM;
    co_profiler_enter(model->profiler, CO_PROFILE_COMPILE);
    st = co_plan_create(&entry->plan, model->graph, model->store, &options);
    co_profiler_leave(model->profiler);
    if (model->block.moves != moves)
        co_model_drop_plans(model);
    if (st != CO_OK) {
        co_free(entry);
        return st;
    }
    co_profiler_watch_plan(model->profiler, entry->plan);
    entry->logit_rows = options.logit_rows;
    entry->next = model->plans[training];
    model->plans[training] = entry;
    *out = entry->plan;
    return CO_OK;
}

size_t co_model_input_bytes(const co_model *model, const co_graph_input *input, uint64_t count)
{
    const co_var *var = &model->graph->var[input->var];

    return (size_t)count * (size_t)co_shape_count(&var->shape) * co_dtype_size(var->dtype);
}

void co_model_sync_batch_norm(co_model *model, co_comm *comm)
{
    co_model_drop_plans(model);
    model->norm_comm = comm && co_comm_size(comm) > 1 ? comm : NULL;
}

/* A distinct number for each step of a run, for up to 2^28 epochs of up to 2^36 steps. Up to 2^12
   epochs of 2^20 steps use only the lower half. */
static uint64_t model_place(const co_batch *batch)
{
    const uint64_t low = (batch->epoch & 0xfff) << 20 | (batch->step & 0xfffff);
    const uint64_t high = (batch->epoch >> 12) << 16 ^ batch->step >> 20;

    return high << 32 | low;
}

/* Random streams depend on the sample's place in the run, not on the rank. */
void co_model_give_values(const co_model *model, const co_batch *batch)
{
    co_step_given *given = co_values_given(model->store);

    given->step = model_place(batch);
    given->samples = batch->global;
}

static co_status model_send_values(const co_model *model, const co_batch *batch)
{
    co_model_give_values(model, batch);
    return co_values_send(model->store);
}

static co_run model_run(co_model *model, const co_plan *plan)
{
    return (co_run){.seed = model->seed,
                    .values = model->store->values,
                    .sample = co_plan_samples(plan),
                    .reduce = model->norm_comm ? co_model_reduce : NULL,
                    .reduce_arg = model};
}

co_status co_model_phantom_forward(co_model *model, const co_batch *batch)
{
    static const uint32_t sample[1] = {0};
    const co_graph *graph = model->graph;
    co_plan *plan = NULL;
    co_run run;

    CO_TRY(co_model_plan(&plan, model, 1, true));
    CO_TRY(model_send_values(model, batch));
    run = model_run(model, plan);
    run.phantom = true;
    CO_TRY(co_plan_feed_samples(plan, sample, 1));
    for (int i = 0; i < graph->n_input; i++)
        CO_TRY(co_plan_feed(plan, graph->input[i].name, NULL,
                            co_model_input_bytes(model, &graph->input[i], 1)));
    CO_TRY(co_plan_forward(plan, &run));
    model->last = plan;
    model->spent = false;
    return CO_OK;
}

static co_status model_feed_input(co_model *model, co_plan *plan, const co_batch *batch,
                                  const co_graph_input *input)
{
    const void *from = co_batch_find(batch, input->name)->data;
    const size_t bytes = co_model_input_bytes(model, input, batch->count);
    const uint64_t rows = (uint64_t)co_plan_batch(plan);

    if (rows > batch->count)
        return co_plan_feed_padded(plan, input->name, from, bytes,
                                   co_model_input_bytes(model, input, rows));
    return co_plan_feed(plan, input->name, from, bytes);
}

static co_status model_feed(co_model *model, co_plan *plan, const co_batch *batch,
                            const co_images *images, bool training)
{
    const co_graph *graph = model->graph;

    if (training)
        CO_TRY(model_send_values(model, batch));
    if (training || images)
        CO_TRY(co_plan_feed_samples(plan, batch->sample, batch->count));
    for (int i = 0; i < graph->n_input; i++)
        if (images && strcmp(graph->input[i].name, CO_FIELD_INPUT) == 0)
            co_images_draw(images, model->store->queue, co_plan_samples(plan), batch->count,
                           batch->epoch, co_plan_input(plan, CO_FIELD_INPUT), NULL);
        else
            CO_TRY(model_feed_input(model, plan, batch, &graph->input[i]));
    return CO_OK;
}

/* `batch` NULL: no samples. */
static void model_measure(co_model *model, const co_metric_batch *batch)
{
    if (!model->metrics)
        return;
    memset(model->metric_sums, 0, model->metrics->n_sum * sizeof(*model->metric_sums));
    if (batch)
        co_metric_set_accumulate(model->metrics, model->metric_sums, batch);
}

static void model_keep_logits(const co_model *model, const float *score, const co_batch *batch)
{
    const size_t classes = (size_t)model->classes;

    for (uint64_t i = 0; i < batch->count; i++)
        memcpy(model->logits + batch->sample[i] * classes, score + i * classes,
               classes * sizeof(*score));
}

static void model_count(co_result *out, co_model *model, const float *score, const float *loss,
                        const int32_t *place, const co_batch *batch, bool training)
{
    const co_field *label = co_batch_find(batch, CO_FIELD_LABEL);
    const co_field *target = co_batch_find(batch, CO_FIELD_TARGET);
    co_metric_batch seen = {.form = co_model_form(model),
                            .n = co_model_rows(model, batch->count),
                            .output = score,
                            .loss = loss};

    if (seen.form.target == CO_TARGET_LABEL)
        seen.label = label ? label->data : NULL;
    else
        seen.target = target ? target->data : NULL;
    model_measure(model, &seen);
    if (place)
        co_metrics_count_places(out, &seen, place);
    else
        co_metrics_count(out, &seen);
    if (seen.label && model->confusion && !training)
        co_metrics_confuse(model->confusion, &seen);
    if (model->logits && !training)
        model_keep_logits(model, score, batch);
}

void co_model_count(co_result *out, co_model *model, const float *score, const float *loss,
                    const co_batch *batch, bool training)
{
    model_count(out, model, score, loss, NULL, batch, training);
}

co_status co_model_compute(co_plan **out, co_model *model, const co_batch *batch,
                           const co_images *images, bool training)
{
    const bool pad = !training && !images && batch->count < model->pad;
    co_plan *plan = NULL;
    co_run run;

    CO_TRY(co_model_plan(&plan, model, pad ? model->pad : batch->count, training));
    co_profiler_enter(model->profiler, CO_PROFILE_COPY_INPUT);
    CO_TRY(model_feed(model, plan, batch, images, training));
    if (training)
        CO_TRY(co_model_pass_on(model, plan));
    run = model_run(model, plan);
    co_profiler_leave(model->profiler);
    co_profiler_enter(model->profiler, CO_PROFILE_IN_FORWARD);
    CO_TRY(co_plan_forward(plan, &run));
    co_profiler_leave(model->profiler);
    if (training) {
        co_model_check_loss(model, plan, batch->count);
        model->last = plan;
        model->spent = false;
    }
    *out = plan;
    return CO_OK;
}

static co_status model_run_forward(co_result *out, co_model *model, const co_batch *batch,
                                   const co_images *images, bool training)
{
    const float *score, *loss;
    co_plan *plan = NULL;

    memset(out, 0, sizeof(*out));
    if (training || batch->count > 0)
        model->last = NULL;
    CO_TRY(co_model_check_batch(model, batch, images, training));
    if (batch->count == 0) {
        model->backward_next = false;
        model_measure(model, NULL);
        return training && model->norm_comm ? co_model_phantom_forward(model, batch) : CO_OK;
    }
    CO_TRY(co_model_compute(&plan, model, batch, images, training));
    co_profiler_enter(model->profiler, CO_PROFILE_METRICS);
    CO_TRY(co_plan_results(&score, &loss, plan));
    model_count(out, model, score, loss, co_plan_places(plan), batch, training);
    co_profiler_leave(model->profiler);
    return CO_OK;
}

co_status co_model_forward_sized(co_result *out, co_model *model, const co_batch *given,
                                 size_t size)
{
    co_batch batch;

    CO_TRY(CO_SIZED_READ(&batch, given, size, co_batch));
    return model_run_forward(out, model, &batch, NULL, true);
}

co_status co_model_evaluate_sized(co_result *out, co_model *model, const co_batch *given,
                                  size_t size)
{
    co_batch batch;

    CO_TRY(CO_SIZED_READ(&batch, given, size, co_batch));
    return model_run_forward(out, model, &batch, NULL, false);
}

co_status co_model_evaluate_drawn(co_result *out, co_model *model, const co_batch *batch,
                                  const co_images *images)
{
    return model_run_forward(out, model, batch, images, false);
}

co_status co_model_backward(co_model *model, const co_batch *batch, bool accumulate,
                            co_ready_fn ready, void *arg)
{
    const bool phantom = batch->count == 0 && model->norm_comm;
    co_run run;

    if (!model->last || model->spent ||
        co_plan_batch(model->last) != (phantom ? 1 : (int64_t)batch->count))
        return co_fail(CO_E_USAGE, "backward needs a forward on the same batch before it");
    CO_TRY(model_send_values(model, batch));
    model->spent = true;
    run = model_run(model, model->last);
    run.phantom = phantom;
    run.accumulate = accumulate;
    co_profiler_enter(model->profiler, CO_PROFILE_IN_BACKWARD);
    CO_TRY(co_plan_backward(model->last, &run, ready, arg));
    co_profiler_leave(model->profiler);
    return CO_OK;
}
