/*
 * tree.c - the tree of a sum: which rank holds which leaves, and summing in tree order.
 *
 * Does not know how parts are transferred, or what a term is.
 */
#include "comm/tree.h"

#include <assert.h>
#include <string.h>

#include "comm/reduce.h"
#include "core/mem.h"
#include "device/device.h"

#define TREE_BLOCK 2048 /* bytes summed at a time, so that partial sums stay in L1 */
#define TREE_DEPTH 12   /* log2(CO_TREE_MAX_LEAVES), plus one for the root */

int co_tree_middle(int begin, int end)
{
    int half = 1;

    while (2 * half < end - begin)
        half *= 2;
    return begin + half;
}

bool co_tree_is_node(const co_tree *tree, int begin, int end)
{
    int a = 0, b = tree->leaves;

    while (b - a > 1 && (a != begin || b != end)) {
        const int middle = co_tree_middle(a, b);

        if (begin >= middle)
            a = middle;
        else
            b = middle;
    }
    return a == begin && b == end;
}

/* Number of maximal complete subtrees of [begin, end) within node [a, b). */
static int tree_count(int a, int b, int begin, int end)
{
    int middle;

    if (end <= a || b <= begin)
        return 0;
    if (begin <= a && b <= end)
        return 1;
    middle = co_tree_middle(a, b);
    return tree_count(a, middle, begin, end) + tree_count(middle, b, begin, end);
}

/*
 * Each rank gets leaves / ranks, and leaves % ranks of them one more: chosen to cut the fewest
 * subtrees, and the first ones on a tie. Dynamic programming: least[r][e] is the minimum number of
 * parts of ranks r and up, if e of the ranks below r got one more.
 */
static void tree_choose_runs(co_tree *tree, int *least)
{
    const int each = tree->leaves / tree->ranks, more = tree->leaves % tree->ranks;
    const int row = more + 1;

    for (int r = tree->ranks - 1; r >= 0; r--)
        for (int e = 0; e <= more; e++) {
            const int begin = r * each + e, *after = least + (r + 1) * row;
            int same, longer;

            if (e > r || more - e > tree->ranks - r) { /* unreachable */
                least[r * row + e] = 2 * CO_TREE_MAX_LEAVES * CO_TREE_MAX_PARTS;
                continue;
            }
            same = after[e] + tree_count(0, tree->leaves, begin, begin + each);
            longer = e == more
                         ? same + 1
                         : after[e + 1] + tree_count(0, tree->leaves, begin, begin + each + 1);
            least[r * row + e] = longer <= same ? longer : same;
        }
    for (int r = 0, e = 0; r < tree->ranks; r++) {
        const int begin = tree->first[r];
        const int *after = least + (r + 1) * row;
        const bool longer =
            e < more && least[r * row + e] ==
                            after[e + 1] + tree_count(0, tree->leaves, begin, begin + each + 1);

        e += longer;
        tree->first[r + 1] = begin + each + longer;
    }
}

static co_status tree_fill(co_tree *tree)
{
    const size_t ranks = (size_t)tree->ranks;
    const int more = tree->leaves % tree->ranks;
    int *least = co_calloc((ranks + 1) * ((size_t)more + 1), sizeof(*least));

    tree->first = co_calloc(ranks + 1, sizeof(*tree->first));
    tree->parts = co_calloc(ranks, sizeof(*tree->parts));
    tree->weight = co_calloc(ranks + 1, sizeof(*tree->weight));
    if (!least || !tree->first || !tree->parts || !tree->weight) {
        co_free(least);
        return CO_E_NOMEM;
    }
    for (int e = 0; e < more; e++) /* all extra leaves must be distributed in the end */
        least[tree->ranks * (more + 1) + e] = 2 * CO_TREE_MAX_LEAVES * CO_TREE_MAX_PARTS;
    tree_choose_runs(tree, least);
    co_free(least);
    for (size_t r = 0; r < ranks; r++) {
        const int parts = tree_count(0, tree->leaves, tree->first[r], tree->first[r + 1]);

        tree->parts[r] = parts;
        tree->weight[r + 1] = tree->weight[r] + (uint64_t)parts * (uint64_t)parts;
        if (parts > tree->most_parts)
            tree->most_parts = parts;
    }
    return CO_OK;
}

co_status co_tree_create(co_tree **out, int leaves, int ranks)
{
    co_tree *tree;
    co_status st;

    *out = NULL;
    if (leaves < 1 || leaves > CO_TREE_MAX_LEAVES)
        return co_fail(CO_E_USAGE, "a tree of %d leaves; give 1 to %d", leaves, CO_TREE_MAX_LEAVES);
    if (ranks < 1 || ranks > leaves)
        return co_fail(CO_E_USAGE,
                       "%d ranks cannot share the %d leaves of a tree; start at most %d", ranks,
                       leaves, leaves);
    tree = co_calloc(1, sizeof(*tree));
    if (!tree)
        return CO_E_NOMEM;
    tree->leaves = leaves;
    tree->ranks = ranks;
    st = tree_fill(tree);
    if (st != CO_OK) {
        co_tree_destroy(tree);
        return st;
    }
    *out = tree;
    return CO_OK;
}

void co_tree_destroy(co_tree *tree)
{
    if (!tree)
        return;
    co_free(tree->first);
    co_free(tree->parts);
    co_free(tree->weight);
    co_free(tree);
}

int co_tree_first(const co_tree *tree, int rank)
{
    assert(rank >= 0 && rank <= tree->ranks);
    return tree->first[rank];
}

int co_tree_parts(const co_tree *tree, int rank)
{
    assert(rank >= 0 && rank < tree->ranks);
    return tree->parts[rank];
}

size_t co_tree_slice(size_t *begin, const co_tree *tree, size_t n, size_t line, int rank)
{
    const size_t lines = (n + line - 1) / line, all = tree->weight[tree->ranks];
    const size_t from = lines * tree->weight[rank] / all * line;
    const size_t to = lines * tree->weight[rank + 1] / all * line;

    *begin = from < n ? from : n;
    return (to < n ? to : n) - *begin;
}

/* ---- summing parts ---- */

typedef struct tree_walk {
    const co_tree *tree;
    const unsigned char *const *part; /* the next one */
    int rank;                         /* its rank */
    size_t at, n;                     /* byte offset into each part; elements */
    co_dtype dtype;
    unsigned char (*sum)[TREE_BLOCK];
} tree_walk;

/* The value of node [a, b): a part, or its sum in `out`. Partial sums use sum[used] and up. */
static const void *tree_value(tree_walk *w, int a, int b, void *out, int used)
{
    const void *left, *right;
    int middle;

    while (w->tree->first[w->rank + 1] <= a)
        w->rank++;
    if (b <= w->tree->first[w->rank + 1])
        return *w->part++ + w->at;
    middle = co_tree_middle(a, b);
    left = tree_value(w, a, middle, w->sum[used], used + 1);
    right = tree_value(w, middle, b, w->sum[used + 1], used + 2);
    co_reduce_pair(out, left, right, w->n, w->dtype, CO_SUM);
    return out;
}

void co_tree_combine(const co_tree *tree, void *out, const void *const *part, size_t n,
                     co_dtype dtype)
{
    _Alignas(64) unsigned char sum[2 * TREE_DEPTH][TREE_BLOCK];
    const size_t esize = co_dtype_size(dtype), block = TREE_BLOCK / esize;

    for (size_t i = 0; i < n; i += block) {
        tree_walk walk = {.tree = tree,
                          .part = (const unsigned char *const *)part,
                          .at = i * esize,
                          .n = n - i < block ? n - i : block,
                          .dtype = dtype,
                          .sum = sum};
        unsigned char *to = (unsigned char *)out + i * esize;
        const void *value = tree_value(&walk, 0, tree->leaves, to, 0);

        if (value != to)
            memmove(to, value, walk.n * esize);
    }
}

/* ---- summing the terms of one rank ---- */

/* Whether the topmost pending node and [.., end) are the two halves of a node. */
static bool tree_completes(const co_tree_sum *sum, int top, int end)
{
    return top >= 0 && co_tree_is_node(sum->tree, sum->node[top].begin, end);
}

co_status co_tree_sum_init(co_tree_sum *sum, const co_tree *tree, int rank, size_t n,
                           const co_vector_ops *vector, co_queue *queue)
{
    int most = 0;

    *sum = (co_tree_sum){.tree = tree, .vector = vector, .queue = queue, .rank = rank, .n = n};
    co_tree_sum_start(sum);
    /* Dry run, to count the nodes that are pending at the same time. */
    while (sum->next + 1 < tree->first[rank + 1]) {
        co_tree_sum_push(sum, NULL);
        most = sum->n_node > most ? sum->n_node : most;
    }
    for (; sum->n_data < most; sum->n_data++) {
        void *data = NULL;

        CO_TRY(co_device_alloc(&data, co_queue_device(queue), n * sizeof(float), CO_MEMORY_DEVICE));
        sum->data[sum->n_data] = data;
    }
    co_tree_sum_start(sum);
    return CO_OK;
}

void co_tree_sum_fini(co_tree_sum *sum)
{
    while (sum->n_data > 0)
        co_device_free(co_queue_device(sum->queue), sum->data[--sum->n_data], CO_MEMORY_DEVICE);
}

void co_tree_sum_start(co_tree_sum *sum)
{
    sum->next = sum->tree->first[sum->rank];
    sum->n_node = 0;
}

void co_tree_sum_push(co_tree_sum *sum, const float *term)
{
    const int end = sum->next + 1;
    const float *value = term;
    int top = sum->n_node - 1;

    for (; tree_completes(sum, top, end); top--)
        if (term) {
            sum->vector->add(sum->queue, sum->data[top], value, sum->n);
            value = sum->data[top];
        }
    if (top + 1 == sum->n_node) {
        if (term)
            sum->vector->copy(sum->queue, sum->data[sum->n_node], term, sum->n);
        sum->node[sum->n_node++].begin = sum->next;
    }
    sum->n_node = top + 2;
    sum->node[top + 1].end = end;
    sum->next = end;
}

void co_tree_sum_close(const co_tree_sum *sum, float *term, size_t begin, size_t end)
{
    for (int top = sum->n_node - 1; tree_completes(sum, top, sum->next + 1); top--)
        sum->vector->add(sum->queue, term + begin, sum->data[top] + begin, end - begin);
}

int co_tree_sum_parts(const void **part, const co_tree_sum *sum, const float *term, size_t at)
{
    int n = sum->n_node;

    while (tree_completes(sum, n - 1, sum->next + 1))
        n--;
    for (int i = 0; i < n; i++)
        part[i] = sum->data[i] + at;
    part[n] = term + at;
    return n + 1;
}
