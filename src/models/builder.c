/*
 * builder.c - layer after layer to a graph, from C or from a config.
 *
 * Decides what a layer's text means. Names no op but the two that do not have one input and one
 * output: the sum of a residual, and the loss.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/number.h"
#include "models/models.h"
#include "ops/ops.h"

#define BUILDER_MAX_LAYERS 4096 /* ResNet-152 has about 500 */
#define BUILDER_MAX_NAME   128
#define BUILDER_MAX_NAMES  64
#define BUILDER_MAX_ATTRS  256

static bool builder_is_layer(const co_op *op)
{
    return op->n_in == 1 && !op->is_loss;
}

static bool builder_joins(const co_op *op)
{
    return op->n_in > 1 && !op->is_loss;
}

static bool builder_is_loss(const co_op *op)
{
    return op->is_loss;
}

/* The op `name` among those that are `wanted`. */
static co_status builder_find(const co_op **out, const char *name, const co_value *place,
                              const char *what, bool (*wanted)(const co_op *op))
{
    const char *names[BUILDER_MAX_NAMES] = {"residual"};
    size_t n = wanted == builder_is_layer;

    *out = co_op_find(name);
    if (*out && wanted(*out))
        return CO_OK;
    for (const co_op *const *op = co_ops; *op && n < BUILDER_MAX_NAMES; op++)
        if (wanted(*op))
            names[n++] = (*op)->name;
    return co_value_unknown(place, what, name, names, n);
}

/* `maxpool: 2` says what `maxpool: {kernel: 2}` says. */
static co_status builder_spread(const co_value **attrs, const co_op *op, co_arena *arena)
{
    const co_value *value = *attrs;
    co_value *map;

    if (!value || value->kind == CO_VALUE_MAP || value->kind == CO_VALUE_NULL)
        return CO_OK;
    if (!op->bare)
        return co_value_fail(value, "%s: expected {key: value}", op->name);
    map = co_arena_alloc(arena, 1, sizeof(*map));
    if (!map)
        return CO_E_NOMEM;
    *map = *value;
    map->kind = CO_VALUE_MAP;
    map->n = 1;
    map->item = co_arena_alloc(arena, 1, sizeof(*map->item));
    map->key = co_arena_alloc(arena, 1, sizeof(*map->key));
    if (!map->item || !map->key)
        return CO_E_NOMEM;
    map->item[0] = (co_value *)value;
    map->key[0] = op->bare;
    *attrs = map;
    return CO_OK;
}

/* A node with attributes from the config. `place` is blamed for a shape that does not fit. */
static co_status builder_append(int *out, co_builder *b, const co_op *op, const char *name,
                                const co_value *attrs, const int *in, const co_value *place)
{
    co_arena *arena = co_config_arena(b->config);
    void *attr = co_arena_alloc(arena, 1, op->attr_size ? op->attr_size : 1);

    if (!attr)
        return CO_E_NOMEM;
    if (b->graph->n_node >= BUILDER_MAX_LAYERS)
        return co_value_fail(place, "a network of more than %d layers", BUILDER_MAX_LAYERS);
    CO_TRY(builder_spread(&attrs, op, arena));
    CO_TRY(co_keys_read_named(attr, op->keys, attrs, op->name, arena));
    return co_value_place(op->is_loss ? co_graph_add_loss(out, b->graph, op, name, attr, in[0])
                                      : co_graph_add(out, b->graph, op, name, attr, in),
                          place);
}

/* The name of a layer of a block begins with that of the block. */
static co_status builder_prefix(const char **name, const co_builder *b)
{
    if (!*name || !b->prefix)
        return CO_OK;
    *name = co_arena_printf(co_config_arena(b->config), "%s%s", b->prefix, *name);
    return *name ? CO_OK : CO_E_NOMEM;
}

co_status co_build(co_builder *b, const char *op, const char *name, const char *attrs)
{
    const co_value *value = NULL;
    const co_op *found;

    if (attrs)
        CO_TRY(co_config_add_text(&value, b->config, attrs));
    CO_TRY(builder_find(&found, op, NULL, "layer", builder_is_layer));
    CO_TRY(builder_prefix(&name, b));
    return builder_append(&b->x, b, found, name, value, &b->x, NULL);
}

co_status co_build_name_param(co_builder *b, int k, const char *name, int ones)
{
    CO_TRY(builder_prefix(&name, b));
    return co_graph_name_param(b->graph, k, name, ones);
}

co_status co_build_from(co_builder *b, const char *op, const char *name, const int *in)
{
    const co_op *found;

    CO_TRY(builder_find(&found, op, NULL, "op", builder_joins));
    CO_TRY(builder_prefix(&name, b));
    return builder_append(&b->x, b, found, name, NULL, in, NULL);
}

co_status co_build_format(co_builder *b, const char *op, const char *name, const char *attrs, ...)
{
    char text[BUILDER_MAX_ATTRS];
    va_list args;
    int n;

    va_start(args, attrs);
    n = co_number_vprint(text, sizeof(text), attrs, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof(text))
        return co_fail(CO_E_FAILED, "layer %s: its attributes are too long", name ? name : op);
    return co_build(b, op, name, text);
}

co_status co_build_begin_block(co_builder *b, const char *prefix, ...)
{
    char text[BUILDER_MAX_NAME];
    va_list args;
    int n;

    va_start(args, prefix);
    n = vsnprintf(text, sizeof(text), prefix, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof(text))
        return co_fail(CO_E_FAILED, "block %s: its name is too long", text);
    b->prefix = co_arena_strdup(co_config_arena(b->config), text);
    if (!b->prefix)
        return CO_E_NOMEM;
    co_graph_begin_block(b->graph);
    return CO_OK;
}

void co_build_end_block(co_builder *b)
{
    b->prefix = NULL;
    co_graph_end_block(b->graph);
}

co_status co_build_add(co_builder *b, int other)
{
    const int sum[2] = {b->x, other};

    return builder_append(&b->x, b, &co_op_add, NULL, NULL, sum, NULL);
}

/* The layer's own name, or NULL. It becomes a part of tensor names in files. */
static co_status builder_layer_name(const char **out, const co_value *attrs)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "_-.";
    const co_value *name = co_value_get(attrs, "name");

    *out = NULL;
    if (!name)
        return CO_OK;
    if (name->kind != CO_VALUE_SCALAR || !name->text[0] || strlen(name->text) > BUILDER_MAX_NAME ||
        name->text[strspn(name->text, letters)])
        return co_value_fail(name, "a layer's name has 1 to %d letters, digits, '_', '-' and '.'",
                             BUILDER_MAX_NAME);
    *out = name->text;
    return CO_OK;
}

typedef struct builder_residual {
    const co_value *body, *shortcut;
} builder_residual;

static const co_key builder_residual_keys[] = {
    {.name = "body",
     .type = CO_KEY_VALUE,
     .offset = offsetof(builder_residual, body),
     .choices = CO_KEY_TAKES("a list of layers"),
     .help = "layers whose output is added to their input"},
    {.name = "shortcut",
     .type = CO_KEY_VALUE,
     .offset = offsetof(builder_residual, shortcut),
     .fallback = "~",
     .choices = CO_KEY_TAKES("a list of layers"),
     .help = "layers applied to the input before the sum; absent: none"},
    CO_KEYS_END,
};

/* x = body(x) + shortcut(x) (He et al., arXiv:1512.03385). The depth of a config bounds how often
   one is in another. */
static co_status builder_add_residual(co_builder *b, const co_value *value, const co_value *place)
{
    const int in = b->x;
    builder_residual self;
    int sum[2];

    CO_TRY(co_keys_read_named(&self, builder_residual_keys, value, "residual",
                              co_config_arena(b->config)));
    if (!self.body)
        return co_value_fail(place, "residual: the body has no layers");
    co_graph_begin_block(b->graph);
    CO_TRY(co_build_layers(b, self.body));
    sum[0] = b->x;
    b->x = in;
    if (self.shortcut)
        CO_TRY(co_build_layers(b, self.shortcut));
    sum[1] = b->x;
    CO_TRY(builder_append(&b->x, b, &co_op_add, NULL, NULL, sum, place));
    co_graph_end_block(b->graph);
    return CO_OK;
}

/* `- relu`, `- maxpool: 2` or `- conv2d: {out: 10, kernel: 5}`. */
static co_status builder_add_item(co_builder *b, const co_value *item)
{
    const co_value none = co_value_absent(item);
    const bool map = item->kind == CO_VALUE_MAP && item->n == 1;
    const co_value *attrs = map && item->item[0]->kind != CO_VALUE_NULL ? item->item[0] : &none;
    const char *op = map ? item->key[0] : item->text, *name;
    const co_op *found;

    if (!map && item->kind != CO_VALUE_SCALAR)
        return co_value_fail(item, "expected one layer: `- relu`, `- maxpool: 2` or "
                                   "`- conv2d: {out: 10, kernel: 5}`");
    if (strcmp(op, "residual") == 0)
        return builder_add_residual(b, attrs, item);
    CO_TRY(builder_find(&found, op, item, "layer", builder_is_layer));
    CO_TRY(builder_layer_name(&name, attrs));
    return builder_append(&b->x, b, found, name, attrs, &b->x, item);
}

co_status co_build_layers(co_builder *b, const co_value *list)
{
    if (list->kind != CO_VALUE_LIST || list->n == 0)
        return co_value_fail(list, "expected a list of layers, such as [flatten, linear: 10]");
    for (size_t i = 0; i < list->n; i++)
        CO_TRY(builder_add_item(b, list->item[i]));
    return CO_OK;
}

co_status co_build_loss(co_builder *b, const co_value *loss)
{
    co_graph *graph = b->graph;
    const int last = graph->var[b->x].producer;
    const bool log_probabilities = last >= 0 && graph->node[last].op == &co_op_log_softmax;
    const char *name = log_probabilities ? "nll_loss" : "cross_entropy";
    const co_value *map = NULL;
    const co_op *op;
    int out;

    if (loss)
        CO_TRY(co_value_plugin(&name, &map, loss, "loss"));
    CO_TRY(builder_find(&op, name, loss, "loss", builder_is_loss));
    if (op == &co_op_nll_loss && !log_probabilities)
        return co_value_fail(loss, "nll_loss needs log-probabilities: end the network with "
                                   "log_softmax, or use cross_entropy");
    return builder_append(&out, b, op, "loss", map, &b->x, loss);
}
