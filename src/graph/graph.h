/*
 * graph.h - a network as nodes over tensors, built once; knows no batch size, kernel or rank.
 */
#ifndef CO_GRAPH_GRAPH_H
#define CO_GRAPH_GRAPH_H

#include <cohort/ext/op.h>

#include "core/arena.h"
#include "tensor/store.h"

/* A tensor of the graph. dim[0] is the batch and is 1 here; a plan puts its own batch in. */
typedef struct co_var {
    co_shape shape;
    co_dtype dtype;
    int producer; /* node, or -1 for an input of the graph */
} co_var;

typedef struct co_param {
    const char *name;   /* "conv1.weight" */
    const char *former; /* its name in files of earlier releases; NULL: no other */
    co_param_spec spec;
    size_t offset; /* in the store's param and grad arrays, or in its buffer array */
    size_t count;
} co_param;

typedef struct co_node {
    const co_op *op;
    const char *name;
    const void *attr;
    int in[CO_OP_MAX_IN];   /* vars */
    int out[CO_OP_MAX_OUT]; /* vars */
    int n_param;
    int param[CO_OP_MAX_PARAM];    /* into co_graph.param */
    size_t range_begin, range_end; /* of its gradients in the store; equal: none */
} co_node;

typedef struct co_graph {
    co_arena *arena; /* owned: everything below */
    int n_var, n_node, n_param;
    co_var *var;
    co_node *node;            /* in topological order: the order of building */
    co_param *param;          /* in order of building: PyTorch's state_dict order */
    int input;                /* var: (N, C, H, W) */
    int label;                /* var: (N) int32 */
    int output;               /* var: (N, classes): logits or log-probabilities */
    int loss;                 /* var: (N), or -1 until a loss node is added */
    size_t n_store, n_buffer; /* elements; set by co_graph_finish */
    int cap_var, cap_node, cap_param;
} co_graph;

/* `sample` is (C, H, W). */
co_status co_graph_create(co_graph **out, const co_shape *sample);
void co_graph_destroy(co_graph *graph);

/* Append a node. `attr` is copied. `name` may be NULL for nodes without parameters (then
   "<op><index>"); names are unique. *out is its first output var. An impossible shape is
   CO_E_USAGE naming the node. */
co_status co_graph_add(int *out, co_graph *graph, const co_op *op, const char *name,
                       const void *attr, const int *in);

/* Place parameters in the order in which backward finishes them. No node may be added after. */
co_status co_graph_finish(co_graph *graph);

/* Initial values from the seed alone: parameter p, element e are words of (seed, CO_RNG_INIT, p).
 */
void co_graph_init(const co_graph *graph, co_store *store, uint64_t seed);

/* Trained elements, without gaps. */
size_t co_graph_param_count(const co_graph *graph);

#endif
