/*
 * tree.h - a fixed order of summation that does not depend on which rank holds which terms.
 *
 * The terms are the leaves 0 .. leaves-1 of a binary tree: node [a, b) splits at a plus the largest
 * power of two below b - a. Rank r holds leaves first[r] .. first[r+1] and sums the complete
 * subtrees among them, its parts; the tree all-reduce sums the parts of all ranks. So each addition
 * has the same operands, and the same bits, for any number of ranks.
 */
#ifndef CO_COMM_TREE_H
#define CO_COMM_TREE_H

#include <cohort/comm.h>
#include <cohort/ext/vector.h>

#define CO_TREE_MAX_LEAVES 1024
#define CO_TREE_MAX_PARTS  20 /* per rank: at most 2 log2(leaves) - 2 */

struct co_tree {
    int leaves, ranks;
    int *first;       /* (ranks + 1), owned */
    int *parts;       /* (ranks), owned: number of parts of each */
    uint64_t *weight; /* (ranks + 1), owned: running sum of weights; a rank sums a slice in
                         proportion to its weight */
    int most_parts;
};

/* Where node [begin, end) splits. */
int co_tree_middle(int begin, int end);
/* Whether [begin, end) is a node. */
bool co_tree_is_node(const co_tree *tree, int begin, int end);

/* The slice of n elements that a rank sums: whole lines of `line` elements. A rank with more parts
   gets a larger slice, so that less data is sent. */
size_t co_tree_slice(size_t *begin, const co_tree *tree, size_t n, size_t line, int rank);

/* out = sum of the parts of all ranks, in tree order; n elements. `out` may be one of them. */
void co_tree_combine(const co_tree *tree, void *out, const void *const *part, size_t n,
                     co_dtype dtype);

/* ---- summing the terms of one rank ---- */

/* Terms arrive one after another in the same buffer; sums of complete subtrees are kept. */
typedef struct co_tree_sum {
    const co_tree *tree;         /* borrowed */
    const co_vector_ops *vector; /* performs the sums, on `queue` */
    co_queue *queue;             /* borrowed */
    int rank, next;              /* the next leaf */
    size_t n;
    int n_node, n_data; /* pending nodes; allocated buffers */
    struct {
        int begin, end;
    } node[CO_TREE_MAX_PARTS];
    float *data[CO_TREE_MAX_PARTS]; /* owned */
} co_tree_sum;

/* `sum` must be zeroed. Allocates all the memory it will need, where `vector` works on `queue`;
   ready for the first term. */
co_status co_tree_sum_init(co_tree_sum *sum, const co_tree *tree, int rank, size_t n,
                           const co_vector_ops *vector, co_queue *queue);
void co_tree_sum_fini(co_tree_sum *sum);
/* Restart before a first term. */
void co_tree_sum_start(co_tree_sum *sum);
/* `term` holds the next leaf, which must not be the rank's last; it can be reused afterwards. */
void co_tree_sum_push(co_tree_sum *sum, const float *term);
/* Elements [begin, end) of `term` hold the rank's last leaf; make them its last part. Once for each
   element. */
void co_tree_sum_close(const co_tree_sum *sum, float *term, size_t begin, size_t end);
/* Pointers to the rank's parts from element `at`, left to right, `term` last; returns how many. */
int co_tree_sum_parts(const void **part, const co_tree_sum *sum, const float *term, size_t at);

#endif
