/*
 * weights.c - a model's weights and running statistics: saving, loading, broadcasting.
 *
 * Loading is strict, like load_state_dict in PyTorch: one error lists all missing, unexpected and
 * mismatched tensors, and then the model is unchanged.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <fnmatch.h>

#include "core/mem.h"
#include "device/device.h"
#include "graph/stored.h"
#include "model/model.h"

/* PyTorch's count of batches seen by a batch norm. Only its cumulative average uses it, which
   Cohort does not have. */
#define WEIGHTS_COUNTER "num_batches_tracked"

static co_store_array weights_array(const co_param *param)
{
    return param->spec.buffer ? CO_STORE_BUFFER : CO_STORE_PARAM;
}

/* Allocate a table of tensors; *room, memory for what files have in another order; and, if the host
   cannot access the store, for a copy of its values. *param and *buffer point to that, or else to
   the store's arrays. */
static co_status weights_take(co_named_tensor **out, float **room, float **param, float **buffer,
                              const co_model *model)
{
    const co_store *store = model->store;
    const co_graph *graph = model->graph;
    const size_t bytes = (size_t)graph->n_param * sizeof(**out);
    const size_t table = (bytes + sizeof(double) - 1) / sizeof(double);
    const bool here = co_device_is_host(store->device);
    size_t values = here ? 0 : store->n + store->n_buffer;
    double *block;
    co_status st = CO_OK;

    for (int i = 0; i < graph->n_param; i++)
        values += co_param_stored_room(&graph->param[i]);
    block = co_calloc(table + (values + 1) / 2, sizeof(*block));
    if (!block)
        return CO_E_NOMEM;
    *room = (float *)(void *)(block + table);
    *param = here ? store->param : *room + values - store->n_buffer - store->n;
    *buffer = here ? store->buffer : *param + store->n;
    if (!here)
        st = co_store_read(store, CO_STORE_PARAM, 0, store->n, *param);
    if (!here && st == CO_OK)
        st = co_store_read(store, CO_STORE_BUFFER, 0, store->n_buffer, *buffer);
    if (st == CO_OK)
        *out = (co_named_tensor *)(void *)block;
    else
        co_free(block);
    return st;
}

co_status co_model_tensors(co_named_tensor **out, size_t *n, const co_model *model)
{
    const co_graph *graph = model->graph;
    co_named_tensor *tensors = NULL;
    float *room = NULL, *weights = NULL, *buffer = NULL;

    CO_TRY(weights_take(&tensors, &room, &weights, &buffer, model));
    for (int i = 0; i < graph->n_param; i++) {
        const co_param *param = &graph->param[i];
        const float *values = (param->spec.buffer ? buffer : weights) + param->offset;

        tensors[i] = co_param_stored(param, values, room);
        room += co_param_stored_room(param);
    }
    *out = tensors;
    *n = (size_t)graph->n_param;
    return CO_OK;
}

co_status co_model_segments(co_segment **out, size_t *n, const co_model *model)
{
    const co_graph *graph = model->graph;
    co_segment *segment = co_calloc((size_t)graph->n_param + 1, sizeof(*segment));

    if (!segment)
        return CO_E_NOMEM;
    *n = 0;
    for (int i = graph->n_node - 1; i >= 0; i--) {
        const co_node *node = &graph->node[i];

        for (int k = 0; k < node->n_param; k++) {
            const co_param *param = &graph->param[node->param[k]];
            co_param_kind kind = CO_PARAM_WEIGHT;

            if (param->spec.buffer || param->owner != i)
                continue;
            if (node->op->is_norm)
                kind = CO_PARAM_NORM;
            else if (param->spec.shape.ndim == 1)
                kind = CO_PARAM_BIAS;
            segment[(*n)++] =
                (co_segment){.begin = param->offset,
                             .n = param->count,
                             .kind = kind,
                             .frozen = param->frozen,
                             .spared = graph->decay_matrices && kind != CO_PARAM_WEIGHT,
                             .param = node->param[k]};
        }
    }
    *out = segment;
    return CO_OK;
}

void co_model_format_sizes(char *out, size_t size, const co_shape *shape)
{
    size_t used = 0;

    for (int i = 0; i < shape->ndim; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%" PRId64, i > 0 ? "," : "",
                                 shape->dim[i]);
}

co_status co_model_save(const co_model *model, const char *path)
{
    const co_shape input = co_model_sample(model);
    char sample[80], classes[24];
    const char *const metadata[] = {
        "format", "pt", CO_MODEL_SAMPLE_KEY, sample, CO_MODEL_CLASSES_KEY, classes, NULL};
    co_named_tensor *tensors = NULL;
    size_t n = 0;
    co_status st;

    co_model_format_sizes(sample, sizeof(sample), &input);
    snprintf(classes, sizeof(classes), "%" PRId64, model->classes);
    CO_TRY(co_model_tensors(&tensors, &n, model));
    st = co_safetensors_write(path, tensors, n, metadata);
    co_free(tensors);
    return st;
}

/* ---- tensors that do not fit ---- */

#define WEIGHTS_LISTED 5 /* names per kind of error */

typedef enum weights_fault {
    WEIGHTS_MISSING,
    WEIGHTS_UNEXPECTED,
    WEIGHTS_SHAPE,
    WEIGHTS_TYPE,
    WEIGHTS_COPY,
    WEIGHTS_FAULTS
} weights_fault;

typedef struct weights_report {
    size_t n[WEIGHTS_FAULTS];
    char text[WEIGHTS_FAULTS][350]; /* the first names of each kind */
    char layer[64];                 /* of the first tensor with another shape */
    bool wrapped;                   /* an unexpected name has DistributedDataParallel's prefix */
} weights_report;

static void weights_add(weights_report *report, weights_fault fault, const char *name,
                        const char *detail)
{
    char *text = report->text[fault];
    const size_t used = strlen(text), left = sizeof(report->text[fault]) - used;

    if (report->n[fault]++ < WEIGHTS_LISTED)
        snprintf(text + used, left, "%s%.40s%s", used ? ", " : "", name, detail);
}

static void weights_compare(weights_report *report, const co_named_tensor *tensor,
                            const co_param *param)
{
    const co_shape shape = co_param_stored_shape(param);
    char want[48], got[48], detail[128];

    if (!tensor) {
        weights_add(report, WEIGHTS_MISSING, param->name, "");
    } else if (!co_shape_equal(&tensor->shape, &shape)) {
        snprintf(detail, sizeof(detail), " %s for %s",
                 co_shape_format(got, sizeof(got), &tensor->shape),
                 co_shape_format(want, sizeof(want), &shape));
        weights_add(report, WEIGHTS_SHAPE, param->name, detail);
        if (!report->layer[0])
            snprintf(report->layer, sizeof(report->layer), "%.*s",
                     (int)(strlen(param->name) - (param->named ? 0 : strlen(param->spec.name) + 1)),
                     param->name);
    } else if (tensor->dtype != CO_F32 && tensor->dtype != CO_F64) {
        snprintf(detail, sizeof(detail), " %s", co_dtype_name(tensor->dtype));
        weights_add(report, WEIGHTS_TYPE, param->name, detail);
    }
}

/* A hint for the error; files to start from may be of other classes. */
static void weights_hint(char *out, size_t size, const weights_report *report, bool starting)
{
    out[0] = '\0';
    if (report->wrapped)
        snprintf(out, size,
                 "; 'module.' comes from DistributedDataParallel: save "
                 "model.module.state_dict()");
    else if (report->n[WEIGHTS_SHAPE] && starting)
        snprintf(out, size, "; init.skip names layers that begin afresh, e.g. skip: [%s]",
                 report->layer);
    else if (report->n[WEIGHTS_SHAPE])
        snprintf(out, size, "; does the config have the classes and sizes of this file?");
    else if (report->n[WEIGHTS_COPY])
        snprintf(out, size, "; the model's key `tie: false` gives it a weight of its own");
}

static co_status weights_refuse(const weights_report *report, const char *path, bool starting)
{
    static const char *const kinds[WEIGHTS_FAULTS] = {"missing", "unexpected", "of another shape",
                                                      "not of floats", "unlike the tied weight"};
    char text[2000] = "", hint[160];

    for (int i = 0; i < WEIGHTS_FAULTS; i++) {
        const size_t used = strlen(text), n = report->n[i];
        char more[32] = "";

        if (n > WEIGHTS_LISTED)
            snprintf(more, sizeof(more), " and %zu more", n - WEIGHTS_LISTED);
        if (n)
            snprintf(text + used, sizeof(text) - used, "%s%zu %s: %s%s", used ? "; " : "", n,
                     kinds[i], report->text[i], more);
    }
    if (!text[0])
        return CO_OK;
    weights_hint(hint, sizeof(hint), report, starting);
    return co_fail(CO_E_DATA, "%.160s does not fit the model; tensors %s%s", path, text, hint);
}

const co_named_tensor *co_param_find(const co_safetensors *file, const char *prefix,
                                     const co_param *param)
{
    const char *const names[] = {param->name, param->alias};
    const co_named_tensor *tensor = NULL;

    for (int i = 0; i < 2 && names[i] && !tensor; i++) {
        char name[512];

        snprintf(name, sizeof(name), "%s%s", prefix, names[i]);
        tensor = co_safetensors_find(file, name);
    }
    return tensor;
}

/* Whether `name` is one of the layers, or below one. */
static bool weights_is_below(const char *name, const co_layer_names *layers)
{
    for (size_t i = 0; layers && i < layers->n; i++) {
        const size_t length = strlen(layers->name[i]);

        if (strncmp(name, layers->name[i], length) == 0 &&
            (name[length] == '.' || name[length] == '\0'))
            return true;
    }
    return false;
}

/* The parameter with this name or alias. */
static const co_param *weights_find(const co_graph *graph, const char *name)
{
    for (int i = 0; i < graph->n_param; i++) {
        const co_param *param = &graph->param[i];

        if (strcmp(param->name, name) == 0 || (param->alias && strcmp(param->alias, name) == 0))
            return param;
    }
    return NULL;
}

/* Whether loading would ignore the tensor: no parameter has that name, or the file also has the
   parameter's current name. */
static bool weights_is_unexpected(const co_graph *graph, const co_safetensors *file,
                                  const co_named_tensor *tensor)
{
    const co_param *param = weights_find(graph, tensor->name);

    return !param || co_param_find(file, "", param) != tensor;
}

/* Whether files may have it, and no parameter is it. */
static bool weights_is_extra(const co_graph *graph, const co_named_tensor *tensor)
{
    for (const char *const *pattern = graph->extra; pattern && *pattern; pattern++)
        if (fnmatch(*pattern, tensor->name, 0) == 0)
            return true;
    return false;
}

/* If it is a tied weight again: whether it is equal to that, else a fault. */
static bool weights_is_copy(weights_report *report, const co_graph *graph,
                            const co_safetensors *file, const co_named_tensor *tensor)
{
    for (int i = 0; i < graph->n_param; i++) {
        const co_param *param = &graph->param[i];
        const co_named_tensor *first;

        if (!param->copy || strcmp(param->copy, tensor->name) != 0)
            continue;
        first = co_param_find(file, "", param);
        if (first && (first->bytes != tensor->bytes || first->dtype != tensor->dtype ||
                      memcmp(first->data, tensor->data, tensor->bytes) != 0))
            weights_add(report, WEIGHTS_COPY, tensor->name, "");
        return true;
    }
    return false;
}

/* Whether it is "bn1.num_batches_tracked" and the model has bn1.running_mean. */
static bool weights_is_counter(const co_graph *graph, const co_named_tensor *tensor)
{
    const char *dot = strrchr(tensor->name, '.');
    char mean[256];

    if (!dot || strcmp(dot + 1, WEIGHTS_COUNTER) != 0 || dot - tensor->name > 200)
        return false;
    snprintf(mean, sizeof(mean), "%.*s.running_mean", (int)(dot - tensor->name), tensor->name);
    return weights_find(graph, mean) != NULL;
}

static co_status weights_check(const co_model *model, const co_safetensors *file, const char *path,
                               const co_layer_names *fresh)
{
    const co_graph *graph = model->graph;
    weights_report report = {.layer = ""};

    for (int i = 0; i < graph->n_param; i++)
        if (!weights_is_below(graph->param[i].name, fresh))
            weights_compare(&report, co_param_find(file, "", &graph->param[i]), &graph->param[i]);
    for (size_t i = 0; i < co_safetensors_count(file); i++) {
        const co_named_tensor *tensor = co_safetensors_tensor(file, i);

        if (!weights_is_below(tensor->name, fresh) && !weights_is_counter(graph, tensor) &&
            !weights_is_extra(graph, tensor) && !weights_is_copy(&report, graph, file, tensor) &&
            weights_is_unexpected(graph, file, tensor)) {
            weights_add(&report, WEIGHTS_UNEXPECTED, tensor->name, "");
            report.wrapped |= strncmp(tensor->name, "module.", 7) == 0;
        }
    }
    return weights_refuse(&report, path, fresh != NULL);
}

/* ---- loading ---- */

/* Values of a tensor of F32 or F64. */
static void weights_read(float *to, const co_named_tensor *from)
{
    const uint8_t *at = from->data;

    if (from->dtype == CO_F32) {
        memcpy(to, at, from->bytes);
        return;
    }
    for (size_t i = 0; i < from->bytes / sizeof(double); i++) {
        double value;

        memcpy(&value, at + i * sizeof(value), sizeof(value)); /* unaligned */
        to[i] = (float)value;
    }
}

/* Names the first value of a tensor that is none, or none as a float. */
static co_status weights_check_finite(const co_named_tensor *from, const char *path)
{
    const size_t cell = from->dtype == CO_F32 ? sizeof(float) : sizeof(double);
    const uint8_t *at = from->data;

    for (size_t i = 0; i < from->bytes / cell; i++) {
        float value;
        double wide;

        if (cell == sizeof(float)) {
            memcpy(&value, at + i * cell, cell); /* unaligned */
        } else {
            memcpy(&wide, at + i * cell, cell);
            value = (float)wide;
        }
        if (!isfinite(value))
            return co_fail(CO_E_DATA, "%s: value %zu of tensor '%.200s' is %s", path, i, from->name,
                           isnan(value)            ? "nan"
                           : cell == sizeof(float) ? "infinite"
                                                   : "beyond what fp32 holds");
    }
    return CO_OK;
}

static bool weights_is_ready(const co_param *param, const co_named_tensor *from)
{
    return from->dtype == CO_F32 && !co_param_stored_room(param);
}

/* `room`: for twice the parameter, unless it is ready. */
static co_status weights_put(co_store *store, const co_param *param, const co_named_tensor *from,
                             float *room)
{
    const void *values = from->data;

    if (!weights_is_ready(param, from)) {
        weights_read(room, from);
        values = room + param->count;
        co_param_unstore(room + param->count, param, room);
    }
    return co_store_write(store, weights_array(param), param->offset, param->count, values);
}

co_status co_model_load_from(co_model *model, const co_safetensors *file, const char *name,
                             const co_layer_names *fresh)
{
    const co_graph *graph = model->graph;
    co_status st = CO_OK;
    size_t largest = 0;
    float *room;

    CO_TRY(weights_check(model, file, name, fresh));
    for (int i = 0; i < graph->n_param; i++) {
        const co_param *param = &graph->param[i];
        const co_named_tensor *from = co_param_find(file, "", param);

        if (weights_is_below(param->name, fresh))
            continue;
        CO_TRY(weights_check_finite(from, name));
        if (param->count > largest && !weights_is_ready(param, from))
            largest = param->count;
    }
    room = co_calloc(2 * largest + 1, sizeof(*room)); /* before anything is changed */
    if (!room)
        return CO_E_NOMEM;
    for (int i = 0; i < graph->n_param && st == CO_OK; i++) {
        const co_param *param = &graph->param[i];

        if (!weights_is_below(param->name, fresh))
            st = weights_put(model->store, param, co_param_find(file, "", param), room);
    }
    co_free(room);
    return st;
}

co_status co_model_load_except(co_model *model, const char *path, const co_layer_names *fresh)
{
    co_safetensors *file = NULL;
    co_status st;

    CO_TRY(co_safetensors_open(&file, path));
    st = co_model_load_from(model, file, path, fresh);
    co_safetensors_close(file);
    return st;
}

co_status co_model_load(co_model *model, const char *path)
{
    return co_model_load_except(model, path, NULL);
}

static co_status weights_broadcast(co_store *store, co_store_array array, size_t n, co_comm *comm,
                                   int root)
{
    float *values = NULL;
    co_status st;

    CO_TRY(co_store_map(&values, store, array));
    st = co_comm_bcast(comm, values, n, CO_F32, root);
    CO_TRY(co_store_unmap(store, array, values, st == CO_OK));
    return st;
}

co_status co_model_broadcast(co_model *model, co_comm *comm, int root)
{
    co_store *store = model->store;

    CO_TRY(weights_broadcast(store, CO_STORE_PARAM, store->n, comm, root));
    return weights_broadcast(store, CO_STORE_BUFFER, store->n_buffer, comm, root);
}
