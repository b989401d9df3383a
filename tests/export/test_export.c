/*
 * test_export.c - exported files, read back: every op in ONNX form, names, weights, metadata.
 *
 * That runtimes compute the same is checked by tests/peers/check_onnx.py.
 */
#include "models/models_test.h"

#include <stdio.h>

#include <cohort/safetensors.h>

#include "core/fs.h"
#include "export/export.h"
#include "folder.h"

#ifdef TEST_ONNX
#include <onnx.pb-c.h>

#include "ops/ops.h"
#endif

/* Every op that ONNX can express, including the special cases of pooling. */
static const char net[] =
    "layers:\n"
    "- conv2d: {name: stem, out: 4, kernel: [3, 5], stride: [1, 2], padding: [1, 2], bias: false}\n"
    "- batchnorm: {name: bn, eps: 0.25}\n"
    "- relu\n"
    "- residual: {body: [{conv2d: {name: b, out: 4, kernel: 3, padding: 2, dilation: 2, groups: "
    "2}}],"
    " shortcut: [{avgpool: {kernel: 3, stride: 1, padding: 1, count_include_pad: false}}]}\n"
    "- maxpool: {kernel: 3, stride: 2, padding: 1}\n"
    "- dropout2d: 0.2\n"
    "- adaptive_avgpool: [3, 2]\n" /* windows of one size */
    "- adaptive_avgpool: 2\n"      /* windows of several sizes */
    "- adaptive_avgpool: 2\n"      /* no-op */
    "- adaptive_avgpool: 1\n"
    "- flatten\n"
    "- linear: {name: fc, out: 5}\n"
    "- scale: 0.125\n"
    "- log_softmax\n"
    "- dropout: 0.5\n";

static const co_shape sample = {3, {3, 12, 16}};
static const char *const metadata[] = {"format", "pt", "note", "f\xc3\xbcr alle", NULL};

typedef struct network {
    models_test made;
    co_store *store;
    co_export export;
} network;

static network open_network(const char *text)
{
    network n = {.made = models_test_make(text, &sample, 5)};

    assert_int_equal(co_store_create(&n.store, n.made.graph->n_store, n.made.graph->n_buffer),
                     CO_OK);
    co_graph_init(n.made.graph, n.store, 1);
    n.export = (co_export){n.made.graph, n.store, "odd", metadata};
    return n;
}

static void close_network(network *n)
{
    co_store_destroy(n->store);
    models_test_free(&n->made);
}

static const float *param_data(const network *n, const co_param *param)
{
    return (param->spec.buffer ? n->store->buffer : n->store->param) + param->offset;
}

static void export_safetensors_has_batch_norm_counters(void **state)
{
    network n = open_network(net);
    const co_named_tensor *counter;
    co_safetensors *file;

    (void)state;
    assert_int_equal(co_export_torch(folder_path("w.safetensors"), &n.export), CO_OK);
    assert_int_equal(co_safetensors_open(&file, folder_path("w.safetensors")), CO_OK);
    assert_int_equal(co_safetensors_count(file), n.made.graph->n_param + 1);
    counter = co_safetensors_find(file, "bn.num_batches_tracked");
    assert_non_null(counter);
    assert_int_equal(counter->dtype, CO_I64);
    assert_int_equal(counter->shape.ndim, 0);
    for (int i = 0; i < n.made.graph->n_param; i++) {
        const co_param *param = &n.made.graph->param[i];
        const co_named_tensor *tensor = co_safetensors_find(file, param->name);

        assert_non_null(tensor);
        assert_memory_equal(tensor->data, param_data(&n, param), tensor->bytes);
    }
    assert_string_equal(co_safetensors_metadata(file, "note"), "f\xc3\xbcr alle");
    co_safetensors_close(file);
    close_network(&n);
}

#ifdef TEST_ONNX

static Onnx__ModelProto *export_and_read(const co_export *export)
{
    Onnx__ModelProto *model;
    uint8_t *bytes;
    size_t size;

    if (co_export_onnx(folder_path("m.onnx"), export) != CO_OK)
        fail_msg("%s", co_error_message());
    assert_int_equal(co_fs_read(&bytes, &size, folder_path("m.onnx"), 1 << 20, CO_E_DATA), CO_OK);
    model = onnx__model_proto__unpack(NULL, size, bytes);
    co_free(bytes);
    assert_non_null(model);
    return model;
}

/* "Conv(input stem.weight)=/stem kernel_shape:3,5 ..." */
static void describe(char *out, size_t size, const Onnx__NodeProto *node)
{
    size_t used = (size_t)snprintf(out, size, "%s(", node->op_type);

    for (size_t i = 0; i < node->n_input; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? " " : "", node->input[i]);
    assert_int_equal(node->n_output, 1);
    used += (size_t)snprintf(out + used, size - used, ")=%s", node->output[0]);
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__AttributeProto *a = node->attribute[i];

        used += (size_t)snprintf(out + used, size - used, " %s:", a->name);
        if (a->type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT)
            used += (size_t)snprintf(out + used, size - used, "%d", (int)a->i);
        else if (a->type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT)
            used += (size_t)snprintf(out + used, size - used, "%g", (double)a->f);
        for (size_t k = 0; k < a->n_ints; k++)
            used +=
                (size_t)snprintf(out + used, size - used, "%s%d", k ? "," : "", (int)a->ints[k]);
    }
}

static const char *const nodes[] = {
    "Conv(input stem.weight)=/stem kernel_shape:3,5 strides:1,2 pads:1,2,1,2 dilations:1,1 group:1",
    "BatchNormalization(/stem bn.weight bn.bias bn.running_mean bn.running_var)=/bn epsilon:0.25",
    "Relu(/bn)=/relu2",
    ("Conv(/relu2 b.weight b.bias)=/b kernel_shape:3,3 strides:1,1 pads:2,2,2,2 dilations:2,2 "
     "group:2"),
    "AveragePool(/relu2)=/avgpool4 kernel_shape:3,3 strides:1,1 pads:1,1,1,1 count_include_pad:0",
    "Add(/b /avgpool4)=/add5",
    "MaxPool(/add5)=/maxpool6 kernel_shape:3,3 strides:2,2 pads:1,1,1,1",
    "AveragePool(/maxpool6)=/adaptive_avgpool8 kernel_shape:2,2 strides:2,2 pads:0,0,0,0",
    "MatMul(/adaptive_avgpool9.rows /adaptive_avgpool8)=/adaptive_avgpool9/rows",
    "MatMul(/adaptive_avgpool9/rows /adaptive_avgpool9.columns)=/adaptive_avgpool9",
    "GlobalAveragePool(/adaptive_avgpool9)=/adaptive_avgpool11",
    "Flatten(/adaptive_avgpool11)=/flatten12 axis:1",
    "Gemm(/flatten12 fc.weight fc.bias)=/fc transB:1",
    "Mul(/fc /scale14.factor)=/scale14",
    "LogSoftmax(/scale14)=/log_softmax15 axis:1",
    "Identity(/log_softmax15)=output",
};
#define N_NODES (sizeof(nodes) / sizeof(nodes[0]))

static void onnx_every_op_is_exported(void **state)
{
    network n = open_network(net);
    Onnx__ModelProto *model = export_and_read(&n.export);

    (void)state;
    for (size_t i = 0; i < N_NODES && i < model->graph->n_node; i++) {
        char text[512];

        describe(text, sizeof(text), model->graph->node[i]);
        assert_string_equal(text, nodes[i]);
    }
    assert_int_equal(model->graph->n_node, N_NODES);
    onnx__model_proto__free_unpacked(model, NULL);
    close_network(&n);
}

static void onnx_export_keeps_weights_and_names(void **state)
{
    static const float rows[6] = {0.5f, 0.5f, 0, 0, 0.5f, 0.5f};
    network n = open_network(net);
    Onnx__ModelProto *model = export_and_read(&n.export);
    const Onnx__GraphProto *graph = model->graph;

    (void)state;
    assert_int_equal(graph->n_initializer, n.made.graph->n_param + 3);
    for (int i = 0; i < n.made.graph->n_param; i++) {
        const co_param *param = &n.made.graph->param[i];
        const Onnx__TensorProto *t = graph->initializer[i];

        assert_string_equal(t->name, param->name);
        assert_int_equal(t->n_dims, param->spec.shape.ndim);
        for (size_t k = 0; k < t->n_dims; k++)
            assert_int_equal(t->dims[k], param->spec.shape.dim[k]);
        assert_int_equal(t->raw_data.len, param->count * sizeof(float));
        assert_memory_equal(t->raw_data.data, param_data(&n, param), t->raw_data.len);
    }
    /* Windows over 3 rows: 0 to 1 and 1 to 2. */
    assert_memory_equal(graph->initializer[n.made.graph->n_param]->raw_data.data, rows,
                        sizeof(rows));
    onnx__model_proto__free_unpacked(model, NULL);
    close_network(&n);
}

static void onnx_export_has_free_batch_size_and_metadata(void **state)
{
    network n = open_network(net);
    Onnx__ModelProto *model = export_and_read(&n.export);
    const Onnx__TensorShapeProto *in = model->graph->input[0]->type->tensor_type->shape;
    const Onnx__TensorShapeProto *out = model->graph->output[0]->type->tensor_type->shape;

    (void)state;
    assert_int_equal(model->n_opset_import, 1);
    assert_int_equal(model->opset_import[0]->version, CO_EXPORT_OPSET);
    assert_int_equal(model->graph->n_input, 1);
    assert_string_equal(model->graph->input[0]->name, "input");
    assert_string_equal(in->dim[0]->dim_param, "batch");
    for (int i = 0; i < 3; i++)
        assert_int_equal(in->dim[i + 1]->dim_value, sample.dim[i]);
    assert_string_equal(model->graph->output[0]->name, "output");
    assert_string_equal(out->dim[0]->dim_param, "batch");
    assert_int_equal(out->dim[1]->dim_value, 5);
    assert_string_equal(model->graph->name, "odd");
    assert_int_equal(model->n_metadata_props, 2);
    assert_string_equal(model->metadata_props[1]->key, "note");
    assert_string_equal(model->metadata_props[1]->value, "f\xc3\xbcr alle");
    onnx__model_proto__free_unpacked(model, NULL);
    close_network(&n);
}

/* Only with nodes of opset 13. */
static void onnx_gelu_is_written_with_erf(void **state)
{
    static const char *const want[] = {
        "Mul(/fc /gelu.root_half)=/gelu/scaled", "Erf(/gelu/scaled)=/gelu/erf",
        "Add(/gelu/erf /gelu.one)=/gelu/sum", "Mul(/fc /gelu/sum)=/gelu/twice",
        "Mul(/gelu/twice /gelu.half)=output"};
    network n = open_network("layers: [flatten, {linear: {name: fc, out: 5}}, {gelu: {name: "
                             "gelu}}]\n");
    Onnx__ModelProto *model = export_and_read(&n.export);

    (void)state;
    assert_int_equal(model->graph->n_node, 7);
    for (size_t i = 0; i < 5; i++) {
        char got[256];

        describe(got, sizeof(got), model->graph->node[i + 2]);
        assert_string_equal(got, want[i]);
    }
    onnx__model_proto__free_unpacked(model, NULL);
    close_network(&n);
}

/* Exactly one of the two; losses are not exported. */
static void onnx_every_op_has_a_counterpart(void **state)
{
    (void)state;
    for (const co_op *const *op = co_ops; *op; op++)
        if (!(*op)->onnx + !(*op)->write_onnx != 1 + (*op)->is_loss)
            fail_msg("%s: of `onnx` and `write_onnx` a loss has none, another op one", (*op)->name);
}

static void onnx_op_without_counterpart_is_named(void **state)
{
    network n = open_network("layers: [flatten, {linear: {name: fc, out: 5}}]\n");
    co_op other = *n.made.graph->node[1].op;

    (void)state;
    other.name = "fourier";
    other.write_onnx = NULL;
    n.made.graph->node[1].op = &other;
    assert_int_equal(co_export_onnx(folder_path("no.onnx"), &n.export), CO_E_UNSUPPORTED);
    assert_non_null(strstr(co_error_message(), "layer fc: the op 'fourier'"));
    assert_false(co_fs_exists(folder_path("no.onnx")));
    close_network(&n);
}

static void export_failed_allocation_is_an_error(void **state)
{
    network n = open_network(net);
    co_status st = CO_E_NOMEM;
    uint64_t k;

    (void)state;
    for (k = 1; st != CO_OK && k < 1000; k++) {
        co_mem_fail_at(k);
        st = co_export_onnx(folder_path("k.onnx"), &n.export);
        co_mem_fail_at(0);
        /* A failed sync of the file has the system's own words. */
        if (st != CO_OK && st != CO_E_NOMEM && !strstr(co_error_message(), "allocate memory"))
            fail_msg("allocation %d failed: %s", (int)k, co_error_message());
    }
    assert_int_equal(st, CO_OK);
    assert_true(k > 2);
    close_network(&n);
}

#else

static void onnx_missing_from_build_is_reported(void **state)
{
    network n = open_network(net);

    (void)state;
    assert_false(co_export_has_onnx());
    assert_int_equal(co_export_onnx(folder_path("m.onnx"), &n.export), CO_E_UNSUPPORTED);
    assert_non_null(
        strstr(co_error_message(), "this build has no ONNX export; install libonnx-dev"));
    close_network(&n);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(export_safetensors_has_batch_norm_counters),
#ifdef TEST_ONNX
        cmocka_unit_test(onnx_every_op_is_exported),
        cmocka_unit_test(onnx_export_keeps_weights_and_names),
        cmocka_unit_test(onnx_export_has_free_batch_size_and_metadata),
        cmocka_unit_test(onnx_gelu_is_written_with_erf),
        cmocka_unit_test(onnx_every_op_has_a_counterpart),
        cmocka_unit_test(onnx_op_without_counterpart_is_named),
        cmocka_unit_test(export_failed_allocation_is_an_error),
#else
        cmocka_unit_test(onnx_missing_from_build_is_reported),
#endif
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
