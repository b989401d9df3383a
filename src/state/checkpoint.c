/*
 * checkpoint.c - writes a state of a run to files and reads it back.
 *
 * Maps arrays of the flat store to named tensors. Does not know when checkpoints are made or which
 * are kept.
 */
#include "state/checkpoint.h"

#include <cohort/version.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/fs.h"
#include "core/mem.h"
#include "graph/stored.h"
#include "model/model.h"

/* Tensors collected for one file. */
typedef struct checkpoint_file {
    const co_graph *graph;
    co_arena *arena; /* owned: names and means */
    co_named_tensor *tensor;
    size_t n, room;
} checkpoint_file;

static co_status checkpoint_file_open(checkpoint_file *out, const co_graph *graph, size_t arrays)
{
    *out = (checkpoint_file){.graph = graph, .arena = co_arena_create()};
    out->room = arrays * (size_t)graph->n_param;
    out->tensor =
        out->arena ? co_arena_alloc(out->arena, out->room + 1, sizeof(*out->tensor)) : NULL;
    return out->tensor ? CO_OK : CO_E_NOMEM;
}

/* The parameter's values at `data` as the model has them. */
static co_named_tensor checkpoint_plain(const co_param *param, const float *data)
{
    return (co_named_tensor){.name = param->name,
                             .dtype = CO_F32,
                             .shape = param->spec.shape,
                             .data = data,
                             .bytes = param->count * sizeof(float)};
}

/* Add the tensors of an array at `data`, laid out like param or buffer; with the prefix "" in the
   form of a file of weights, which other programs read. */
static co_status checkpoint_add(checkpoint_file *file, const char *prefix, const float *data,
                                bool buffer)
{
    for (int i = 0; i < file->graph->n_param; i++) {
        const co_param *param = &file->graph->param[i];
        const float *values = data + param->offset;
        co_named_tensor *tensor = &file->tensor[file->n];
        float *room;

        if (param->spec.buffer != buffer)
            continue;
        if (file->n++ == file->room)
            return co_fail(CO_E_FAILED, "a checkpoint has more tensors than were counted");
        if (*prefix) {
            *tensor = checkpoint_plain(param, values);
            tensor->name = co_arena_printf(file->arena, "%s%s", prefix, param->name);
        } else {
            room = co_arena_alloc(file->arena, co_param_stored_room(param) + 1, sizeof(*room));
            if (!room)
                return CO_E_NOMEM;
            *tensor = co_param_stored(param, values, room);
        }
        if (!tensor->name)
            return CO_E_NOMEM;
    }
    return CO_OK;
}

static bool checkpoint_is_one(const co_state *state, int array)
{
    if (co_state_copies(state, array) == 1)
        return true;
    return co_state_is_common(state, array) &&
           !(array == CO_STATE_PARAM && co_state_steps_on(state));
}

/* Add the array that all ranks have in common, or the mean over ranks. */
static co_status checkpoint_add_mean(checkpoint_file *file, const co_state *state, int i)
{
    const co_state_array *array = &state->shape.array[i];
    float *mean;

    if (checkpoint_is_one(state, i))
        return checkpoint_add(file, "", array->data, array->buffer);
    mean = co_arena_alloc(file->arena, array->n, sizeof(*mean));
    if (!mean)
        return CO_E_NOMEM;
    co_state_mean(mean, state, i, 0, array->n);
    return checkpoint_add(file, "", mean, array->buffer);
}

static co_status checkpoint_add_copies(checkpoint_file *file, const co_state *state, int i)
{
    const co_state_array *array = &state->shape.array[i];
    const bool one = checkpoint_is_one(state, i);

    for (int r = 0; r < (one ? 1 : state->ranks); r++) {
        const char *prefix = one ? co_arena_printf(file->arena, "%s/", array->name)
                                 : co_arena_printf(file->arena, "%d/%s/", r, array->name);

        if (!prefix)
            return CO_E_NOMEM;
        CO_TRY(checkpoint_add(file, prefix, array->data + (size_t)r * array->n, array->buffer));
    }
    return CO_OK;
}

static co_status checkpoint_write(co_manifest *manifest, const checkpoint_file *file,
                                  const char *folder, const char *name)
{
    static const char *const metadata[] = {"format", "pt", NULL};
    char path[CO_CHECKPOINT_MAX_PATH];

    CO_TRY(co_fs_join(path, sizeof(path), folder, name));
    CO_TRY(co_safetensors_write(path, file->tensor, file->n, metadata));
    return co_manifest_add_file(manifest, folder, name);
}

/* Write two arrays, weights and running statistics, as a file that a model can load. */
static co_status checkpoint_write_model(co_manifest *manifest, const co_state *state,
                                        const co_graph *graph, const char *folder, const char *name,
                                        int first)
{
    checkpoint_file file;
    co_status st = checkpoint_file_open(&file, graph, 2);

    if (st == CO_OK)
        st = checkpoint_add_mean(&file, state, first);
    if (st == CO_OK)
        st = checkpoint_add_mean(&file, state, first + 1);
    if (st == CO_OK)
        st = checkpoint_write(manifest, &file, folder, name);
    co_arena_destroy(file.arena);
    return st;
}

/* Of a parameter that was ever frozen, the updates that it missed: an I64. */
#define CHECKPOINT_MISSED "missed_updates/"

static co_status checkpoint_add_missed(checkpoint_file *file, const co_state *state)
{
    for (int i = 0; i < file->graph->n_param; i++) {
        const char *name;

        if (state->missed[i] == 0)
            continue;
        name = co_arena_printf(file->arena, CHECKPOINT_MISSED "%s", file->graph->param[i].name);
        if (!name)
            return CO_E_NOMEM;
        file->tensor[file->n++] = (co_named_tensor){.name = name,
                                                    .dtype = CO_I64,
                                                    .data = &state->missed[i],
                                                    .bytes = sizeof(state->missed[i])};
    }
    return CO_OK;
}

/* Weights that all ranks share are in the weights file. */
static co_status checkpoint_write_state(co_manifest *manifest, const co_state *state,
                                        const co_graph *graph, const char *folder)
{
    const size_t copies = (size_t)state->shape.n_array * (size_t)state->ranks;
    checkpoint_file file;
    co_status st = checkpoint_file_open(&file, graph, copies + 1);

    for (int i = 0; i < state->shape.n_array && st == CO_OK; i++)
        if (i >= CO_STATE_MORE || !checkpoint_is_one(state, i))
            st = checkpoint_add_copies(&file, state, i);
    if (st == CO_OK)
        st = checkpoint_add_missed(&file, state);
    if (st == CO_OK)
        st = checkpoint_write(manifest, &file, folder, CO_CHECKPOINT_STATE);
    co_arena_destroy(file.arena);
    return st;
}

static void checkpoint_text(char out[CO_MANIFEST_MAX_TEXT], const char *text)
{
    snprintf(out, CO_MANIFEST_MAX_TEXT, "%s", text);
}

static co_status checkpoint_describe(co_manifest *out, const co_state *state,
                                     const co_checkpoint_run *run)
{
    out->ranks = (uint64_t)state->ranks;
    out->seed = run->seed;
    out->train_samples = run->train_samples;
    out->parameter_count = run->parameter_count;
    checkpoint_text(out->cohort, co_version());
    checkpoint_text(out->model, run->model);
    checkpoint_text(out->dataset, run->dataset);
    checkpoint_text(out->strategy, run->strategy);
    checkpoint_text(out->precision, run->precision);
    for (int i = 0; i < state->shape.n_array; i++) {
        checkpoint_text(out->array[i].name, state->shape.array[i].name);
        out->array[i].copies = checkpoint_is_one(state, i) ? 1 : (uint64_t)state->ranks;
    }
    out->n_array = state->shape.n_array;
    out->point = co_calloc(1, sizeof(co_run_point));
    out->rank = co_calloc((size_t)state->ranks, sizeof(co_rank_point));
    if (!out->point || !out->rank)
        return CO_E_NOMEM;
    memcpy(out->point, &state->point, sizeof(co_run_point));
    memcpy(out->rank, state->rank, (size_t)state->ranks * sizeof(co_rank_point));
    out->config = co_strdup(run->config);
    return out->config ? CO_OK : CO_E_NOMEM;
}

static co_status checkpoint_fill(co_manifest *manifest, const char *folder, const co_state *state,
                                 const co_graph *graph)
{
    CO_TRY(checkpoint_write_model(manifest, state, graph, folder, CO_CHECKPOINT_WEIGHTS,
                                  CO_STATE_PARAM));
    if (state->shape.ema)
        CO_TRY(checkpoint_write_model(manifest, state, graph, folder, CO_CHECKPOINT_EMA,
                                      CO_STATE_MORE));
    CO_TRY(checkpoint_write_state(manifest, state, graph, folder));
    return co_manifest_write(manifest, folder, &co_checkpoint_layout);
}

co_status co_checkpoint_save(const char *dir, const co_state *state, const co_checkpoint_run *run,
                             const co_checkpoint_test *test)
{
    co_manifest manifest = {.test_accuracy = test ? test->accuracy : (double)NAN};
    char folder[CO_CHECKPOINT_MAX_PATH];
    co_status st = checkpoint_describe(&manifest, state, run);

    if (test && test->metric && test->metric != &co_metric_accuracy) {
        checkpoint_text(manifest.best_by, test->metric->name);
        manifest.best_value = test->value;
    }
    if (st == CO_OK)
        st = co_checkpoint_begin(folder, dir, state->point.step);
    if (st == CO_OK)
        st = checkpoint_fill(&manifest, folder, state, run->graph);
    if (st == CO_OK)
        st = co_checkpoint_commit(dir, state->point.step);
    if (st != CO_OK)
        co_checkpoint_clean(dir); /* frees the space, for instance on a full disk */
    co_manifest_free(&manifest);
    return st;
}

co_status co_checkpoint_open(co_manifest *out, const char *folder)
{
    co_status st;

    CO_TRY(co_manifest_read(out, folder, &co_checkpoint_layout));
    st = co_manifest_check_files(out, folder);
    if (st != CO_OK)
        co_manifest_free(out);
    return st;
}

static co_status checkpoint_get_tensor(float *to, const co_safetensors *file, const char *prefix,
                                       const co_param *param, const char *folder)
{
    const co_named_tensor *tensor = co_param_find(file, prefix, param);
    const co_shape shape = *prefix ? param->spec.shape : co_param_stored_shape(param);
    char want[64], got[64];

    if (!tensor)
        return co_fail(CO_E_DATA, "%s: has no tensor '%s%s'; is it a checkpoint of this model?",
                       folder, prefix, param->name);
    if (tensor->dtype != CO_F32 || !co_shape_equal(&tensor->shape, &shape))
        return co_fail(CO_E_DATA, "%s: tensor '%s' is %s %s, the model wants f32 %s", folder,
                       tensor->name, co_dtype_name(tensor->dtype),
                       co_shape_format(got, sizeof(got), &tensor->shape),
                       co_shape_format(want, sizeof(want), &shape));
    if (*prefix)
        memcpy(to, tensor->data, tensor->bytes);
    else
        co_param_unstore(to, param, tensor->data);
    return CO_OK;
}

static co_status checkpoint_get_copy(float *to, const co_safetensors *file, const char *prefix,
                                     bool buffer, const co_graph *graph, const char *folder)
{
    for (int i = 0; i < graph->n_param; i++) {
        const co_param *param = &graph->param[i];

        if (param->spec.buffer == buffer)
            CO_TRY(checkpoint_get_tensor(to + param->offset, file, prefix, param, folder));
    }
    return CO_OK;
}

/* `file`: weights and state. */
static co_status checkpoint_get_array(co_state *state, int i, co_safetensors *const file[2],
                                      const co_manifest *manifest, const co_graph *graph,
                                      const char *folder)
{
    co_state_array *array = &state->shape.array[i];
    const bool one = manifest->array[i].copies == 1, plain = one && i < CO_STATE_MORE;

    array->own = array->own && !one;
    if (!one && !array->own)
        return co_fail(CO_E_DATA, "%s: has a copy of '%s' for each rank, and the strategy has one",
                       folder, array->name);
    for (int r = 0; r < co_state_copies(state, i); r++) {
        char prefix[64] = "";

        if (!plain && one)
            snprintf(prefix, sizeof(prefix), "%s/", array->name);
        else if (!plain)
            snprintf(prefix, sizeof(prefix), "%d/%s/", r, array->name);
        CO_TRY(checkpoint_get_copy(array->data + (size_t)r * array->n, file[plain ? 0 : 1], prefix,
                                   array->buffer, graph, folder));
    }
    return CO_OK;
}

/* Checkpoints of earlier versions have none. */
static co_status checkpoint_get_missed(co_state *state, const co_safetensors *file,
                                       const co_graph *graph, const char *folder)
{
    for (int i = 0; i < graph->n_param; i++) {
        const co_named_tensor *tensor = co_param_find(file, CHECKPOINT_MISSED, &graph->param[i]);

        if (!tensor)
            continue;
        if (tensor->dtype == CO_I64 && tensor->bytes == sizeof(state->missed[i]))
            memcpy(&state->missed[i], tensor->data, tensor->bytes);
        if (state->missed[i] == 0 || state->missed[i] > state->rank[0].updates)
            return co_fail(CO_E_DATA,
                           "%s: '%s' is no number of updates from 1 to %llu; it is damaged", folder,
                           tensor->name, (unsigned long long)state->rank[0].updates);
    }
    return CO_OK;
}

static co_status checkpoint_check_arrays(const co_state_shape *shape, const co_manifest *manifest,
                                         const char *folder)
{
    bool same = shape->n_array == manifest->n_array;

    for (int i = 0; same && i < shape->n_array; i++)
        same = strcmp(shape->array[i].name, manifest->array[i].name) == 0;
    if (same)
        return CO_OK;
    return co_fail(CO_E_DATA,
                   "%s: does not hold the arrays that this optimizer, this strategy and this "
                   "average have; resume with the config that it was made with",
                   folder);
}

static co_status checkpoint_fill_state(co_state *state, const co_manifest *manifest,
                                       const char *folder, const co_graph *graph)
{
    static const char *const names[2] = {CO_CHECKPOINT_WEIGHTS, CO_CHECKPOINT_STATE};
    co_safetensors *file[2] = {NULL, NULL};
    char path[CO_CHECKPOINT_MAX_PATH];
    co_status st = CO_OK;

    for (int i = 0; i < 2 && st == CO_OK; i++) {
        st = co_fs_join(path, sizeof(path), folder, names[i]);
        if (st == CO_OK && !co_manifest_has_file(manifest, names[i]))
            st = co_fail(CO_E_DATA, "%s: its manifest does not name %s", folder, names[i]);
        if (st == CO_OK)
            st = co_safetensors_open_own(&file[i], path);
    }
    for (int i = 0; i < state->shape.n_array && st == CO_OK; i++)
        st = checkpoint_get_array(state, i, file, manifest, graph, folder);
    if (st == CO_OK)
        st = checkpoint_get_missed(state, file[1], graph, folder);
    co_safetensors_close(file[0]);
    co_safetensors_close(file[1]);
    return st;
}

/* Fails unless the position is consistent; its parts are used as sizes. */
static co_status checkpoint_check_point(const co_manifest *m, const char *folder)
{
    const co_run_point *point = m->point;

    if (point->steps_per_epoch > 0 && point->epoch_step <= point->steps_per_epoch &&
        point->epoch <= point->step &&
        point->step == point->epoch * point->steps_per_epoch + point->epoch_step)
        return CO_OK;
    return co_fail(CO_E_DATA, "%s: step %llu is not step %llu of epoch %llu; it is damaged", folder,
                   (unsigned long long)point->step, (unsigned long long)point->epoch_step,
                   (unsigned long long)point->epoch);
}

co_status co_checkpoint_load(co_state **out, const co_manifest *manifest, const char *folder,
                             const co_state_shape *shape, const co_graph *graph)
{
    co_state *state = NULL;
    co_status st;

    CO_TRY(checkpoint_check_point(manifest, folder));
    CO_TRY(checkpoint_check_arrays(shape, manifest, folder));
    CO_TRY(co_state_create(&state, shape, false));
    state->ranks = (int)manifest->ranks;
    memcpy(&state->point, manifest->point, sizeof(state->point));
    memcpy(state->rank, manifest->rank, manifest->ranks * sizeof(co_rank_point));
    st = checkpoint_fill_state(state, manifest, folder, graph);
    if (st != CO_OK) {
        co_state_destroy(state);
        return st;
    }
    *out = state;
    return CO_OK;
}
