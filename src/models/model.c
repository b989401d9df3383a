/*
 * model.c - from a config to a finished graph: finds the model, gives it its keys, puts the loss
 * on it and checks that the result fits the data.
 *
 * Names no model.
 */
#include <inttypes.h>
#include <string.h>

#include "core/mem.h"
#include "models/models.h"

#define MODEL_MAX_ELEMENTS (INT64_C(1) << 40) /* of a sample: no product of sizes overflows */

typedef struct model_self {
    int64_t classes;    /* 0: the data's */
    max_align_t self[]; /* the model's own fields */
} model_self;

const co_key co_model_common_keys[] = {
    {.name = "classes",
     .type = CO_KEY_INT,
     .offset = offsetof(model_self, classes),
     .fallback = "~",
     .min = 1,
     .max = 1 << 20,
     .help = "logits that the network gives; by default the number of classes of the data"},
    CO_KEYS_END,
};

/* Parameters of the layers that were renamed say how older files call them. */
static co_status model_add_former(co_graph *graph, const co_former_name *renamed)
{
    for (; renamed && renamed->name; renamed++) {
        const size_t n = strlen(renamed->name);

        for (int i = 0; i < graph->n_param; i++) {
            co_param *param = &graph->param[i];

            if (strncmp(param->name, renamed->name, n) != 0 || param->name[n] != '.')
                continue;
            param->alias = co_arena_printf(graph->arena, "%s%s", renamed->former, param->name + n);
            if (!param->alias)
                return CO_E_NOMEM;
        }
    }
    return CO_OK;
}

static co_status model_add_prefixed(co_graph *graph, const char *prefix)
{
    for (int i = 0; prefix && i < graph->n_param; i++) {
        graph->param[i].alias = co_arena_printf(graph->arena, "%s%s", prefix, graph->param[i].name);
        if (!graph->param[i].alias)
            return CO_E_NOMEM;
    }
    return CO_OK;
}

static co_status model_add_named(co_builder *b, const co_value *value)
{
    co_arena *arena = co_config_arena(b->config);
    const co_value none = co_value_absent(value), *map;
    const co_model_ops *ops;
    const void *chosen;
    model_self *m;

    CO_TRY(co_plugin_choose(&chosen, &map, &co_model_plugins, value, NULL));
    ops = chosen;
    m = co_arena_alloc(arena, 1, sizeof(*m) + ops->self_size);
    if (!m)
        return CO_E_NOMEM;
    CO_TRY(co_plugin_read(m, ops, &co_model_plugins, co_model_common_keys,
                          offsetof(model_self, self), map ? map : &none, arena));
    if (m->classes)
        b->classes = m->classes;
    b->variant = ops->variant;
    CO_TRY(co_value_place(ops->build(m->self, b), value));
    b->graph->extra = ops->extra;
    CO_TRY(model_add_prefixed(b->graph, ops->prefix));
    return model_add_former(b->graph, ops->former);
}

static co_status model_check_data(const co_shape *sample, int64_t classes)
{
    int64_t count = 1;

    if (sample->ndim < 1 || sample->ndim >= CO_MAX_DIMS)
        return co_fail(CO_E_USAGE, "a sample of a data set has 1 to %d dimensions, not %d",
                       CO_MAX_DIMS - 1, sample->ndim);
    for (int i = 0; i < sample->ndim; i++)
        if (sample->dim[i] < 1 || __builtin_mul_overflow(count, sample->dim[i], &count) ||
            count > MODEL_MAX_ELEMENTS)
            return co_fail(CO_E_USAGE,
                           "a sample with a dimension of %" PRId64
                           ": each is at least 1, and their product at most 2^40",
                           sample->dim[i]);
    if (classes < 1)
        return co_fail(CO_E_USAGE, "%" PRId64 " classes: there is at least 1", classes);
    return CO_OK;
}

/* A value for each position is not what the losses of values compare. */
static co_status model_check_loss(const co_graph *graph, const co_value *place)
{
    const co_op *loss = graph->node[graph->var[graph->loss].producer].op;

    if (graph->var[graph->output].shape.ndim == 2 || loss->target == CO_TARGET_LABEL)
        return CO_OK;
    return co_value_fail(place,
                         "%s: the network gives values for each position of a sequence; end "
                         "it with `flatten` and `linear`",
                         loss->name);
}

static co_status model_check_output(const co_builder *b, int64_t classes, const co_value *place)
{
    const co_shape *out = &b->graph->var[b->x].shape;

    if (out->ndim != 2 && out->ndim != 3)
        return co_value_fail(place,
                             "the network ends in images; end it with `flatten` and "
                             "`linear: %" PRId64 "`",
                             classes);
    return CO_OK;
}

static co_status model_check_width(const co_graph *graph, int64_t classes, const co_value *place)
{
    const co_shape *out = &graph->var[graph->output].shape;
    const int64_t width = out->dim[out->ndim - 1];
    const bool labels = graph->node[graph->var[graph->loss].producer].op->target == CO_TARGET_LABEL;

    if (width >= classes)
        return CO_OK;
    return co_value_fail(place,
                         "the network gives %" PRId64 " %s for each sample, but the data has %s"
                         "%" PRId64 " %s",
                         width, labels ? "logits" : "values", labels ? "" : "targets of ", classes,
                         labels ? "classes" : "values");
}

co_status co_model_build(co_graph **out, const co_value *model, const co_value *layers,
                         const co_value *loss, co_config *config, const co_shape *sample,
                         int64_t classes)
{
    co_builder b = {.config = config, .classes = classes};
    co_status st;

    CO_TRY(model_check_data(sample, classes));
    CO_TRY(co_graph_create(&b.graph));
    st = co_graph_add_input(&b.x, b.graph, CO_FIELD_INPUT, sample, CO_F32);
    if (st == CO_OK)
        st = model ? model_add_named(&b, model) : co_build_layers(&b, layers);
    if (st == CO_OK)
        st = model_check_output(&b, classes, model ? model : layers);
    if (st == CO_OK)
        st = co_build_loss(&b, loss);
    if (st == CO_OK)
        st = model_check_loss(b.graph, loss ? loss : model ? model : layers);
    if (st == CO_OK)
        st = model_check_width(b.graph, classes, model ? model : layers);
    if (st == CO_OK)
        st = co_graph_finish(b.graph);
    if (st != CO_OK) {
        co_graph_destroy(b.graph);
        return st;
    }
    *out = b.graph;
    return CO_OK;
}
