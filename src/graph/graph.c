/*
 * graph.c - building a network: shapes and parameters are known as soon as a node is added.
 *
 * Independent of kernels, batch sizes and ranks.
 */
#include "graph/graph.h"

#include <math.h>
#include <string.h>

#include "core/mem.h"
#include "core/rng.h"

#define GRAPH_PIECE 4096 /* initial values drawn at a time */

/* Make room for one more entry of an array. */
static co_status graph_grow(void **array, int *cap, int n, size_t size)
{
    int next = *cap ? *cap * 2 : 32;
    void *grown;

    if (n < *cap)
        return CO_OK;
    grown = co_realloc(*array, (size_t)next, size);
    if (!grown)
        return CO_E_NOMEM;
    *array = grown;
    *cap = next;
    return CO_OK;
}

static co_status graph_add_var(int *out, co_graph *graph, const co_shape *shape, co_dtype dtype,
                               int producer)
{
    CO_TRY(graph_grow((void **)&graph->var, &graph->cap_var, graph->n_var, sizeof(co_var)));
    graph->var[graph->n_var] = (co_var){.shape = *shape, .dtype = dtype, .producer = producer};
    *out = graph->n_var++;
    return CO_OK;
}

co_status co_graph_create(co_graph **out)
{
    co_graph *graph = co_calloc(1, sizeof(*graph));

    if (!graph)
        return CO_E_NOMEM;
    graph->output = graph->loss = -1;
    graph->arena = co_arena_create();
    if (!graph->arena) {
        co_graph_destroy(graph);
        return CO_E_NOMEM;
    }
    *out = graph;
    return CO_OK;
}

co_status co_graph_add_input(int *out, co_graph *graph, const char *name, const co_shape *sample,
                             co_dtype dtype)
{
    co_shape shape = {.ndim = sample->ndim + 1, .dim = {1}};
    co_graph_input *input = &graph->input[graph->n_input];

    if (sample->ndim >= CO_MAX_DIMS)
        return co_fail(CO_E_USAGE, "input '%s': a sample has at most %d dimensions, not %d", name,
                       CO_MAX_DIMS - 1, sample->ndim);
    if (co_graph_find_input(graph, name) >= 0 || graph->n_input == CO_GRAPH_MAX_INPUT)
        return co_fail(CO_E_USAGE,
                       "input '%s': a network has one input of that name, and %d in all", name,
                       CO_GRAPH_MAX_INPUT);
    memcpy(shape.dim + 1, sample->dim, (size_t)sample->ndim * sizeof(sample->dim[0]));
    input->name = co_arena_strdup(graph->arena, name);
    if (!input->name)
        return CO_E_NOMEM;
    CO_TRY(graph_add_var(&input->var, graph, &shape, dtype, -1));
    *out = input->var;
    graph->n_input++;
    return CO_OK;
}

int co_graph_find_input(const co_graph *graph, const char *name)
{
    for (int i = 0; i < graph->n_input; i++)
        if (strcmp(graph->input[i].name, name) == 0)
            return graph->input[i].var;
    return -1;
}

int64_t co_graph_limit(const co_graph *graph, int var)
{
    int64_t limit = INT32_MAX;

    for (int i = 0; i < graph->n_node; i++) {
        const co_node *node = &graph->node[i];

        if (node->op->limit && node->in[0] == var && node->op->limit(node->attr) < limit)
            limit = node->op->limit(node->attr);
    }
    return limit;
}

void co_graph_destroy(co_graph *graph)
{
    if (!graph)
        return;
    co_free(graph->var);
    co_free(graph->node);
    co_free(graph->param);
    co_arena_destroy(graph->arena);
    co_free(graph);
}

/* Put the node's own name in front of the op's message about its attributes and shapes. */
static co_status graph_name_failure(co_status st, const char *name)
{
    char cause[1024];

    if (st == CO_E_NOMEM)
        return st;
    strncpy(cause, co_error_message(), sizeof(cause) - 1);
    cause[sizeof(cause) - 1] = '\0';
    return co_fail(st, "layer %s: %s", name, cause);
}

static co_status graph_name_node(co_node *node, co_graph *graph, const char *name)
{
    node->name = name ? co_arena_strdup(graph->arena, name)
                      : co_arena_printf(graph->arena, "%s%d", node->op->name, graph->n_node);
    if (!node->name)
        return CO_E_NOMEM;
    for (int i = 0; i < graph->n_node; i++)
        if (strcmp(graph->node[i].name, node->name) == 0)
            return co_fail(CO_E_USAGE, "two layers have the name '%s'; give one another name",
                           node->name);
    return CO_OK;
}

static co_status graph_add_params(co_node *node, co_graph *graph, const co_shape *in)
{
    co_param_spec spec[CO_OP_MAX_PARAM];

    memset(spec, 0, sizeof(spec));
    node->n_param = node->op->params ? node->op->params(spec, in, node->attr) : 0;
    for (int i = 0; i < node->n_param; i++) {
        co_param *param;

        CO_TRY(graph_grow((void **)&graph->param, &graph->cap_param, graph->n_param,
                          sizeof(co_param)));
        param = &graph->param[graph->n_param];
        *param = (co_param){.spec = spec[i],
                            .count = (size_t)co_shape_count(&spec[i].shape),
                            .owner = graph->n_node};
        param->name = co_arena_printf(graph->arena, "%s.%s", node->name, spec[i].name);
        if (!param->name)
            return CO_E_NOMEM;
        node->param[i] = graph->n_param++;
    }
    return CO_OK;
}

static bool graph_is_read(const co_graph *graph, int var)
{
    for (int i = 0; i < graph->n_node; i++)
        for (int k = 0; k < graph->node[i].op->n_in; k++)
            if (graph->node[i].in[k] == var)
                return true;
    return false;
}

/* Values and whole numbers are not mixed up. An input of the graph becomes what its first reader
   takes. */
static co_status graph_check_types(co_graph *graph, const co_node *node)
{
    for (int i = 0; i < node->op->n_in; i++) {
        const bool indices = node->op->indices >> i & 1;
        co_var *var = &graph->var[node->in[i]];

        if (indices && var->producer < 0 && !graph_is_read(graph, node->in[i]))
            var->dtype = CO_I32;
        if (indices != (var->dtype == CO_I32))
            return co_fail(CO_E_USAGE, indices ? "takes whole numbers, such as tokens, straight "
                                                 "from the data"
                                               : "takes values, not whole numbers; put an "
                                                 "`embedding` in front of it");
    }
    return CO_OK;
}

co_status co_graph_add(int *out, co_graph *graph, const co_op *op, const char *name,
                       const void *attr, const int *in)
{
    co_node node = {.op = op, .block = graph->block_depth ? graph->n_block : 0};
    co_shape in_shape[CO_OP_MAX_IN], out_shape[CO_OP_MAX_OUT];
    void *own = co_arena_alloc(graph->arena, 1, op->attr_size ? op->attr_size : 1);
    co_status st = CO_OK;

    if (!own)
        return CO_E_NOMEM;
    if (op->attr_size)
        memcpy(own, attr, op->attr_size);
    node.attr = own;
    CO_TRY(graph_name_node(&node, graph, name));
    for (int i = 0; i < op->n_in; i++) {
        node.in[i] = in[i];
        in_shape[i] = graph->var[in[i]].shape;
    }
    st = graph_check_types(graph, &node);
    if (st == CO_OK && op->check)
        st = op->check(own);
    memset(out_shape, 0, sizeof(out_shape));
    if (st == CO_OK)
        st = op->shape(out_shape, in_shape, own);
    if (st != CO_OK)
        return graph_name_failure(st, node.name);
    CO_TRY(graph_grow((void **)&graph->node, &graph->cap_node, graph->n_node, sizeof(co_node)));
    CO_TRY(graph_add_params(&node, graph, in_shape));
    for (int i = 0; i < op->n_out; i++)
        CO_TRY(graph_add_var(&node.out[i], graph, &out_shape[i], CO_F32, graph->n_node));
    if (op->is_loss)
        graph->loss = node.out[0];
    graph->node[graph->n_node++] = node;
    *out = node.out[0];
    return CO_OK;
}

co_status co_graph_tie(co_graph *graph, const char *param)
{
    co_node *node = &graph->node[graph->n_node - 1];
    char want[64], have[64];
    int p = 0;

    while (p < graph->n_param && strcmp(graph->param[p].name, param) != 0)
        p++;
    if (node->n_param != 1 || p >= graph->n_param - 1 ||
        graph->node[graph->param[p].owner].n_param != 1)
        return co_fail(CO_E_USAGE, "layer %s cannot be tied to %s: each must have one parameter",
                       node->name, param);
    if (!co_shape_equal(&graph->param[p].spec.shape, &graph->param[node->param[0]].spec.shape))
        return co_fail(
            CO_E_USAGE, "layer %s cannot be tied to %s: its weight has the shape %s, not %s",
            node->name, param,
            co_shape_format(want, sizeof(want), &graph->param[node->param[0]].spec.shape),
            co_shape_format(have, sizeof(have), &graph->param[p].spec.shape));
    graph->param[p].copy = graph->param[--graph->n_param].name;
    node->param[0] = p;
    return CO_OK;
}

void co_graph_begin_block(co_graph *graph)
{
    graph->n_block += graph->block_depth++ == 0;
}

void co_graph_end_block(co_graph *graph)
{
    graph->block_depth--;
}

void co_graph_transpose(co_graph *graph)
{
    graph->param[graph->node[graph->n_node - 1].param[0]].transposed = true;
}

co_status co_graph_name_param(co_graph *graph, int k, const char *name, int ones)
{
    co_param *param = &graph->param[graph->node[graph->n_node - 1].param[k]];

    param->name = co_arena_strdup(graph->arena, name);
    param->named = true;
    param->ones = ones;
    return param->name ? CO_OK : CO_E_NOMEM;
}

co_status co_graph_add_loss(int *out, co_graph *graph, const co_op *op, const char *name,
                            const void *attr, int output)
{
    co_shape values = graph->var[output].shape, label;
    int in[CO_OP_MAX_IN] = {output, -1};

    values.ndim--;
    memmove(values.dim, values.dim + 1, (size_t)values.ndim * sizeof(values.dim[0]));
    label = values;
    label.ndim = label.ndim > 1 ? label.ndim - 1 : 0; /* one for each row of logits */
    graph->output = output;
    if (op->target == CO_TARGET_LABEL)
        CO_TRY(co_graph_add_input(&in[1], graph, CO_FIELD_LABEL, &label, CO_I32));
    if (op->target == CO_TARGET_VALUES || op->target == CO_TARGET_BINARY)
        CO_TRY(co_graph_add_input(&in[1], graph, CO_FIELD_TARGET, &values, CO_F32));
    return co_graph_add(out, graph, op, name, attr, in);
}

co_status co_graph_finish(co_graph *graph)
{
    if (graph->output < 0 || graph->loss < 0)
        return co_fail(CO_E_FAILED, "the network has no output or no loss");
    for (int i = graph->n_node - 1; i >= 0; i--) {
        co_node *node = &graph->node[i];

        node->range_begin = graph->n_store;
        for (int k = 0; k < node->n_param; k++) {
            co_param *param = &graph->param[node->param[k]];
            size_t *end;

            if (param->owner != i)
                continue;
            end = param->spec.buffer ? &graph->n_buffer : &graph->n_store;

            param->offset = co_store_place(end, param->count);
        }
        node->range_end = graph->n_store;
    }
    co_graph_find_read(graph);
    return CO_OK;
}

/* Elements `first` .. `first` + n of a parameter. */
static void graph_draw(float *to, const co_param_spec *spec, const co_rng *rng, size_t first,
                       size_t n)
{
    const float scale = (float)spec->scale;

    if (spec->init == CO_INIT_UNIFORM)
        co_rng_uniform(to, rng, first, n);
    else if (spec->init == CO_INIT_NORMAL)
        co_rng_normal(to, rng, first, n);
    for (size_t e = 0; e < n; e++) {
        if (spec->init == CO_INIT_UNIFORM)
            to[e] = (2.0f * to[e] - 1.0f) * scale;
        else if (spec->init == CO_INIT_NORMAL)
            to[e] *= scale;
        else
            to[e] = spec->init == CO_INIT_ONE ? 1.0f : 0.0f;
    }
}

co_status co_graph_init(const co_graph *graph, co_store *store, uint64_t seed)
{
    float piece[GRAPH_PIECE];

    for (int i = 0; i < graph->n_param; i++) {
        const co_param *param = &graph->param[i];
        const co_rng rng = {.seed = seed, .stream = CO_RNG_INIT, .item = (uint32_t)i};
        const co_store_array array = param->spec.buffer ? CO_STORE_BUFFER : CO_STORE_PARAM;

        for (size_t at = 0; at < param->count; at += GRAPH_PIECE) {
            const size_t left = param->count - at, n = left < GRAPH_PIECE ? left : GRAPH_PIECE;

            graph_draw(piece, &param->spec, &rng, at, n);
            CO_TRY(co_store_write(store, array, param->offset + at, n, piece));
        }
    }
    return CO_OK;
}

size_t co_graph_param_count(const co_graph *graph)
{
    size_t count = 0;

    for (int i = 0; i < graph->n_param; i++)
        if (!graph->param[i].spec.buffer)
            count += graph->param[i].count;
    return count;
}
