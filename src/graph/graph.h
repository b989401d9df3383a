/*
 * graph.h - a network as nodes over tensors, built once. It knows no batch size, kernel or rank.
 */
#ifndef CO_GRAPH_GRAPH_H
#define CO_GRAPH_GRAPH_H

#include <cohort/ext/op.h>

#include "core/arena.h"
#include "tensor/store.h"

/* A tensor of the graph. dim[0] is the batch, 1 here; a plan substitutes its own batch size. */
typedef struct co_var {
    co_shape shape;
    co_dtype dtype;
    int producer;   /* node, or -1 for an input of the graph */
    co_extent read; /* as co_tensor has it; set by co_graph_finish */
} co_var;

typedef struct co_param {
    const char *name;  /* "conv1.weight" */
    const char *alias; /* its name in files of earlier releases, or others; NULL: no other */
    const char *copy;  /* where tied: the name under which files may have it again; else NULL */
    bool transposed;   /* a matrix (out, in) that files have as (in, out); see stored.h */
    bool named;        /* its name is its own, not that of its layer and the op's for it */
    int ones;          /* dimensions of 1 that files have before its own */
    co_param_spec spec;
    int owner;     /* the first node that has it, which places it */
    size_t offset; /* in the store's param and grad arrays, or in its buffer array */
    size_t count;
    bool frozen; /* not trained for now: its gradient is not needed */
} co_param;

typedef struct co_node {
    const co_op *op;
    const char *name;
    const void *attr;
    int in[CO_OP_MAX_IN];   /* vars */
    int out[CO_OP_MAX_OUT]; /* vars */
    int n_param;
    int param[CO_OP_MAX_PARAM];    /* into co_graph.param */
    size_t range_begin, range_end; /* range of its gradients in the store; equal: none */
    int block;                     /* which block it belongs to, from 1 on; 0: none */
} co_node;

/* An input from the batch: field `name` goes into tensor `var`. */
typedef struct co_graph_input {
    const char *name;
    int var;
} co_graph_input;

#define CO_GRAPH_MAX_INPUT 4

typedef struct co_graph {
    co_arena *arena; /* owned: everything below */
    int n_var, n_node, n_param;
    co_var *var;
    co_node *node;            /* in topological order: the order of building */
    co_param *param;          /* in order of building: PyTorch's state_dict order */
    const char *const *extra; /* patterns of fnmatch(3), ended by NULL: tensors that files of
                                 weights may have, and no parameter is; NULL: none */
    int n_input;
    co_graph_input input[CO_GRAPH_MAX_INPUT];
    int output;               /* var: (N, outputs): logits, log-probabilities or values */
    int loss;                 /* var: (N), or -1 until a loss node is added */
    size_t n_store, n_buffer; /* elements; set by co_graph_finish */
    int n_block, block_depth; /* blocks so far; begun and not ended */
    bool decay_matrices; /* weight decay is for matrices alone unless the config says otherwise */
    int cap_var, cap_node, cap_param;
} co_graph;

co_status co_graph_create(co_graph **out);
void co_graph_destroy(co_graph *graph);

/* An input by the name of the batch's field; names are unique. `sample` is the shape of one sample:
 *out is a var with the batch in front. */
co_status co_graph_add_input(int *out, co_graph *graph, const char *name, const co_shape *sample,
                             co_dtype dtype);
/* What the whole numbers of an input are below, for all nodes that read it. */
int64_t co_graph_limit(const co_graph *graph, int var);
/* The var of an input; -1: there is none of that name. */
int co_graph_find_input(const co_graph *graph, const char *name);

/* Append a node. `attr` is copied. `name` may be NULL for nodes without parameters (then
   "<op><index>"); names are unique. *out is its first output var. An impossible shape is
   CO_E_USAGE naming the node. */
co_status co_graph_add(int *out, co_graph *graph, const co_op *op, const char *name,
                       const void *attr, const int *in);

/* Let the last node, which has one parameter, have the one named `param` of an earlier node instead
   of its own (tied weights; Press & Wolf, arXiv:1608.05859). Their shapes must be equal, and the
   earlier node has no other. The gradient is the sum of both, of the later node first. */
co_status co_graph_tie(co_graph *graph, const char *param);

/* The nodes added in between are a block: what a plan may compute again in the backward pass. A
   block in a block is a part of it. */
void co_graph_begin_block(co_graph *graph);
void co_graph_end_block(co_graph *graph);

/* Files have the first parameter of the last node, a matrix, transposed. */
void co_graph_transpose(co_graph *graph);

/* Parameter k of the last node has another name than that of the node and its own, and in files
   `ones` dimensions of 1 before its own. */
co_status co_graph_name_param(co_graph *graph, int k, const char *name, int ones);

/* Append the loss: var `output` becomes the graph's output, and what `op` compares it with becomes
   one more input (co_op.target). *out is the loss of each sample. */
co_status co_graph_add_loss(int *out, co_graph *graph, const co_op *op, const char *name,
                            const void *attr, int output);

/* Set co_var.read of all images. */
void co_graph_find_read(co_graph *graph);

/* Place parameters in the order in which backward finishes them. No node may be added after. */
co_status co_graph_finish(co_graph *graph);

/* Make a finished graph of tokens (N, T), of which no node depends on later positions, one of
   (N, 1), whose samples are positions of one sequence. *length: T. */
co_status co_graph_decode(int64_t *length, co_graph *graph);

/* Initial values from the seed alone: element e of parameter p uses the words of (seed,
   CO_RNG_INIT, p). Fails where the store's device does. */
co_status co_graph_init(const co_graph *graph, co_store *store, uint64_t seed);

/* Trained elements, without gaps. */
size_t co_graph_param_count(const co_graph *graph);

#endif
