/*
 * receptive.c - which part of each image any result depends on.
 *
 * Windows that do not fill an image leave its last rows and columns out: max pooling of 5 x 5 by
 * 2 x 2 reads 4 x 4 of them. What is left out need not be computed, nor what only that depends on,
 * and its gradient is 0. Kernels may make use of it.
 */
#include "graph/graph.h"

static bool receptive_is_image(const co_var *var)
{
    return var->shape.ndim == 4;
}

static co_extent receptive_whole(const co_var *var)
{
    return (co_extent){var->shape.dim[2], var->shape.dim[3]};
}

static int64_t receptive_clip(int64_t n, int64_t size)
{
    return n < 1 ? 1 : n < size ? n : size;
}

/* A node reads this part of an input, besides what others read. */
static void receptive_add(co_var *in, co_extent part)
{
    const co_extent whole = receptive_whole(in);
    const int64_t rows = receptive_clip(part.rows, whole.rows);
    const int64_t columns = receptive_clip(part.columns, whole.columns);

    in->read.rows = rows > in->read.rows ? rows : in->read.rows;
    in->read.columns = columns > in->read.columns ? columns : in->read.columns;
}

void co_graph_find_read(co_graph *graph)
{
    for (int i = graph->n_node - 1; i >= 0; i--) {
        const co_node *node = &graph->node[i];
        co_var *out = &graph->var[node->out[0]];
        const bool image = receptive_is_image(out);

        /* the caller reads it, or nobody does */
        if (image && (node->out[0] == graph->output || !out->read.rows))
            out->read = receptive_whole(out);
        for (int k = 0; k < node->op->n_in; k++) {
            co_var *in = &graph->var[node->in[k]];

            if (receptive_is_image(in))
                receptive_add(in, image && node->op->receptive
                                      ? node->op->receptive(out->read, node->attr)
                                      : receptive_whole(in));
        }
    }
}
