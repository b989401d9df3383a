/*
 * weights.c - a model's weights and running statistics, to and from a file and over ranks.
 */
#include <string.h>

#include "core/mem.h"
#include "train/model.h"

static float *weights_data(const co_model *model, const co_param *param)
{
    return (param->spec.buffer ? model->store->buffer : model->store->param) + param->offset;
}

co_status co_model_tensors(co_named_tensor **out, size_t *n, const co_model *model)
{
    const co_graph *graph = model->graph;
    co_named_tensor *tensors = co_calloc((size_t)graph->n_param, sizeof(*tensors));

    if (!tensors)
        return CO_E_NOMEM;
    for (int i = 0; i < graph->n_param; i++) {
        const co_param *param = &graph->param[i];

        tensors[i] = (co_named_tensor){.name = param->name,
                                       .dtype = CO_F32,
                                       .shape = param->spec.shape,
                                       .data = weights_data(model, param),
                                       .bytes = param->count * sizeof(float)};
    }
    *out = tensors;
    *n = (size_t)graph->n_param;
    return CO_OK;
}

co_status co_model_save(const co_model *model, const char *path)
{
    static const char *const metadata[] = {"format", "pt", NULL};
    co_named_tensor *tensors = NULL;
    size_t n = 0;
    co_status st;

    CO_TRY(co_model_tensors(&tensors, &n, model));
    st = co_safetensors_write(path, tensors, n, metadata);
    co_free(tensors);
    return st;
}

static co_status weights_check(const co_named_tensor *tensor, const co_param *param,
                               const char *path)
{
    char want[64], got[64];

    if (!tensor)
        return co_fail(CO_E_DATA, "%s: has no tensor '%s'; is it a file of this model?", path,
                       param->name);
    if (tensor->dtype != CO_F32)
        return co_fail(CO_E_DATA, "%s: tensor '%s' is %s, expected f32", path, param->name,
                       co_dtype_name(tensor->dtype));
    if (!co_shape_equal(&tensor->shape, &param->spec.shape))
        return co_fail(CO_E_DATA, "%s: tensor '%s' has shape %s, the model wants %s", path,
                       param->name, co_shape_format(got, sizeof(got), &tensor->shape),
                       co_shape_format(want, sizeof(want), &param->spec.shape));
    return CO_OK;
}

co_status co_model_load(co_model *model, const char *path)
{
    const co_graph *graph = model->graph;
    co_safetensors *file = NULL;
    co_status st = CO_OK;

    CO_TRY(co_safetensors_open(&file, path));
    for (int i = 0; i < graph->n_param && st == CO_OK; i++)
        st = weights_check(co_safetensors_find(file, graph->param[i].name), &graph->param[i], path);
    for (int i = 0; i < graph->n_param && st == CO_OK; i++) {
        const co_param *param = &graph->param[i];
        const co_named_tensor *tensor = co_safetensors_find(file, param->name);

        memcpy(weights_data(model, param), tensor->data, tensor->bytes);
    }
    co_safetensors_close(file);
    return st;
}

co_status co_model_broadcast(co_model *model, co_comm *comm, int root)
{
    co_store *store = model->store;

    CO_TRY(co_comm_bcast(comm, store->param, store->n, CO_F32, root));
    return co_comm_bcast(comm, store->buffer, store->n_buffer, CO_F32, root);
}
