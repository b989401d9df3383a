/* kernels.c - the config key `kernels`, read and written, and a model's kernels by name. */
#include "model/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/text.h"
#include "model/model.h"

#define KERNELS_MAX_TEXT 1024

static const char *const kernels_choices[] = {"fixed", "measured", NULL};

const co_key co_kernels_keys[] = {
    {"choice", CO_KEY_CHOICE, offsetof(co_kernels, choice), "fixed", 0, 0, kernels_choices,
     "fixed: by shapes and the CPU's instructions; measured: by time, before training"},
    {"seconds", CO_KEY_INT, offsetof(co_kernels, seconds), "60", 1, 86400, NULL,
     "that measuring may take; layers that are not reached have the fixed choice"},
    {"batch", CO_KEY_INT, offsetof(co_kernels, batch), "0", 0, 1 << 24, NULL,
     "samples that `layers` were chosen for; 0: those of a step"},
    {"layers", CO_KEY_VALUE, offsetof(co_kernels, layers), "~", 0, 0,
     CO_KEY_TAKES("a map of layers to kernels, such as {conv1: cpu/winograd, fc: onednn}"),
     "kernels of layers, which are then not measured; what measuring found is written here"},
    CO_KEYS_END,
};

co_status co_kernels_read(co_kernels *out, const co_value *value, co_arena *arena)
{
    memset(out, 0, sizeof(*out));
    CO_TRY(co_keys_read(out, co_kernels_keys, value, "kernels", arena));
    if (!out->layers || out->layers->kind == CO_VALUE_MAP)
        return CO_OK;
    return co_value_fail(out->layers, "kernels: layers: expected a map of layers to kernels, such "
                                      "as {conv1: cpu/winograd, fc: onednn}");
}

static int kernels_find_layer(const co_graph *graph, const char *name)
{
    for (int i = 0; i < graph->n_node; i++)
        if (strcmp(graph->node[i].name, name) == 0)
            return i;
    return -1;
}

static co_status kernels_fail_kernel(const co_model *model, const co_node *node,
                                     const co_value *value)
{
    char list[KERNELS_MAX_TEXT] = "";
    size_t used = 0;

    for (const co_backend *const *b = model->backends; *b; b++)
        for (const co_kernel *const *k = (*b)->kernels; *k && used < sizeof(list); k++) {
            const co_plan_pick pick = {*b, *k};
            char name[CO_PLAN_PICK_TEXT];

            if (strcmp((*k)->op, node->op->name) != 0)
                continue;
            co_plan_pick_text(name, &pick);
            used +=
                (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "", name);
        }
    return co_value_fail(value,
                         "kernels: layer %s: no kernel '%s' for %s; this build has, with this "
                         "`backend`, %s",
                         node->name, value->kind == CO_VALUE_SCALAR ? value->text : "",
                         node->op->name, list);
}

static co_status kernels_find_kernel(co_plan_pick *out, const co_model *model, const co_node *node,
                                     const co_value *value)
{
    const bool named = value->kind == CO_VALUE_SCALAR;

    for (const co_backend *const *b = model->backends; named && *b; b++)
        for (const co_kernel *const *k = (*b)->kernels; *k; k++) {
            const co_plan_pick pick = {*b, *k};
            char name[CO_PLAN_PICK_TEXT];

            co_plan_pick_text(name, &pick);
            *out = pick;
            if (strcmp((*k)->op, node->op->name) == 0 && strcmp(name, value->text) == 0)
                return CO_OK;
        }
    return kernels_fail_kernel(model, node, value);
}

static co_status kernels_find_all(co_plan_pick *out, const co_model *model, const co_value *layers)
{
    for (size_t i = 0; i < layers->n; i++) {
        const int node = kernels_find_layer(model->graph, layers->key[i]);

        if (node < 0)
            return co_value_fail(layers->item[i],
                                 "kernels: no layer is called '%s'; `cohort inspect CONFIG` shows "
                                 "their names",
                                 layers->key[i]);
        CO_TRY(kernels_find_kernel(&out[node], model, &model->graph->node[node], layers->item[i]));
    }
    return CO_OK;
}

co_status co_model_set_kernels(co_model *model, const co_value *layers)
{
    co_plan_pick *pick = NULL;
    co_status st;

    if (layers) {
        pick = co_calloc((size_t)model->graph->n_node, sizeof(*pick));
        if (!pick)
            return CO_E_NOMEM;
        st = kernels_find_all(pick, model, layers);
        if (st != CO_OK) {
            co_free(pick);
            return st;
        }
    }
    co_model_drop_plans(model);
    co_free(model->pick);
    model->pick = pick;
    return CO_OK;
}

co_status co_model_check_kernels(co_model *model, int64_t batch)
{
    const co_plan_options options = co_model_plan_options(model, batch, true);

    return co_plan_check_picks(model->graph, model->store, &options);
}

/* The kernels of layers as a map, in the order of the graph. */
static co_status kernels_make_map(co_value *map, const co_model *model, co_arena *arena)
{
    const size_t n = (size_t)model->graph->n_node;
    co_value *item = co_arena_alloc(arena, n, sizeof(*item));

    *map = (co_value){.kind = CO_VALUE_MAP,
                      .item = co_arena_alloc(arena, n, sizeof(*map->item)),
                      .key = co_arena_alloc(arena, n, sizeof(*map->key))};
    if (!item || !map->item || !map->key)
        return CO_E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        char name[CO_PLAN_PICK_TEXT];

        if (!model->pick || !model->pick[i].kernel)
            continue;
        co_plan_pick_text(name, &model->pick[i]);
        item[i] = (co_value){.kind = CO_VALUE_SCALAR, .text = co_arena_strdup(arena, name)};
        if (!item[i].text)
            return CO_E_NOMEM;
        map->key[map->n] = model->graph->node[i].name;
        map->item[map->n++] = &item[i];
    }
    return CO_OK;
}

static co_status kernels_write_text(char **out, const co_kernels *kernels, const co_value *layers)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    co_status st;

    if (!stream)
        return co_fail(CO_E_NOMEM, "out of memory");
    fprintf(stream,
            "{choice: %s, seconds: %lld, batch: %lld, layers: ", kernels_choices[kernels->choice],
            (long long)kernels->seconds, (long long)kernels->batch);
    st = co_value_write(stream, layers);
    fputc('}', stream);
    return co_text_take(out, stream, &text, st);
}

co_status co_kernels_write(char **out, const co_model *model, const co_kernels *kernels)
{
    co_arena *arena = co_arena_create();
    co_value layers;
    co_status st = arena ? kernels_make_map(&layers, model, arena) : CO_E_NOMEM;

    if (st == CO_OK)
        st = kernels_write_text(out, kernels, &layers);
    co_arena_destroy(arena);
    return st;
}
