/*
 * onnx.c - write a network as an ONNX file for inference, with the format's protobuf definition.
 *
 * Chooses names and order; each op has its own translation (ext/op.h). Weights are not copied: the
 * message points into the store and is written in pieces.
 *
 * A parameter keeps its name ("conv1.weight"); the output of a layer is "/conv1", which differs
 * from all parameters, "input" and "output", as names of layers have no slash.
 */
#include <stdio.h>
#include <string.h>

#include <cohort/version.h>

#include <onnx.pb-c.h>

#include "core/fs.h"
#include "export/values.h"

#define ONNX_MAX_ATTR   8 /* attributes of a node */
#define ONNX_IR_VERSION 7 /* that of opset 13 */
/* Readers of protobuf reject messages of 2 GiB or more. */
#define ONNX_MAX_BYTES ((size_t)INT32_MAX)

/* Messages are allocated in one arena. If memory runs out, the builder has failed, and this call
   and all further ones do nothing: ops need not check. */
typedef struct onnx_builder {
    co_onnx to; /* first: what ops call */
    co_arena *arena;
    const co_graph *graph;
    const co_node *node; /* being written */
    co_export_values values;
    Onnx__GraphProto *proto;
    size_t max_nodes, max_tensors; /* room in proto */
    const char **value;            /* (n_var): name of each tensor in the file; NULL: not written */
    bool failed;                   /* out of memory */
    Onnx__NodeProto *last;         /* in proto; after a failure `scratch` */
    Onnx__NodeProto scratch;
    Onnx__AttributeProto *scratch_attr[ONNX_MAX_ATTR];
} onnx_builder;

/* ---- memory ---- */

static void *onnx_alloc(onnx_builder *b, size_t count, size_t size)
{
    void *at = b->failed ? NULL : co_arena_alloc(b->arena, count, size);

    if (!at)
        b->failed = true;
    return at;
}

/* protobuf-c's fields are not const; nothing writes to them. */
static char *onnx_text(onnx_builder *b, const char *text)
{
    char *copy = b->failed ? NULL : co_arena_strdup(b->arena, text);

    if (!copy)
        b->failed = true;
    return copy;
}

/* The name of the node being written, with `part` appended. Never NULL. */
static const char *onnx_name(onnx_builder *b, const char *part)
{
    const char *name = b->failed ? NULL : co_arena_printf(b->arena, "/%s%s", b->node->name, part);

    if (!name)
        b->failed = true;
    return name ? name : "";
}

/* ---- nodes ---- */

static void onnx_add_node(onnx_builder *b, const char *type, const char *part,
                          const char *const *in, const char *out)
{
    Onnx__NodeProto *to = onnx_alloc(b, 1, sizeof(*to));
    char **names;
    size_t n = 0;

    while (in[n])
        n++;
    names = onnx_alloc(b, n + 1, sizeof(*names));
    b->scratch.n_attribute = 0;
    b->last = &b->scratch;
    if (!to || !names || b->proto->n_node == b->max_nodes) {
        b->failed = true;
        return;
    }
    onnx__node_proto__init(to);
    to->op_type = onnx_text(b, type);
    to->name = (char *)onnx_name(b, part) + 1; /* without the slash */
    to->input = names;
    to->n_input = n;
    for (size_t i = 0; i < n; i++)
        names[i] = onnx_text(b, in[i]);
    to->output = names + n;
    to->n_output = 1;
    names[n] = onnx_text(b, out);
    to->attribute = onnx_alloc(b, ONNX_MAX_ATTR, sizeof(*to->attribute));
    if (b->failed)
        return;
    b->proto->node[b->proto->n_node++] = to;
    b->last = to;
}

static const char *onnx_node(co_onnx *to, const char *type, const char *part, const char *const *in)
{
    onnx_builder *b = (onnx_builder *)to;
    const int out = b->node->out[0];
    const char *name = part[0] ? onnx_name(b, part) : b->value[out];

    /* No node is needed, except that the output must keep its name, which readers know. */
    if (strcmp(type, "Identity") == 0 && !part[0] && out != b->graph->output)
        return b->value[out] = in[0];
    onnx_add_node(b, type, part, in, name);
    return name;
}

static Onnx__AttributeProto *onnx_attr(onnx_builder *b, const char *name,
                                       Onnx__AttributeProto__AttributeType type)
{
    Onnx__AttributeProto *attr = onnx_alloc(b, 1, sizeof(*attr));

    if (!attr || b->last->n_attribute == ONNX_MAX_ATTR) {
        b->failed = true;
        return NULL;
    }
    onnx__attribute_proto__init(attr);
    attr->name = onnx_text(b, name);
    attr->has_type = true;
    attr->type = type;
    b->last->attribute[b->last->n_attribute++] = attr;
    return attr;
}

static void onnx_set_int(co_onnx *to, const char *name, int64_t v)
{
    Onnx__AttributeProto *attr =
        onnx_attr((onnx_builder *)to, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);

    if (attr) {
        attr->has_i = true;
        attr->i = v;
    }
}

static void onnx_set_ints(co_onnx *to, const char *name, const int64_t *v, size_t n)
{
    onnx_builder *b = (onnx_builder *)to;
    Onnx__AttributeProto *attr = onnx_attr(b, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    int64_t *copy = onnx_alloc(b, n, sizeof(*copy));

    if (!attr || !copy)
        return;
    memcpy(copy, v, n * sizeof(*copy));
    attr->ints = copy;
    attr->n_ints = n;
}

static void onnx_set_float(co_onnx *to, const char *name, double v)
{
    Onnx__AttributeProto *attr =
        onnx_attr((onnx_builder *)to, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);

    if (attr) {
        attr->has_f = true;
        attr->f = (float)v;
    }
}

/* ---- tensors ---- */

/* Elements of 4 bytes, or of 8 if they are whole numbers. `data` is borrowed until the file is
   written. */
static void onnx_add_tensor(onnx_builder *b, const char *name, const co_shape *shape,
                            const void *data, bool ints)
{
    Onnx__TensorProto *to = onnx_alloc(b, 1, sizeof(*to));
    int64_t *dims = onnx_alloc(b, CO_MAX_DIMS, sizeof(*dims));

    if (!to || !dims || b->proto->n_initializer == b->max_tensors) {
        b->failed = true;
        return;
    }
    onnx__tensor_proto__init(to);
    memcpy(dims, shape->dim, sizeof(shape->dim));
    to->name = onnx_text(b, name);
    to->dims = dims;
    to->n_dims = (size_t)shape->ndim;
    to->has_data_type = true;
    to->data_type =
        ints ? ONNX__TENSOR_PROTO__DATA_TYPE__INT64 : ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    to->has_raw_data = true;
    to->raw_data.data = (uint8_t *)data; /* little-endian, as in memory */
    to->raw_data.len = (size_t)co_shape_count(shape) * (ints ? sizeof(int64_t) : sizeof(float));
    b->proto->initializer[b->proto->n_initializer++] = to;
}

static const char *onnx_constant(co_onnx *to, const char *part, const co_shape *shape,
                                 float **values)
{
    onnx_builder *b = (onnx_builder *)to;
    const char *name = onnx_name(b, part);

    *values = onnx_alloc(b, (size_t)co_shape_count(shape), sizeof(**values));
    onnx_add_tensor(b, name, shape, *values, false);
    return name;
}

static const char *onnx_constant_ints(co_onnx *to, const char *part, const int64_t *v, size_t n)
{
    onnx_builder *b = (onnx_builder *)to;
    const char *name = onnx_name(b, part);
    const co_shape shape = {1, {(int64_t)n}};
    int64_t *copy = onnx_alloc(b, n, sizeof(*copy));

    if (copy)
        memcpy(copy, v, n * sizeof(*copy));
    onnx_add_tensor(b, name, &shape, copy, true);
    return name;
}

/* (batch, ...): the first dimension has a name instead of a size. */
static Onnx__ValueInfoProto *onnx_describe(onnx_builder *b, const char *name, const co_var *var)
{
    const co_shape *shape = &var->shape;
    Onnx__ValueInfoProto *info = onnx_alloc(b, 1, sizeof(*info));
    Onnx__TypeProto *type = onnx_alloc(b, 1, sizeof(*type));
    Onnx__TypeProto__Tensor *tensor = onnx_alloc(b, 1, sizeof(*tensor));
    Onnx__TensorShapeProto *dims = onnx_alloc(b, 1, sizeof(*dims));
    Onnx__TensorShapeProto__Dimension **list = onnx_alloc(b, CO_MAX_DIMS, sizeof(*list));
    Onnx__TensorShapeProto__Dimension *dim = onnx_alloc(b, CO_MAX_DIMS, sizeof(*dim));

    if (b->failed)
        return NULL;
    onnx__value_info_proto__init(info);
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor);
    onnx__tensor_shape_proto__init(dims);
    for (int i = 0; i < shape->ndim; i++) {
        onnx__tensor_shape_proto__dimension__init(&dim[i]);
        dim[i].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        dim[i].dim_value = shape->dim[i];
        list[i] = &dim[i];
    }
    dim[0].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    dim[0].dim_param = onnx_text(b, "batch");
    dims->n_dim = (size_t)shape->ndim;
    dims->dim = list;
    tensor->has_elem_type = true;
    tensor->elem_type = var->dtype == CO_I32 ? ONNX__TENSOR_PROTO__DATA_TYPE__INT32
                                             : ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    tensor->shape = dims;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    info->name = onnx_text(b, name);
    info->type = type;
    return info;
}

/* ---- the file ---- */

static co_status onnx_start(onnx_builder *b, const co_export *export)
{
    const co_graph *graph = export->graph;
    const size_t n = (size_t)graph->n_node;

    b->to = (co_onnx){.node = onnx_node,
                      .set_int = onnx_set_int,
                      .set_ints = onnx_set_ints,
                      .set_float = onnx_set_float,
                      .constant = onnx_constant,
                      .constant_ints = onnx_constant_ints};
    b->graph = graph;
    b->last = &b->scratch;
    b->scratch.attribute = b->scratch_attr;
    b->arena = co_arena_create();
    if (!b->arena)
        return CO_E_NOMEM;
    b->max_nodes = n * CO_ONNX_MAX_NODES;
    b->max_tensors = n * CO_ONNX_MAX_CONSTANTS + (size_t)graph->n_param;
    b->value = onnx_alloc(b, (size_t)graph->n_var, sizeof(*b->value));
    b->proto = onnx_alloc(b, 1, sizeof(*b->proto));
    if (b->failed)
        return CO_E_NOMEM;
    onnx__graph_proto__init(b->proto);
    b->proto->name = onnx_text(b, export->name);
    b->proto->node = onnx_alloc(b, b->max_nodes, sizeof(*b->proto->node));
    b->proto->initializer = onnx_alloc(b, b->max_tensors, sizeof(*b->proto->initializer));
    b->proto->input = onnx_alloc(b, 1, sizeof(*b->proto->input));
    b->proto->output = onnx_alloc(b, 1, sizeof(*b->proto->output));
    return b->failed ? CO_E_NOMEM : CO_OK;
}

static co_status onnx_write_op(onnx_builder *b, const co_node *node)
{
    const co_op *op = node->op;
    const co_var *var = b->graph->var;
    const char *in[CO_OP_MAX_IN + CO_OP_MAX_PARAM + 1];
    co_shape shapes[CO_OP_MAX_IN];
    int n = 0;

    if (!op->onnx && !op->write_onnx)
        return co_fail(CO_E_UNSUPPORTED, "layer %s: the op '%s' has no counterpart in ONNX here",
                       node->name, op->name);
    b->node = node;
    b->value[node->out[0]] = node->out[0] == b->graph->output ? "output" : onnx_name(b, "");
    for (int i = 0; i < op->n_in; i++) {
        shapes[i] = var[node->in[i]].shape;
        in[n++] = b->value[node->in[i]];
    }
    for (int i = 0; i < node->n_param; i++)
        in[n++] = b->graph->param[node->param[i]].name;
    in[n] = NULL;
    b->to.in = in;
    if (op->onnx)
        onnx_node(&b->to, op->onnx, "", in);
    else
        op->write_onnx(&b->to, shapes, &var[node->out[0]].shape, node->attr);
    b->to.in = NULL;
    return b->failed ? CO_E_NOMEM : CO_OK;
}

static co_status onnx_fill(onnx_builder *b)
{
    const co_graph *graph = b->graph;
    Onnx__GraphProto *proto = b->proto;
    const int input = co_graph_find_input(graph, CO_FIELD_INPUT);

    b->value[input] = "input";
    for (int i = 0; i < graph->n_param; i++) {
        const co_param *param = &graph->param[i];
        const float *from = param->spec.buffer ? b->values.buffer : b->values.param;

        onnx_add_tensor(b, param->name, &param->spec.shape, from + param->offset, false);
    }
    for (int i = 0; i < graph->n_node; i++)
        if (!graph->node[i].op->is_loss)
            CO_TRY(onnx_write_op(b, &graph->node[i]));
    proto->input[0] = onnx_describe(b, "input", &graph->var[input]);
    proto->output[0] = onnx_describe(b, "output", &graph->var[graph->output]);
    proto->n_input = proto->n_output = 1;
    return b->failed ? CO_E_NOMEM : CO_OK;
}

static void onnx_add_metadata(Onnx__ModelProto *model, onnx_builder *b, const char *const *metadata)
{
    Onnx__StringStringEntryProto *entry;
    size_t n = 0;

    while (metadata && metadata[2 * n])
        n++;
    model->metadata_props = onnx_alloc(b, n + 1, sizeof(*model->metadata_props));
    entry = onnx_alloc(b, n + 1, sizeof(*entry));
    for (size_t i = 0; !b->failed && i < n; i++) {
        onnx__string_string_entry_proto__init(&entry[i]);
        entry[i].key = onnx_text(b, metadata[2 * i]);
        entry[i].value = onnx_text(b, metadata[2 * i + 1]);
        model->metadata_props[model->n_metadata_props++] = &entry[i];
    }
}

/* A protobuf-c buffer that writes to a stream, whose error flag records a failure. */
typedef struct onnx_stream {
    ProtobufCBuffer base;
    FILE *out;
} onnx_stream;

static void onnx_append(ProtobufCBuffer *buffer, size_t n, const uint8_t *data)
{
    onnx_stream *stream = (onnx_stream *)(void *)buffer;

    if (n && !ferror(stream->out))
        fwrite(data, 1, n, stream->out);
}

static co_status onnx_write_file(const char *path, const Onnx__ModelProto *model)
{
    const size_t bytes = onnx__model_proto__get_packed_size(model);
    onnx_stream stream = {{onnx_append}, NULL};
    co_atomic_file *file = NULL;

    if (bytes > ONNX_MAX_BYTES)
        return co_fail(CO_E_UNSUPPORTED, "%s: %zu bytes; an ONNX file has at most 2 GiB", path,
                       bytes);
    CO_TRY(co_atomic_open(&file, path));
    stream.out = co_atomic_stream(file);
    onnx__model_proto__pack_to_buffer(model, &stream.base);
    return co_atomic_commit(file);
}

static co_status onnx_write(const char *path, onnx_builder *b, const co_export *export)
{
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT, *opsets[] = {&opset};

    CO_TRY(co_export_open_values(&b->values, export));
    CO_TRY(onnx_start(b, export));
    CO_TRY(onnx_fill(b));
    opset.domain = onnx_text(b, "");
    opset.has_version = true;
    opset.version = CO_EXPORT_OPSET;
    model.has_ir_version = true;
    model.ir_version = ONNX_IR_VERSION;
    model.producer_name = onnx_text(b, "cohort");
    model.producer_version = onnx_text(b, co_version());
    model.n_opset_import = 1;
    model.opset_import = opsets;
    model.graph = b->proto;
    onnx_add_metadata(&model, b, export->metadata);
    return b->failed ? CO_E_NOMEM : onnx_write_file(path, &model);
}

co_status co_export_onnx(const char *path, const co_export *export)
{
    onnx_builder b = {.scratch = ONNX__NODE_PROTO__INIT};
    co_status st = onnx_write(path, &b, export);

    co_export_close_values(&b.values, export);
    co_arena_destroy(b.arena);
    return st == CO_E_NOMEM ? co_fail(st, "%s: out of memory", path) : st;
}

bool co_export_has_onnx(void)
{
    return true;
}
