/* fields.c - checks that the fields of samples fit the inputs of a network. */
#include <string.h>

#include "core/mem.h"
#include "model/model.h"

#define MODEL_MAX_ELEMENTS ((uint64_t)1 << 40) /* of a batch; the limit for any tensor */

co_shape co_model_input_shape(const co_model *model, int var)
{
    co_shape shape = model->graph->var[var].shape;

    shape.ndim--;
    memmove(shape.dim, shape.dim + 1, (size_t)shape.ndim * sizeof(shape.dim[0]));
    return shape;
}

co_shape co_model_sample(const co_model *model)
{
    return co_model_input_shape(model, co_graph_find_input(model->graph, CO_FIELD_INPUT));
}

size_t co_model_sample_size(const co_model *model)
{
    const co_shape sample = co_model_sample(model);

    return (size_t)co_shape_count(&sample);
}

/* Types must be equal, and dimensions must be once those of size 1 are dropped. */
static bool model_fits(const co_field *field, co_dtype dtype, const co_shape *want)
{
    int k = 0;

    for (int i = 0; i < field->shape.ndim; i++) {
        if (field->shape.dim[i] == 1)
            continue;
        while (k < want->ndim && want->dim[k] == 1)
            k++;
        if (k == want->ndim || want->dim[k++] != field->shape.dim[i])
            return false;
    }
    while (k < want->ndim && want->dim[k] == 1)
        k++;
    return k == want->ndim && field->dtype == dtype;
}

co_status co_model_check_form(const co_model *model, const co_field *field,
                              const co_graph_input *input, const char *owner)
{
    const co_dtype dtype = model->graph->var[input->var].dtype;
    const co_shape want = co_model_input_shape(model, input->var);
    char shape[64], wanted[64];

    if (field->shape.ndim >= 0 && field->shape.ndim <= CO_MAX_DIMS &&
        model_fits(field, dtype, &want))
        return CO_OK;
    return co_fail(CO_E_USAGE,
                   "%s: samples of the field '%s' are %s of %s; the network takes %s of %s", owner,
                   input->name, co_shape_format(shape, sizeof(shape), &field->shape),
                   co_dtype_name(field->dtype), co_shape_format(wanted, sizeof(wanted), &want),
                   co_dtype_name(dtype));
}

/* Whole numbers index rows of logits or weights: `least` to limit - 1. Compared as unsigned, one
   maximum checks all; it costs a fraction of the copy that follows. */
co_status co_model_check_indices(const co_model *model, const co_graph_input *input,
                                 const int32_t *value, uint64_t count, const char *owner)
{
    const bool label = strcmp(input->name, CO_FIELD_LABEL) == 0;
    const int64_t limit = label ? model->classes : co_graph_limit(model->graph, input->var);
    const int32_t least = label && model->positions ? -1 : 0;
    uint32_t most = 0;

    for (uint64_t i = 0; i < count; i++)
        most = (uint32_t)value[i] - (uint32_t)least > most ? (uint32_t)value[i] - (uint32_t)least
                                                           : most;
    if ((int64_t)most < limit - least)
        return CO_OK;
    for (uint64_t i = 0; i < count; i++)
        if (value[i] < least || value[i] >= limit)
            return co_fail(CO_E_USAGE, "%s: %s %llu is %d; the network's %s are 0 to %d", owner,
                           label ? "label" : "token", (unsigned long long)i, (int)value[i],
                           label ? "classes" : "tokens", (int)(limit - 1));
    return CO_OK;
}

const co_graph_input *co_model_input(const co_model *model)
{
    const co_graph *graph = model->graph;

    for (int i = 0; i < graph->n_input; i++)
        if (strcmp(graph->input[i].name, CO_FIELD_INPUT) == 0)
            return &graph->input[i];
    return NULL;
}

co_status co_model_check_count(const co_model *model, uint64_t count)
{
    const size_t sample = co_model_sample_size(model);

    if (model->decode)
        return co_fail(CO_E_USAGE,
                       "batch: the model decodes (co_model_decode); use another for whole samples");
    if (count <= MODEL_MAX_ELEMENTS / sample)
        return CO_OK;
    return co_fail(CO_E_USAGE,
                   "batch: %llu samples of %zu values each are more than memory can hold; at most "
                   "2^40 values in all",
                   (unsigned long long)count, sample);
}

static co_status model_check_field(const co_model *model, const co_batch *batch,
                                   const co_graph_input *input, const co_images *images)
{
    const co_field *field = co_batch_find(batch, input->name);
    const bool drawn = images && strcmp(input->name, CO_FIELD_INPUT) == 0;

    if (!field || (!field->data && !drawn))
        return co_fail(CO_E_USAGE, "batch: %llu samples without the field '%s'",
                       (unsigned long long)batch->count, input->name);
    CO_TRY(co_model_check_form(model, field, input, "batch"));
    if (drawn || field->dtype != CO_I32)
        return CO_OK;
    return co_model_check_indices(model, input, field->data,
                                  batch->count * (uint64_t)co_shape_count(&field->shape), "batch");
}

co_status co_model_check_batch(const co_model *model, const co_batch *batch,
                               const co_images *images, bool training)
{
    const co_graph *graph = model->graph;

    if (batch->count == 0)
        return CO_OK;
    CO_TRY(co_model_check_count(model, batch->count));
    if (training && !batch->sample)
        return co_fail(CO_E_USAGE,
                       "batch: %llu samples without indices (`sample`), which dropout draws by",
                       (unsigned long long)batch->count);
    if (training && batch->global < batch->count)
        return co_fail(CO_E_USAGE,
                       "batch: %llu samples here, but `global`, those of all ranks, is %llu; the "
                       "gradient is divided by it",
                       (unsigned long long)batch->count, (unsigned long long)batch->global);
    if (training && batch->local && batch->local < batch->count)
        return co_fail(CO_E_USAGE,
                       "batch: %llu samples here, but `local`, those of this rank, is %llu",
                       (unsigned long long)batch->count, (unsigned long long)batch->local);
    for (int i = 0; i < graph->n_input; i++)
        CO_TRY(model_check_field(model, batch, &graph->input[i], images));
    return CO_OK;
}

co_target co_model_target(const co_model *model)
{
    const co_graph *graph = model->graph;

    return graph->node[graph->var[graph->loss].producer].op->target;
}

co_status co_model_measure(co_model *model, const co_metric_set *set)
{
    co_free(model->metric_sums);
    model->metric_sums = co_calloc(set->n_sum + 1, sizeof(*model->metric_sums));
    model->metrics = set;
    return model->metric_sums ? CO_OK : CO_E_NOMEM;
}

co_status co_model_check_data(const co_model *model, const co_dataset *dataset)
{
    const co_graph *graph = model->graph;
    co_batch batch = {0};

    memcpy(batch.field, co_dataset_fields(dataset), sizeof(batch.field));
    for (int i = 0; i < graph->n_input; i++) {
        const co_field *field = co_batch_find(&batch, graph->input[i].name);

        if (!field)
            return co_fail(CO_E_USAGE,
                           "data: the samples have no field '%s', which %s compares with; "
                           "`cohort list ops` names the losses that take another",
                           graph->input[i].name,
                           graph->node[graph->var[graph->loss].producer].op->name);
        CO_TRY(co_model_check_form(model, field, &graph->input[i], "data"));
    }
    return CO_OK;
}

co_metric_form co_model_form(const co_model *model)
{
    return (co_metric_form){co_model_target(model), (size_t)model->classes,
                            (size_t)model->positions, 0};
}

bool co_model_has_top5(const co_model *model)
{
    const co_metric_form form = co_model_form(model);

    return co_metric_is_defined(&co_metric_accuracy_top5, &form);
}

uint64_t co_model_rows(const co_model *model, uint64_t count)
{
    return model->positions ? count * (uint64_t)model->positions : count;
}
