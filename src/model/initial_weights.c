/*
 * initial_weights.c - the config's `init`: starting from the weights of a file (fine-tuning).
 *
 * Checks that skipped layers exist in the model. The optimizer, the schedule and the order of
 * samples are not affected.
 */
#include "model/initial_weights.h"

#include <string.h>

#define INIT_MAX_SKIP 256

typedef struct init {
    const char *weights;
    const co_value *skip;
} init;

const co_key co_init_keys[] = {
    {"weights", CO_KEY_STRING, offsetof(init, weights), NULL, 0, 0, NULL,
     "file whose names and shapes are those of the model"},
    {"skip", CO_KEY_VALUE, offsetof(init, skip), "~", 0, 0,
     CO_KEY_TAKES("a layer, or a list of them"),
     "layers that keep their drawn weights, whatever the file has of them"},
    CO_KEYS_END,
};

static bool init_is_below(const char *parameter, const char *layer)
{
    const size_t n = strlen(layer);

    return parameter && strncmp(parameter, layer, n) == 0 &&
           (parameter[n] == '.' || parameter[n] == '\0');
}

/* The layer's name, of which `name` may be an alias; NULL: no such layer. */
static const char *init_find_layer(const co_model *model, const char *name, co_arena *arena)
{
    const co_graph *graph = model->graph;

    for (int i = 0; i < graph->n_param; i++)
        if (init_is_below(graph->param[i].name, name))
            return name;
    for (int i = 0; i < graph->n_param; i++) {
        const co_param *param = &graph->param[i];
        size_t rest;

        if (!init_is_below(param->alias, name))
            continue;
        rest = strlen(param->alias) - strlen(name);
        if (strlen(param->name) > rest)
            return co_arena_printf(arena, "%.*s", (int)(strlen(param->name) - rest), param->name);
    }
    return NULL;
}

static co_status init_add_skip(const char **out, const co_value *item, const co_model *model,
                               co_arena *arena)
{
    if (item->kind != CO_VALUE_SCALAR)
        return co_value_fail(item, "init: skip: expected the name of a layer");
    *out = init_find_layer(model, item->text, arena);
    if (!*out)
        return co_value_fail(
            item,
            "init: skip: the model has no layer '%s' with weights; `cohort inspect "
            "CONFIG` lists its layers",
            item->text);
    return CO_OK;
}

/* `skip: fc` or `skip: [fc, layer4]`. */
static co_status init_read_skip(co_layer_names *out, const char **name, const co_value *skip,
                                const co_model *model, co_arena *arena)
{
    out->name = name;
    if (!skip)
        return CO_OK;
    if (skip->kind != CO_VALUE_LIST) {
        out->n = 1;
        return init_add_skip(name, skip, model, arena);
    }
    if (skip->n > INIT_MAX_SKIP)
        return co_value_fail(skip, "init: skip: more than %d layers", INIT_MAX_SKIP);
    for (; out->n < skip->n; out->n++)
        CO_TRY(init_add_skip(&name[out->n], skip->item[out->n], model, arena));
    return CO_OK;
}

bool co_init_skips(const co_value *value, const co_param *param)
{
    const co_value *skip = value->kind == CO_VALUE_MAP ? co_value_get(value, "skip") : NULL;
    const size_t n = skip && skip->kind == CO_VALUE_LIST ? skip->n : skip ? 1 : 0;

    for (size_t i = 0; i < n; i++) {
        const co_value *item = skip->kind == CO_VALUE_LIST ? skip->item[i] : skip;

        if (item->kind == CO_VALUE_SCALAR &&
            (init_is_below(param->name, item->text) || init_is_below(param->alias, item->text)))
            return true;
    }
    return false;
}

co_status co_init_load(co_model *model, const co_value *value, co_config *config)
{
    const char *name[INIT_MAX_SKIP];
    co_layer_names skip = {0, NULL};
    co_arena *arena = co_config_arena(config);
    init self = {NULL, NULL};

    if (!value)
        return CO_OK;
    if (value->kind == CO_VALUE_SCALAR)
        self.weights = value->text;
    else
        CO_TRY(co_keys_read(&self, co_init_keys, value, "init", arena));
    CO_TRY(init_read_skip(&skip, name, self.skip, model, arena));
    CO_TRY(co_model_load_except(model, self.weights, &skip));
    model->given = true;
    return CO_OK;
}
