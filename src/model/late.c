/*
 * late.c - a forward on a device, of a batch that is copied there first, and whose figures the host
 * takes when the device has done it.
 *
 * What the device can count it counts, and a few numbers are copied to pinned memory. For the rest
 * logits and losses are copied there, and the labels or targets, whose memory is others' by then,
 * are kept beside them. Does not wait for the device.
 */
#include <string.h>

#include "core/mem.h"
#include "device/device.h"
#include "metrics/metrics.h"
#include "model/model.h"

/* What the device has counted. */
typedef struct late_found {
    co_result result;
    co_sum sum[]; /* of the metrics, as in a co_metric_set */
} late_found;

/* What the device counts; NULL: the host counts all. */
static const co_device_metrics *late_counts(const co_model *model)
{
    return model->store->device ? model->store->device->ops->metrics : NULL;
}

static const co_device_metric *late_find(const co_model *model, const char *name)
{
    const co_device_metrics *there = late_counts(model);

    for (const co_device_metric *m = there ? there->metric : NULL; m && m->name; m++)
        if (strcmp(m->name, name) == 0)
            return m;
    return NULL;
}

/* Whether the host has to see every output. */
static bool late_shows_outputs(const co_model *model)
{
    for (int i = 0; model->metrics && i < model->metrics->n; i++)
        if (!late_find(model, model->metrics->metric[i]->name))
            return true;
    return !late_counts(model);
}

static size_t late_found_bytes(const co_model *model)
{
    const size_t sums = model->metrics ? model->metrics->n_sum : 0;

    return sizeof(late_found) + sums * sizeof(co_sum);
}

/* What outputs are compared with; NULL: nothing. */
static const char *late_wanted(const co_model *model)
{
    const co_target target = co_model_target(model);

    return target == CO_TARGET_LABEL  ? CO_FIELD_LABEL
           : target == CO_TARGET_NONE ? NULL
                                      : CO_FIELD_TARGET;
}

static size_t late_wanted_bytes(const co_model *model, uint64_t count)
{
    return co_model_target(model) == CO_TARGET_LABEL
               ? co_model_rows(model, count) * sizeof(int32_t)
               : count * (size_t)model->classes * sizeof(float);
}

/* Memory of `kind` for `bytes` in place of *memory, which has *size; none that is used is freed. */
static co_status late_grow(co_model *model, void **memory, size_t *size, size_t bytes,
                           co_memory kind)
{
    co_device *device = model->store->device;

    if (bytes <= *size)
        return CO_OK;
    co_device_free(device, *memory, kind);
    *memory = NULL;
    *size = 0;
    model->moves++;
    CO_TRY(co_device_alloc(memory, device, bytes, kind));
    *size = bytes;
    return CO_OK;
}

/* Room for what the device leaves for `plan`, and for what the host compares outputs with. */
static co_status late_make_room(co_model *model, model_late *late, const co_plan *plan)
{
    const size_t head = late_counts(model) ? late_found_bytes(model) : 0;
    const bool shows = late_shows_outputs(model);
    const size_t wanted = shows && late_wanted(model) ? late_wanted_bytes(model, late->count) : 0;

    if (head && !model->found)
        CO_TRY(co_device_alloc(&model->found, model->store->device, head, CO_MEMORY_DEVICE));
    CO_TRY(late_grow(model, &late->memory, &late->bytes,
                     head + (shows ? co_plan_result_bytes(plan) : 0), CO_MEMORY_PINNED));
    return late_grow(model, &late->wanted, &late->wanted_bytes, wanted, CO_MEMORY_HOST);
}

/* The slot of a micro-batch, once there are any. */
static model_late *late_at(const co_model *model, int step, uint64_t part)
{
    return &model->late[(size_t)step * CO_MODEL_MAX_LATE + part];
}

static co_status late_open(co_model *model)
{
    if (!model->late)
        model->late =
            co_calloc((size_t)CO_MODEL_LATE_STEPS * CO_MODEL_MAX_LATE, sizeof(*model->late));
    return model->late ? CO_OK : CO_E_NOMEM;
}

/* ---- the batch ---- */

static size_t late_rounded(size_t bytes)
{
    return (bytes + CO_DEVICE_ALIGN - 1) / CO_DEVICE_ALIGN * CO_DEVICE_ALIGN;
}

/* `batch` with the network's fields where they are staged; returns their bytes. */
static size_t late_place(co_batch *out, const co_model *model, const model_late *late,
                         const co_batch *batch)
{
    const co_graph *graph = model->graph;
    size_t bytes = late_rounded((size_t)batch->count * sizeof(*batch->sample));
    int n = 0;

    *out = *batch;
    memset(out->field, 0, sizeof(out->field));
    out->sample = late->staged;
    for (int i = 0; i < graph->n_input; i++) {
        const co_field *field = co_batch_find(batch, graph->input[i].name);

        out->field[n] = *field;
        out->field[n++].data = (char *)late->staged + bytes;
        bytes += late_rounded((size_t)batch->count * (size_t)co_shape_count(&field->shape) *
                              co_dtype_size(field->dtype));
    }
    return bytes;
}

/* Where late_place has put a field; NULL: nowhere. */
static void *late_staged(const model_late *late, const co_batch *staged, const char *name)
{
    const co_field *field = co_batch_find(staged, name);

    if (!field)
        return NULL;
    return (char *)late->staged + ((const char *)field->data - (const char *)staged->sample);
}

/* Indices always travel; fields do, unless the device draws them. */
static co_status late_fill(const model_late *late, const co_batch *staged, const co_batch *batch,
                           const co_images *images, co_queue *queue)
{
    CO_TRY(co_queue_copy(queue, late->staged, batch->sample,
                         (size_t)batch->count * sizeof(*batch->sample)));
    if (images) {
        co_images_draw(images, queue, staged->sample, batch->count, batch->epoch,
                       late_staged(late, staged, CO_FIELD_INPUT),
                       late_staged(late, staged, CO_FIELD_LABEL));
        return CO_OK;
    }
    for (int i = 0; i < CO_MAX_FIELDS && staged->field[i].name; i++) {
        const co_field *field = co_batch_find(batch, staged->field[i].name);

        CO_TRY(co_queue_copy(queue, late_staged(late, staged, field->name), field->data,
                             (size_t)batch->count * (size_t)co_shape_count(&field->shape) *
                                 co_dtype_size(field->dtype)));
    }
    return CO_OK;
}

co_status co_model_stage(co_model *model, const co_batch *batch, const co_images *images,
                         co_queue *queue, int step, uint64_t part)
{
    const char *wanted = late_wanted(model);
    co_plan *plan = NULL;
    model_late *late;
    co_batch staged;
    size_t bytes;

    if (part >= CO_MODEL_MAX_LATE)
        return co_fail(CO_E_UNSUPPORTED,
                       "at most %d micro-batches of a rank in a step, of all of its shards, on "
                       "device %s: lower accumulate or shards, or start more ranks",
                       CO_MODEL_MAX_LATE, co_device_name(model->store->device));
    CO_TRY(late_open(model));
    late = late_at(model, step, part);
    late->count = batch->count;
    CO_TRY(co_model_check_batch(model, batch, images, true));
    if (batch->count == 0)
        return CO_OK;
    CO_TRY(co_model_plan(&plan, model, batch->count, true));
    CO_TRY(late_make_room(model, late, plan));
    bytes = late_place(&staged, model, late, batch);
    CO_TRY(late_grow(model, &late->staged, &late->staged_bytes, bytes, CO_MEMORY_DEVICE));
    if (late_shows_outputs(model) && wanted)
        memcpy(late->wanted, co_batch_find(batch, wanted)->data,
               late_wanted_bytes(model, batch->count));
    (void)late_place(&staged, model, late, batch);
    return late_fill(late, &staged, batch, images, queue);
}

/* ---- results ---- */

/* One after another in one place, which the queue's order keeps apart. */
static co_status late_count_there(co_model *model, uint64_t count, void *to)
{
    const co_device_metrics *there = late_counts(model);
    const char *wanted = late_wanted(model);
    const co_metric_set *set = model->metrics;
    co_queue *queue = model->store->queue;
    co_plan *plan = model->last;
    const void *compared = wanted ? co_plan_input(plan, wanted) : NULL;
    const bool label = co_model_target(model) == CO_TARGET_LABEL;
    const co_metric_batch seen = {.form = co_model_form(model),
                                  .n = co_model_rows(model, count),
                                  .output = co_plan_output(plan),
                                  .target = label ? NULL : compared,
                                  .label = label ? compared : NULL,
                                  .loss = co_plan_loss(plan)};
    late_found *found = model->found;

    CO_TRY(co_queue_fill(queue, found, 0, late_found_bytes(model)));
    there->count(queue, &found->result, &seen);
    for (int i = 0; set && i < set->n; i++) {
        const co_device_metric *metric = late_find(model, set->metric[i]->name);

        if (metric)
            metric->accumulate(queue, found->sum + set->begin[i], &seen);
    }
    return co_queue_copy(queue, to, found, late_found_bytes(model));
}

co_status co_model_forward_late(co_model *model, const co_batch *batch, int step, uint64_t part)
{
    const size_t head = late_counts(model) ? late_found_bytes(model) : 0;
    const model_late *late = late_at(model, step, part);
    co_plan *plan = NULL;
    co_batch staged;

    model->last = NULL;
    if (batch->count == 0)
        return model->norm_comm ? co_model_phantom_forward(model, batch) : CO_OK;
    (void)late_place(&staged, model, late, batch);
    CO_TRY(co_model_compute(&plan, model, &staged, NULL, true));
    if (head)
        CO_TRY(late_count_there(model, batch->count, late->memory));
    return late_shows_outputs(model) ? co_plan_queue_results(plan, (char *)late->memory + head)
                                     : CO_OK;
}

/* As the batch was, with what its outputs are compared with. */
static co_batch late_batch(const co_model *model, const model_late *late)
{
    co_batch batch = {.count = late->count};

    if (late_wanted(model))
        batch.field[0] = (co_field){.name = late_wanted(model), .data = late->wanted};
    return batch;
}

void co_model_take_late(co_result *out, co_model *model, int step, uint64_t part)
{
    const model_late *late = late_at(model, step, part);
    const size_t head = late_counts(model) ? late_found_bytes(model) : 0;
    const co_batch batch = late_batch(model, late);
    const co_metric_set *set = model->metrics;
    const late_found *found = late->memory;
    const float *score = NULL, *loss = NULL;

    if (late->count > 0 && late_shows_outputs(model)) {
        score = (const float *)(const void *)((const char *)late->memory + head);
        loss = score + co_model_rows(model, late->count) * (uint64_t)model->classes;
    }
    if (late->count == 0 || score)
        co_model_count(out, model, score, loss, &batch, true);
    if (late->count == 0 || !head)
        return;
    *out = found->result;
    for (int i = 0; set && i < set->n; i++) {
        const co_metric *metric = set->metric[i];
        const size_t n = metric->sums + metric->sums_per_output * set->form.outputs;

        if (late_find(model, metric->name))
            memcpy(model->metric_sums + set->begin[i], found->sum + set->begin[i],
                   n * sizeof(co_sum));
    }
}

void co_model_drop_late(co_model *model)
{
    co_device *device = model->store ? model->store->device : NULL;

    for (size_t i = 0; model->late && i < (size_t)CO_MODEL_LATE_STEPS * CO_MODEL_MAX_LATE; i++) {
        model_late *late = &model->late[i];

        co_device_free(device, late->staged, CO_MEMORY_DEVICE);
        co_device_free(device, late->memory, CO_MEMORY_PINNED);
        co_device_free(device, late->wanted, CO_MEMORY_HOST);
    }
    co_free(model->late);
    model->late = NULL;
    co_device_free(device, model->found, CO_MEMORY_DEVICE);
    model->found = NULL;
}
