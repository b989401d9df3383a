/*
 * tree.h - one fixed order of adding up terms, whichever rank holds them.
 *
 * The terms are the leaves 0 .. leaves-1 of a binary tree: node [a, b) splits at a plus the largest
 * power of two below b - a. Rank r holds the run first[r] .. first[r+1] of them and adds up the
 * complete subtrees in it, its parts; the tree all-reduce adds up the parts of all. So each sum has
 * the same two operands for any number of ranks, and the same bits.
 */
#ifndef CO_COMM_TREE_H
#define CO_COMM_TREE_H

#include <cohort/comm.h>
#include <cohort/ext/vector.h>

#define CO_TREE_MAX_LEAVES 1024
#define CO_TREE_MAX_PARTS  20 /* of a run: at most 2 log2(leaves) - 2 */

struct co_tree {
    int leaves, ranks;
    int *first;       /* (ranks + 1), owned */
    int *parts;       /* (ranks), owned: complete subtrees in the run of each */
    uint64_t *weight; /* (ranks + 1), owned: running sum of the weights that decide how much each
                         rank adds up */
    int most_parts;
};

/* Where node [begin, end) splits. */
int co_tree_middle(int begin, int end);
/* Whether [begin, end) is a node. */
bool co_tree_is_node(const co_tree *tree, int begin, int end);

/* Of n elements a rank adds up slice `rank`: whole lines of `line` elements. A rank of more parts
   has more elements, so that fewer travel. */
size_t co_tree_slice(size_t *begin, const co_tree *tree, size_t n, size_t line, int rank);

/* out = sum of the parts of all ranks, part after part, in the tree's order; n elements. `out` may
   be one of them. */
void co_tree_combine(const co_tree *tree, void *out, const void *const *part, size_t n,
                     co_dtype dtype);

/* ---- adding up what one rank holds ---- */

/* Terms come one after another in the same buffer; complete subtrees among them are kept. */
typedef struct co_tree_sum {
    const co_tree *tree;         /* borrowed */
    const co_vector_ops *vector; /* does the sums, on `queue` */
    co_queue *queue;             /* borrowed */
    int rank, next;              /* the next leaf */
    size_t n;
    int n_node, n_data; /* pending nodes; entries for them, most of them one */
    struct {
        int begin, end;
    } node[CO_TREE_MAX_PARTS];
    float *data[CO_TREE_MAX_PARTS]; /* owned */
} co_tree_sum;

/* `sum` is all zero; allocates all memory it will need, and is ready for the first term, which is
   where `vector` adds up on `queue`. */
co_status co_tree_sum_init(co_tree_sum *sum, const co_tree *tree, int rank, size_t n,
                           const co_vector_ops *vector, co_queue *queue);
void co_tree_sum_fini(co_tree_sum *sum);
/* Before the first term. */
void co_tree_sum_start(co_tree_sum *sum);
/* `term` holds the next leaf, which is not the last of the rank; afterwards it is free again. */
void co_tree_sum_push(co_tree_sum *sum, const float *term);
/* Elements [begin, end) of `term` hold those of the rank's last leaf: they become those of its
   last part. Each element once. */
void co_tree_sum_close(const co_tree_sum *sum, float *term, size_t begin, size_t end);
/* The rank's parts from element `at` on, left to right, `term` the last; how many. */
int co_tree_sum_parts(const void **part, const co_tree_sum *sum, const float *term, size_t at);

#endif
