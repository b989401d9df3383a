/*
 * decode.c - a network of sequences as one of single positions: parameters stay, and all shapes
 * have one position. What a node has to know of earlier positions, its kernel keeps.
 */
#include "graph/graph.h"

static co_status decode_node(co_graph *graph, const co_node *node)
{
    co_shape in[CO_OP_MAX_IN], out[CO_OP_MAX_OUT];

    for (int i = 0; i < node->op->n_in; i++)
        in[i] = graph->var[node->in[i]].shape;
    CO_TRY(node->op->shape(out, in, node->attr));
    for (int i = 0; i < node->op->n_out; i++)
        graph->var[node->out[i]].shape = out[i];
    return CO_OK;
}

co_status co_graph_decode(int64_t *length, co_graph *graph)
{
    const co_var *input = &graph->var[co_graph_find_input(graph, CO_FIELD_INPUT)];

    *length = input->shape.dim[1];
    for (int i = 0; i < graph->n_input; i++)
        graph->var[graph->input[i].var].shape.dim[1] = 1;
    for (int i = 0; i < graph->n_node; i++)
        CO_TRY(decode_node(graph, &graph->node[i]));
    return CO_OK;
}
