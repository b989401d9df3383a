/*
 * onnx_ops.c - translates each op to operators of ONNX (opset 13), for inference.
 *
 * One writer per op and one line in the table. The operators are those of
 * https://github.com/onnx/onnx/blob/main/docs/Operators.md.
 */
#include <string.h>

#include "export/onnx_build.h"
#include "ops/ops.h"

/* ONNX has the padding of both sides: (top, left, bottom, right). */
static void ops_set_window(onnx_builder *b, Onnx__NodeProto *to, const int64_t *kernel,
                           const int64_t *stride, const int64_t *padding)
{
    const int64_t pads[4] = {padding[0], padding[1], padding[0], padding[1]};

    onnx_attr_ints(b, to, "kernel_shape", kernel, 2);
    onnx_attr_ints(b, to, "strides", stride, 2);
    onnx_attr_ints(b, to, "pads", pads, 4);
}

static void ops_conv2d(onnx_builder *b, const co_node *node)
{
    const co_conv2d_attr *a = node->attr;
    Onnx__NodeProto *to = onnx_add(b, "Conv", node);

    ops_set_window(b, to, a->k, a->s, a->p);
    onnx_attr_ints(b, to, "dilations", a->d, 2);
    onnx_attr_int(b, to, "group", a->groups);
}

/* Gemm: in * weight^T + bias */
static void ops_linear(onnx_builder *b, const co_node *node)
{
    onnx_attr_int(b, onnx_add(b, "Gemm", node), "transB", 1);
}

static void ops_maxpool(onnx_builder *b, const co_node *node)
{
    const co_pool_attr *a = node->attr;

    ops_set_window(b, onnx_add(b, "MaxPool", node), a->k, a->s, a->p);
}

static void ops_avgpool(onnx_builder *b, const co_node *node)
{
    const co_pool_attr *a = node->attr;
    Onnx__NodeProto *to = onnx_add(b, "AveragePool", node);

    ops_set_window(b, to, a->k, a->s, a->p);
    onnx_attr_int(b, to, "count_include_pad", a->count_include_pad);
}

/* (out, in): row i has the weights of window i, floor(i in / out) .. ceil((i + 1) in / out). */
static float *ops_windows(onnx_builder *b, int64_t out, int64_t in)
{
    float *m = co_arena_alloc(b->arena, (size_t)out, (size_t)in * sizeof(*m));

    if (!m)
        b->failed = true;
    for (int64_t i = 0; m && i < out; i++) {
        const int64_t begin = i * in / out, end = ((i + 1) * in + out - 1) / out;

        for (int64_t j = begin; j < end; j++)
            m[i * in + j] = 1.0f / (float)(end - begin);
    }
    return m;
}

/* Windows of different sizes, which ONNX's pooling lacks, as products: rows * in * columns. */
static void ops_uneven_avgpool(onnx_builder *b, const co_node *node, const int64_t *in,
                               const int64_t *out)
{
    const co_shape rows = {2, {out[0], in[0]}}, columns = {2, {in[1], out[1]}};
    float *left = ops_windows(b, out[0], in[0]), *right = ops_windows(b, out[1], in[1]);
    float *transposed =
        co_arena_alloc(b->arena, (size_t)in[1], (size_t)out[1] * sizeof(*transposed));
    const char *const first[] = {onnx_name(b, node, ".rows"), onnx_value(b, node->in[0]), NULL};
    const char *const second[] = {onnx_name(b, node, "/rows"), onnx_name(b, node, ".columns"),
                                  NULL};

    if (!transposed)
        b->failed = true;
    if (b->failed)
        return;
    for (int64_t i = 0; i < out[1]; i++)
        for (int64_t j = 0; j < in[1]; j++)
            transposed[j * out[1] + i] = right[i * in[1] + j];
    onnx_add_tensor(b, first[0], &rows, left);
    onnx_add_tensor(b, second[1], &columns, transposed);
    onnx_add_named(b, "MatMul", node, "/rows", first, second[0]);
    onnx_add_named(b, "MatMul", node, "", second, onnx_value(b, node->out[0]));
}

static void ops_adaptive_avgpool(onnx_builder *b, const co_node *node)
{
    const int64_t *in = &b->graph->var[node->in[0]].shape.dim[2];
    const int64_t *out = &b->graph->var[node->out[0]].shape.dim[2];

    if (out[0] == 1 && out[1] == 1) {
        onnx_add(b, "GlobalAveragePool", node);
    } else if (out[0] == in[0] && out[1] == in[1]) {
        onnx_pass(b, node);
    } else if (in[0] % out[0] == 0 && in[1] % out[1] == 0) {
        const int64_t window[2] = {in[0] / out[0], in[1] / out[1]}, none[2] = {0, 0};

        ops_set_window(b, onnx_add(b, "AveragePool", node), window, window, none);
    } else {
        ops_uneven_avgpool(b, node, in, out);
    }
}

/* Without training_mode ONNX uses the running statistics. */
static void ops_batchnorm(onnx_builder *b, const co_node *node)
{
    const co_batchnorm_attr *a = node->attr;

    onnx_attr_float(b, onnx_add(b, "BatchNormalization", node), "epsilon", a->eps);
}

static void ops_relu(onnx_builder *b, const co_node *node)
{
    onnx_add(b, "Relu", node);
}

static void ops_add(onnx_builder *b, const co_node *node)
{
    onnx_add(b, "Add", node);
}

static void ops_scale(onnx_builder *b, const co_node *node)
{
    const co_scale_attr *a = node->attr;
    const co_shape one = {0, {0}};
    const char *const in[] = {onnx_value(b, node->in[0]), onnx_name(b, node, ".factor"), NULL};
    float *factor = co_arena_alloc(b->arena, 1, sizeof(*factor));

    if (!factor) {
        b->failed = true;
        return;
    }
    *factor = (float)a->factor;
    onnx_add_tensor(b, in[1], &one, factor);
    onnx_add_named(b, "Mul", node, "", in, onnx_value(b, node->out[0]));
}

/* x (1 + erf(x sqrt(1/2))) / 2: opset 13 has no Gelu. */
static void ops_gelu(onnx_builder *b, const co_node *node)
{
    static const float number[3] = {0.70710678F, 1, 0.5F};
    static const char *const names[3] = {".root_half", ".one", ".half"};
    const co_shape one = {0, {0}};
    const char *x = onnx_value(b, node->in[0]), *scaled = onnx_name(b, node, "/scaled");
    const char *erf = onnx_name(b, node, "/erf"), *sum = onnx_name(b, node, "/sum");
    const char *twice = onnx_name(b, node, "/twice"), *constant[3];

    for (int i = 0; i < 3; i++) {
        constant[i] = onnx_name(b, node, names[i]);
        onnx_add_tensor(b, constant[i], &one, &number[i]);
    }
    onnx_add_named(b, "Mul", node, "/scaled", (const char *[]){x, constant[0], NULL}, scaled);
    onnx_add_named(b, "Erf", node, "/erf", (const char *[]){scaled, NULL}, erf);
    onnx_add_named(b, "Add", node, "/sum", (const char *[]){erf, constant[1], NULL}, sum);
    onnx_add_named(b, "Mul", node, "/twice", (const char *[]){x, sum, NULL}, twice);
    onnx_add_named(b, "Mul", node, "", (const char *[]){twice, constant[2], NULL},
                   onnx_value(b, node->out[0]));
}

static void ops_flatten(onnx_builder *b, const co_node *node)
{
    onnx_attr_int(b, onnx_add(b, "Flatten", node), "axis", 1);
}

static void ops_log_softmax(onnx_builder *b, const co_node *node)
{
    onnx_attr_int(b, onnx_add(b, "LogSoftmax", node), "axis", 1);
}

typedef struct ops_writer {
    const co_op *op;
    void (*write)(onnx_builder *b, const co_node *node);
} ops_writer;

static const ops_writer ops_table[] = {
    {&co_op_conv2d, ops_conv2d},
    {&co_op_linear, ops_linear},
    {&co_op_maxpool, ops_maxpool},
    {&co_op_avgpool, ops_avgpool},
    {&co_op_adaptive_avgpool, ops_adaptive_avgpool},
    {&co_op_batchnorm, ops_batchnorm},
    {&co_op_relu, ops_relu},
    {&co_op_gelu, ops_gelu},
    {&co_op_add, ops_add},
    {&co_op_scale, ops_scale},
    {&co_op_flatten, ops_flatten},
    {&co_op_dropout, onnx_pass}, /* no effect in inference */
    {&co_op_dropout2d, onnx_pass},
    {&co_op_log_softmax, ops_log_softmax},
};

static const ops_writer *ops_find(const co_op *op)
{
    for (size_t i = 0; i < sizeof(ops_table) / sizeof(ops_table[0]); i++)
        if (ops_table[i].op == op)
            return &ops_table[i];
    return NULL;
}

bool onnx_has_writer(const co_op *op)
{
    return ops_find(op) != NULL;
}

co_status onnx_write_op(onnx_builder *b, const co_node *node)
{
    const ops_writer *writer = ops_find(node->op);

    if (!writer)
        return co_fail(CO_E_UNSUPPORTED, "layer %s: the op '%s' has no counterpart in ONNX here",
                       node->name, node->op->name);
    writer->write(b, node);
    return b->failed ? CO_E_NOMEM : CO_OK;
}
