/*
 * evidence_weights.c - evidence from a run's final weights: against those it began from, and units
 * without a gradient.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/fs.h"
#include "core/mem.h"
#include "data/data.h"
#include "explain/evidence.h"
#include "model/initial_weights.h"
#include "model/model.h"

#define WEIGHTS_MAX_PATH 4096
#define WEIGHTS_SAMPLES  128 /* over which units without a gradient are looked for, at most, */
#define WEIGHTS_FLOATS   ((uint64_t)2 << 20) /* and fewer of large samples */
#define WEIGHTS_REPEATS  5                   /* of which the fastest counts */

typedef struct weights_sums {
    double moved, length; /* squares */
} weights_sums;

/* Squares are added up in double; elements of a file may be unaligned. */
static weights_sums weights_compare(const co_named_tensor *then, const co_named_tensor *now)
{
    const size_t n = then->bytes / sizeof(float);
    weights_sums sums = {0};

    for (size_t i = 0; i < n; i++) {
        float a, b;

        memcpy(&a, (const char *)then->data + i * sizeof(float), sizeof(a));
        memcpy(&b, (const char *)now->data + i * sizeof(float), sizeof(b));
        sums.moved += ((double)b - (double)a) * ((double)b - (double)a);
        sums.length += (double)a * (double)a;
    }
    return sums;
}

static bool weights_is_frozen(const co_model *model, const char *name)
{
    const co_graph *graph = model->graph;

    for (int i = 0; i < graph->n_param; i++)
        if (strcmp(graph->param[i].name, name) == 0)
            return graph->param[i].frozen;
    return false;
}

static co_status weights_changes(co_evidence_weights *out, const co_model *model,
                                 const co_safetensors *file)
{
    co_named_tensor *then = NULL;
    weights_sums all = {0};
    size_t n = 0;

    CO_TRY(co_model_tensors(&then, &n, model));
    out->at = co_calloc(n ? n : 1, sizeof(*out->at));
    for (size_t i = 0; out->at && i < n; i++) {
        const co_named_tensor *now = co_safetensors_find(file, then[i].name);
        weights_sums sums;

        if (!now || now->bytes != then[i].bytes || then[i].dtype != CO_F32 ||
            then[i].shape.ndim < 2)
            continue;
        sums = weights_compare(&then[i], now);
        all.moved += sums.moved;
        all.length += sums.length;
        out->at[out->n++] =
            (co_evidence_weight){.name = co_strdup(then[i].name),
                                 .change = sums.length > 0 ? sqrt(sums.moved / sums.length) : 0,
                                 .same = memcmp(then[i].data, now->data, now->bytes) == 0,
                                 .frozen = weights_is_frozen(model, then[i].name)};
    }
    out->change = all.length > 0 ? sqrt(all.moved / all.length) : 0;
    co_free(then);
    return out->at ? CO_OK : CO_E_NOMEM;
}

/* ---- units without a gradient ---- */

typedef struct weights_batch {
    co_batch batch;
    void *data[CO_MAX_FIELDS];
    uint32_t sample[WEIGHTS_SAMPLES];
} weights_batch;

static size_t weights_field_bytes(const co_field *field)
{
    return (size_t)co_shape_count(&field->shape) * co_dtype_size(field->dtype);
}

static void weights_free_batch(weights_batch *b)
{
    for (int k = 0; k < CO_MAX_FIELDS; k++)
        co_free(b->data[k]);
}

static co_status weights_make_room(weights_batch *b, const co_dataset *data, uint64_t n)
{
    const co_field *field = co_dataset_fields(data);

    for (int k = 0; k < CO_MAX_FIELDS && field[k].name; k++) {
        const size_t bytes = weights_field_bytes(&field[k]);

        b->data[k] = co_calloc((size_t)n, bytes ? bytes : 1);
        if (!b->data[k])
            return CO_E_NOMEM;
        b->batch.field[k] = field[k];
        b->batch.field[k].data = b->data[k];
    }
    return CO_OK;
}

static co_status weights_read_sample(weights_batch *b, const co_dataset *data, uint64_t i)
{
    const uint64_t at = b->batch.count;

    for (int k = 0; k < CO_MAX_FIELDS && b->data[k]; k++)
        CO_TRY(co_dataset_read_field(
            data, (char *)b->data[k] + at * weights_field_bytes(&b->batch.field[k]), k, i));
    b->sample[at] = (uint32_t)i;
    b->batch.count++;
    return CO_OK;
}

/* Samples all over the training split, not augmented; without damaged ones that the run skips. */
static co_status weights_fill_batch(weights_batch *b, const co_dataset *data)
{
    const uint64_t count = co_dataset_count(data),
                   room = WEIGHTS_FLOATS / (uint64_t)co_shape_count(co_dataset_shape(data)) + 1,
                   most = room < WEIGHTS_SAMPLES ? room : WEIGHTS_SAMPLES,
                   n = count < most ? count : most;

    CO_TRY(weights_make_room(b, data, n));
    for (uint64_t i = 0; i < n; i++) {
        const co_status st = weights_read_sample(b, data, i * count / n);

        if (st != CO_OK && !co_dataset_skips(data, st))
            return st;
    }
    b->batch.sample = b->sample;
    b->batch.local = b->batch.global = b->batch.count;
    return CO_OK;
}

/* Whether a layer's output goes to a ReLU, perhaps through batch norm or a pooling. */
static bool weights_feeds_relu(const co_graph *graph, int node)
{
    for (int at = node, next = node; at >= 0 && at - node < 4; at = next) {
        next = -1;
        for (int i = at + 1; next < 0 && i < graph->n_node; i++)
            if (graph->node[i].in[0] == graph->node[at].out[0])
                next = i;
        if (next < 0)
            return false;
        if (strcmp(graph->node[next].op->name, "relu") == 0)
            return true;
        if (strcmp(graph->node[next].op->name, "batchnorm") != 0 &&
            strcmp(graph->node[next].op->name, "maxpool") != 0 &&
            strncmp(graph->node[next].op->name, "dropout", 7) != 0)
            return false;
    }
    return false;
}

static bool weights_is_zero(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (x[i] != 0.0f)
            return false;
    return true;
}

/* Where no weight has a gradient, the loss has none, as with a single class: that says nothing of
   units. */
static void weights_count_dead(co_evidence_weights *out, const co_model *model)
{
    const co_graph *graph = model->graph;
    double most = 0;

    if (weights_is_zero(model->store->grad, model->store->n))
        return;
    for (int i = 0; i < graph->n_node; i++) {
        const co_node *node = &graph->node[i];
        const co_param *param = node->n_param ? &graph->param[node->param[0]] : NULL;
        uint64_t units, dead = 0;
        size_t row;

        if (!param || param->frozen || param->spec.shape.ndim < 2 || !weights_feeds_relu(graph, i))
            continue;
        units = (uint64_t)param->spec.shape.dim[0];
        row = param->count / units;
        for (uint64_t u = 0; u < units; u++)
            dead += weights_is_zero(model->store->grad + param->offset + u * row, row);
        out->units += units;
        out->dead += dead;
        if ((double)dead / (double)units > most) {
            most = (double)dead / (double)units;
            snprintf(out->most_dead, sizeof(out->most_dead), "%s", node->name);
        }
    }
}

/* The first pass compiles. The gradient stays. */
static co_status weights_pass(co_evidence_weights *out, co_model *model, const co_batch *batch)
{
    out->sample_batch = batch->count;
    for (int i = 0; i <= WEIGHTS_REPEATS; i++) {
        const uint64_t start = co_clock_ns();
        co_result result;
        double seconds;

        CO_TRY(co_model_forward(&result, model, batch));
        CO_TRY(co_model_backward(model, batch, false, NULL, NULL));
        seconds = co_clock_seconds(start, co_clock_ns()) / (double)batch->count;
        if (i == 1 || (i > 1 && seconds < out->sample_seconds))
            out->sample_seconds = seconds;
    }
    return CO_OK;
}

/* Forward and backward over some samples by the trained network. */
static co_status weights_try(co_evidence_weights *out, co_model *model, const co_dataset *train,
                             const char *path, int threads)
{
    weights_batch b = {.batch = {.count = 0}};
    co_status st = co_model_load(model, path);

    co_model_setup(model, threads > 0 ? threads : 1);
    if (st == CO_OK)
        st = weights_fill_batch(&b, train);
    if (st == CO_OK && b.batch.count > 0)
        st = weights_pass(out, model, &b.batch);
    if (st == CO_OK && b.batch.count > 0)
        weights_count_dead(out, model);
    weights_free_batch(&b);
    return st;
}

static co_status weights_read(co_evidence_weights *out, co_model *model, const co_spec *spec,
                              const co_dataset *train, const char *path, int threads)
{
    co_safetensors *file;
    co_status st;

    CO_TRY(co_model_draw(model));
    CO_TRY(co_init_load(model, spec->init, spec->config));
    CO_TRY(co_model_freeze_value(model, spec->freeze));
    CO_TRY(co_safetensors_open(&file, path));
    st = weights_changes(out, model, file);
    co_safetensors_close(file);
    CO_TRY(st);
    out->drawn = !spec->init;
    out->known = true;
    return weights_try(out, model, train, path, threads);
}

co_status co_evidence_read_weights(co_evidence_weights *out, const co_spec *spec,
                                   const char *run_dir, int threads)
{
    char path[WEIGHTS_MAX_PATH];
    co_dataset *train = NULL;
    co_model *model = NULL;
    co_status st;

    if (snprintf(path, sizeof(path), "%s/final.safetensors", run_dir) >= (int)sizeof(path))
        return co_fail(CO_E_USAGE, "the path of the run directory is too long");
    if (!co_fs_exists(path))
        return co_fail(CO_E_DATA, "%s: the run has no final weights", path);
    CO_TRY(co_dataset_open_value(&train, spec->data, spec->config, CO_SPLIT_TRAIN));
    st = co_spec_create_model(&model, spec, co_dataset_shape(train), co_dataset_classes(train));
    if (st == CO_OK)
        st = weights_read(out, model, spec, train, path, threads);
    co_model_destroy(model);
    co_dataset_destroy(train);
    return st;
}
