/*
 * parameters.c - reads, writes and freezes a model's tensors by name.
 *
 * Does not know optimizers; they ask co_model_segments which parameters to skip.
 */
#include <fnmatch.h>
#include <string.h>

#include "model/model.h"

#define PARAMETERS_MAX_NAME 512

static co_store_array parameters_array(const co_param *param)
{
    return param->spec.buffer ? CO_STORE_BUFFER : CO_STORE_PARAM;
}

bool co_model_parameter(co_parameter *out, const co_model *model, size_t i)
{
    const co_param *param;

    if (i >= (size_t)model->graph->n_param)
        return false;
    param = &model->graph->param[i];
    *out = (co_parameter){.name = param->name,
                          .dtype = CO_F32,
                          .shape = param->spec.shape,
                          .buffer = param->spec.buffer,
                          .frozen = param->frozen};
    return true;
}

static co_status parameters_find(const co_param **out, const co_model *model, const char *name,
                                 co_dtype dtype, const co_shape *shape)
{
    const co_graph *graph = model->graph;
    const co_param *param = NULL;
    char want[64], have[64];

    if (!name || !shape)
        return co_fail(CO_E_USAGE, "parameter: its name or shape is missing (NULL)");
    for (int i = 0; !param && i < graph->n_param; i++)
        if (strcmp(graph->param[i].name, name) == 0)
            param = &graph->param[i];
    if (!param)
        return co_fail(CO_E_USAGE, "the model has no parameter '%s'; co_model_parameter lists them",
                       name);
    if (dtype != CO_F32)
        return co_fail(CO_E_USAGE, "parameter %s: is of f32, not %s", name, co_dtype_name(dtype));
    if (!co_shape_equal(shape, &param->spec.shape))
        return co_fail(CO_E_USAGE, "parameter %s: has the shape %s, not %s", name,
                       co_shape_format(have, sizeof(have), &param->spec.shape),
                       co_shape_format(want, sizeof(want), shape));
    *out = param;
    return CO_OK;
}

co_status co_model_get_parameter(void *out, const co_model *model, const char *name, co_dtype dtype,
                                 const co_shape *shape)
{
    const co_param *param;

    CO_TRY(parameters_find(&param, model, name, dtype, shape));
    return co_store_read(model->store, parameters_array(param), param->offset, param->count, out);
}

co_status co_model_set_parameter(co_model *model, const char *name, co_dtype dtype,
                                 const co_shape *shape, const void *values)
{
    const co_param *param;

    CO_TRY(parameters_find(&param, model, name, dtype, shape));
    return co_store_write(model->store, parameters_array(param), param->offset, param->count,
                          values);
}

/* Whether the pattern matches the name or a layer above it: "layer1", "layer1.*.bn?", "*.bias". */
static bool parameters_match(const char *name, const char *pattern)
{
    char above[PARAMETERS_MAX_NAME];

    for (size_t n = 0; n < sizeof(above) - 1; n++) {
        above[n] = '\0';
        if ((name[n] == '.' || name[n] == '\0') && fnmatch(pattern, above, 0) == 0)
            return true;
        if (name[n] == '\0')
            break;
        above[n] = name[n];
    }
    return false;
}

co_status co_model_freeze(co_model *model, const char *pattern, bool frozen)
{
    co_graph *graph = model->graph;
    bool any = false, changed = false;

    if (!pattern)
        return co_fail(CO_E_USAGE, "freeze: the name of a layer or parameter is missing (NULL)");
    for (int i = 0; i < graph->n_param; i++) {
        co_param *param = &graph->param[i];

        if (param->spec.buffer || !parameters_match(param->name, pattern))
            continue;
        any = true;
        changed = changed || param->frozen != frozen;
        param->frozen = frozen;
    }
    if (!any)
        return co_fail(CO_E_USAGE,
                       "freeze: no layer and no parameter is called '%s'; `cohort inspect CONFIG` "
                       "lists the layers",
                       pattern);
    if (changed) {
        model->freezes++;
        co_model_drop_plans(model);
    }
    return CO_OK;
}

static bool parameters_all_frozen(const co_graph *graph)
{
    for (int i = 0; i < graph->n_param; i++)
        if (!graph->param[i].spec.buffer && !graph->param[i].frozen)
            return false;
    return true;
}

co_status co_model_freeze_value(co_model *model, const co_value *value)
{
    if (!value || value->kind == CO_VALUE_NULL)
        return CO_OK;
    if (value->kind == CO_VALUE_SCALAR)
        CO_TRY(co_value_place(co_model_freeze(model, value->text, true), value));
    else if (value->kind != CO_VALUE_LIST)
        return co_value_fail(value, "freeze: expected a layer, or a list of layers");
    for (size_t i = 0; i < value->n; i++) {
        const co_value *item = value->item[i];

        if (item->kind != CO_VALUE_SCALAR)
            return co_value_fail(item, "freeze: expected the name of a layer, or a pattern");
        CO_TRY(co_value_place(co_model_freeze(model, item->text, true), item));
    }
    if (value->kind == CO_VALUE_LIST && value->n == 0)
        return CO_OK;
    return parameters_all_frozen(model->graph)
               ? co_value_fail(value, "freeze: no parameter is left to train")
               : CO_OK;
}
