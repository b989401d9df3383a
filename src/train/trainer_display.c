/*
 * trainer_display.c - shows sinks what is no figure: the network, the config and some samples at
 * the start, weights and gradients every few epochs. Only rank 0 has sinks.
 */
#include <stdio.h>
#include <string.h>

#include "core/config.h"
#include "core/mem.h"
#include "core/text.h"
#include "data/picture.h"
#include "model/model.h"
#include "train/trainer_internal.h"

#define DISPLAY_MAX_NAME 256

static co_status display_to_sinks(trainer *t, const co_display *display)
{
    for (int i = 0; i < t->n_sink; i++)
        if (t->sink[i]->ops->show)
            CO_TRY(t->sink[i]->ops->show(t->sink[i], display));
    return CO_OK;
}

/* --- the network --- */

/* Names of a graph's tensors: of the input, or the node that makes them. */
static void display_name_tensors(const char **name, const co_graph *graph)
{
    for (int v = 0; v < graph->n_var; v++)
        name[v] = graph->var[v].producer < 0 ? NULL : graph->node[graph->var[v].producer].name;
    for (int i = 0; i < graph->n_input; i++)
        name[graph->input[i].var] = graph->input[i].name;
}

static co_display_node display_tensor(const co_graph *graph, int var, const char *name)
{
    const co_shape *shape = &graph->var[var].shape;

    return (co_display_node){.name = name, .dim = shape->dim, .n_dim = shape->ndim};
}

static co_status display_network(trainer *t)
{
    const co_graph *graph = t->job->model->graph;
    co_arena *arena = co_arena_create();
    co_display display = {.kind = CO_DISPLAY_NETWORK};
    co_display_node *node = NULL;
    const char **name = NULL, **in = NULL;
    co_status st = CO_E_NOMEM;

    if (arena) {
        node = co_arena_alloc(arena, (size_t)graph->n_input + (size_t)graph->n_node, sizeof(*node));
        name = co_arena_alloc(arena, (size_t)graph->n_var, sizeof(*name));
        in = co_arena_alloc(arena, (size_t)graph->n_node * CO_OP_MAX_IN, sizeof(*in));
    }
    if (node && name && in) {
        display_name_tensors(name, graph);
        for (int i = 0; i < graph->n_input; i++)
            node[display.n++] = display_tensor(graph, graph->input[i].var, graph->input[i].name);
        for (int i = 0; i < graph->n_node; i++) {
            const co_node *from = &graph->node[i];
            co_display_node *to = &node[display.n++];

            *to = display_tensor(graph, from->out[0], from->name);
            to->op = from->op->name;
            to->in = in + (size_t)i * CO_OP_MAX_IN;
            for (int k = 0; k < from->op->n_in; k++)
                in[(size_t)i * CO_OP_MAX_IN + (size_t)to->n_in++] = name[from->in[k]];
        }
        display.node = node;
        st = display_to_sinks(t, &display);
    }
    co_arena_destroy(arena);
    return st;
}

/* --- the config --- */

typedef struct display_keys {
    co_arena *arena; /* borrowed */
    co_display_key *key;
    size_t n, room;
} display_keys;

static co_status display_add_key(void *arg, const char *name, const co_value *value)
{
    display_keys *keys = arg;
    const char *text = value->text, *kept;
    char *flow = NULL, *printed;
    size_t size;
    FILE *out;

    if (value->kind == CO_VALUE_NULL || value->kind == CO_VALUE_MAP || keys->n == keys->room)
        return CO_OK; /* nothing, or more than a page can show */
    if (value->kind == CO_VALUE_LIST) {
        out = open_memstream(&flow, &size);
        if (!out)
            return co_fail(CO_E_NOMEM, "out of memory");
        CO_TRY(co_text_take(&printed, out, &flow, co_value_write(out, value)));
        text = co_arena_strdup(keys->arena, printed);
        co_free(printed);
        if (!text)
            return CO_E_NOMEM;
    }
    kept = co_arena_strdup(keys->arena, name);
    if (!kept)
        return CO_E_NOMEM;
    keys->key[keys->n++] = (co_display_key){kept, text};
    return CO_OK;
}

static co_status display_config(trainer *t)
{
    enum { MOST = 512 };
    char path[4096 + 16];
    co_config *config;
    display_keys keys = {.room = MOST};
    co_display display = {.kind = CO_DISPLAY_CONFIG};
    co_status st = CO_E_NOMEM;

    snprintf(path, sizeof(path), "%s/config.yaml", t->job->result->train.run_dir);
    CO_TRY(co_config_load(&config, path));
    keys.arena = co_config_arena(config);
    keys.key = co_arena_alloc(keys.arena, MOST, sizeof(*keys.key));
    if (keys.key)
        st = co_value_walk(co_config_root(config), "", display_add_key, &keys);
    display.key = keys.key;
    display.n = keys.n;
    if (st == CO_OK)
        st = display_to_sinks(t, &display);
    co_config_destroy(config);
    return st;
}

/* --- samples --- */

/* Some of the training split, drawn for the first epoch. */
static co_status display_samples(trainer *t)
{
    const co_dataset *data = t->job->train;
    const co_shape *shape = co_dataset_shape(data);
    const uint64_t n = (uint64_t)t->job->spec.board_images;
    char name[DISPLAY_MAX_NAME];
    co_display display = {.kind = CO_DISPLAY_IMAGE, .name = name};
    co_picture picture = {.png = {NULL, 0}};
    co_status st = CO_OK;
    int32_t label;

    for (uint64_t i = 0; st == CO_OK && i < n; i++) {
        const uint64_t sample = co_dataset_count(data) * i / n;
        const co_augment_place place = {(uint64_t)t->job->spec.seed, 0, sample};

        st = co_picture_draw(&picture, data, sample, &place);
        if (st == CO_OK && picture.png.n == 0)
            break;
        if (st == CO_OK)
            st = co_dataset_take_label(&label, data, sample);
        if (st == CO_E_DATA) { /* reported, or replaced, when training reads it */
            st = CO_OK;
            continue;
        }
        if (st != CO_OK)
            break;
        snprintf(name, sizeof(name), "samples/%llu, label %d", (unsigned long long)sample, label);
        display.png = picture.png.at;
        display.size = picture.png.n;
        display.channels = shape->dim[0];
        display.height = shape->dim[1];
        display.width = shape->dim[2];
        st = display_to_sinks(t, &display);
    }
    co_picture_free(&picture);
    return st;
}

/* --- weights and gradients --- */

static co_status display_array(trainer *t, co_store_array array, const char *what)
{
    const co_graph *graph = t->job->model->graph;
    char name[DISPLAY_MAX_NAME];
    float *values;
    co_status st = CO_OK;

    CO_TRY(co_store_map(&values, t->job->model->store, array));
    for (int i = 0; st == CO_OK && i < graph->n_param; i++) {
        const co_param *p = &graph->param[i];
        const co_display display = {.kind = CO_DISPLAY_VALUES,
                                    .step = t->step,
                                    .name = name,
                                    .value = values + p->offset,
                                    .n = p->count};

        if (p->spec.buffer || (array == CO_STORE_GRAD && p->frozen))
            continue;
        snprintf(name, sizeof(name), "%s/%s", what, p->name);
        st = display_to_sinks(t, &display);
    }
    CO_TRY(co_store_unmap(t->job->model->store, array, values, false));
    return st;
}

co_status trainer_show_start(trainer *t)
{
    if (t->n_sink == 0 || !t->job->spec.tensorboard || t->step > 0)
        return CO_OK;
    CO_TRY(display_config(t));
    CO_TRY(display_network(t));
    return display_samples(t);
}

co_status trainer_show_epoch(trainer *t)
{
    const uint64_t every = (uint64_t)t->job->spec.board_histograms;

    if (t->n_sink == 0 || !t->job->spec.tensorboard || every == 0 || (t->epoch + 1) % every != 0)
        return CO_OK;
    CO_TRY(display_array(t, CO_STORE_PARAM, "weights"));
    if (co_distributed_sums_slices(t->distributed))
        return CO_OK;
    return display_array(t, CO_STORE_GRAD, "gradients");
}
