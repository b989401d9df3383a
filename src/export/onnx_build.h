/*
 * onnx_build.h - functions by which the writers of ops (onnx_ops.c) build the ONNX graph (onnx.c).
 *
 * Messages are allocated in one arena. If memory runs out, the builder has failed, and this call
 * and all further ones do nothing: writers need not check.
 */
#ifndef CO_EXPORT_ONNX_BUILD_H
#define CO_EXPORT_ONNX_BUILD_H

#include "export/values.h"

#include <onnx.pb-c.h>

#define ONNX_MAX_ATTR 8 /* attributes of a node */

typedef struct onnx_builder {
    co_arena *arena;
    const co_graph *graph;
    co_export_values values;
    Onnx__GraphProto *proto;
    size_t max_nodes, max_tensors; /* room in proto */
    const char **value;            /* (n_var): name of each tensor in the file; NULL: not written */
    bool failed;                   /* out of memory */
    Onnx__NodeProto scratch;       /* what calls write to after a failure */
    Onnx__AttributeProto *scratch_attr[ONNX_MAX_ATTR];
} onnx_builder;

/* Limits on the nodes and constants that a writer adds for one node. */
#define ONNX_MAX_NODES   5
#define ONNX_MAX_TENSORS 3

/* Add a node of the ONNX operator `op` with the inputs, parameters and output of `node`. */
Onnx__NodeProto *onnx_add(onnx_builder *b, const char *op, const co_node *node);
/* The same with inputs `in` (NULL-terminated) and output `out`; `suffix` is added to the node's
   name. */
Onnx__NodeProto *onnx_add_named(onnx_builder *b, const char *op, const co_node *node,
                                const char *suffix, const char *const *in, const char *out);
/* Make the input of `node` its output, without writing a node. */
void onnx_pass(onnx_builder *b, const co_node *node);
void onnx_attr_int(onnx_builder *b, Onnx__NodeProto *to, const char *name, int64_t v);
void onnx_attr_ints(onnx_builder *b, Onnx__NodeProto *to, const char *name, const int64_t *v,
                    size_t n);
void onnx_attr_float(onnx_builder *b, Onnx__NodeProto *to, const char *name, double v);
/* Add a constant of floats, which are borrowed until the file is written. */
void onnx_add_tensor(onnx_builder *b, const char *name, const co_shape *shape, const float *data);
/* The node's name with `suffix` appended. Never NULL. */
const char *onnx_name(onnx_builder *b, const co_node *node, const char *suffix);
/* The name of the tensor in the file. */
const char *onnx_value(const onnx_builder *b, int var);

bool onnx_has_writer(const co_op *op);
/* Write `node`; CO_E_UNSUPPORTED if its op has no writer. */
co_status onnx_write_op(onnx_builder *b, const co_node *node);

#endif
