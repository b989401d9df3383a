/*
 * onnx_build.h - what a writer of one op (onnx_ops.c) says to the graph under construction
 * (onnx.c).
 *
 * Messages live in one arena. A call that finds no memory makes the builder fail, and it and
 * all that follow do nothing: writers need not check.
 */
#ifndef CO_EXPORT_ONNX_BUILD_H
#define CO_EXPORT_ONNX_BUILD_H

#include "export/values.h"

#include <onnx.pb-c.h>

#define ONNX_MAX_ATTR 8 /* of a node */

typedef struct onnx_builder {
    co_arena *arena;
    const co_graph *graph;
    co_export_values values;
    Onnx__GraphProto *proto;
    size_t max_nodes, max_tensors; /* room in proto */
    const char **value;            /* (n_var): its name in the file; NULL: not written */
    bool failed;                   /* out of memory */
    Onnx__NodeProto scratch;       /* what calls write to once it has failed */
    Onnx__AttributeProto *scratch_attr[ONNX_MAX_ATTR];
} onnx_builder;

/* Up to so many nodes and constants may a writer add for one node of ours. */
#define ONNX_MAX_NODES   5
#define ONNX_MAX_TENSORS 3

/* A node of this ONNX operator, which reads `x` and then the parameters of `node`, and writes its
   output. */
Onnx__NodeProto *onnx_add(onnx_builder *b, const char *op, const co_node *node);
/* The same with these inputs, ended by NULL, and an output of this name. `suffix` is appended to
   the node's name. */
Onnx__NodeProto *onnx_add_named(onnx_builder *b, const char *op, const co_node *node,
                                const char *suffix, const char *const *in, const char *out);
/* The output of `node` is its input: nothing is written. */
void onnx_pass(onnx_builder *b, const co_node *node);
void onnx_attr_int(onnx_builder *b, Onnx__NodeProto *to, const char *name, int64_t v);
void onnx_attr_ints(onnx_builder *b, Onnx__NodeProto *to, const char *name, const int64_t *v,
                    size_t n);
void onnx_attr_float(onnx_builder *b, Onnx__NodeProto *to, const char *name, double v);
/* A constant of floats, which are borrowed until the file is written. */
void onnx_add_tensor(onnx_builder *b, const char *name, const co_shape *shape, const float *data);
/* The node's name with `suffix` appended. Never NULL. */
const char *onnx_name(onnx_builder *b, const co_node *node, const char *suffix);
/* What the file calls the tensor. */
const char *onnx_value(const onnx_builder *b, int var);

bool onnx_has_writer(const co_op *op);
/* Write `node`; CO_E_UNSUPPORTED when its op has no writer. */
co_status onnx_write_op(onnx_builder *b, const co_node *node);

#endif
