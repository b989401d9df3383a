/*
 * cases_tree.c - sums in the order of one tree give the same bits for any number of ranks. The
 * expected values are computed leaf by leaf, without ranks.
 */
#include <stdlib.h>
#include <string.h>

#include "bits.h"
#include "comm/cases.h"
#include "comm/tree.h"
#include "tensor/vector.h"

/* Rounds when added to others, so that the order affects the bits. */
static float tree_leaf(int leaf, size_t i)
{
    return 1.0f / (float)(3 + leaf * 1009 + (int)(i % 5000) * 7) - 0.0001f * (float)(leaf % 7);
}

static float tree_oracle(int begin, int end, size_t i)
{
    int half = 1;

    if (end - begin == 1)
        return tree_leaf(begin, i);
    while (half * 2 < end - begin)
        half *= 2;
    return tree_oracle(begin, begin + half, i) + tree_oracle(begin + half, end, i);
}

/* Adds the rank's leaves, one after another in `term`, the last in two ranges. */
static void tree_add_leaves(co_tree_sum *sum, const co_tree *tree, float *term, int rank, size_t n)
{
    const int last = co_tree_first(tree, rank + 1) - 1;

    co_tree_sum_start(sum);
    for (int leaf = co_tree_first(tree, rank); leaf <= last; leaf++) {
        for (size_t i = 0; i < n; i++)
            term[i] = tree_leaf(leaf, i);
        if (leaf < last)
            co_tree_sum_push(sum, term);
    }
    co_tree_sum_close(sum, term, 0, n / 3);
    co_tree_sum_close(sum, term, n / 3, n);
}

/* One sum; `term` has room for n elements and may equal `out`. */
static bool tree_sum(co_comm *comm, const co_tree *tree, float *out, float *term, size_t n)
{
    const int rank = co_comm_rank(comm);
    const void *part[CO_TREE_MAX_PARTS];
    co_tree_sum sum;

    CHECK_OK(co_tree_sum_init(&sum, tree, rank, n, co_vector_host(), NULL));
    tree_add_leaves(&sum, tree, term, rank, n);
    CHECK(co_tree_sum_parts(part, &sum, term, 0) == co_tree_parts(tree, rank));
    CHECK_OK(co_comm_tree_allreduce(comm, tree, out, part, n, CO_F32));
    co_tree_sum_fini(&sum);
    for (size_t i = 0; i < n; i++) {
        const float want = tree_oracle(0, tree->leaves, i);

        CHECK(bits_are_same(&want, &out[i], sizeof(want)));
    }
    return true;
}

static bool tree_sum_of_any_ranks_has_same_bits(co_comm *comm)
{
    static const int leaves[] = {1, 2, 3, 4, 5, 6, 7, 8, 11, 16, 23, 64};
    static const size_t counts[] = {0, 1, 17, 1025, 5003, 70001};
    float *term = comm_blank(CO_F32, 70001), *out = comm_blank(CO_F32, 70001);

    for (size_t l = 0; l < sizeof(leaves) / sizeof(leaves[0]); l++) {
        co_tree *tree;

        if (leaves[l] < co_comm_size(comm))
            continue;
        CHECK_OK(co_tree_create(&tree, leaves[l], co_comm_size(comm)));
        for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
            if (counts[c] > 6000 && leaves[l] != 8 && leaves[l] != 23)
                continue;
            CHECK(tree_sum(comm, tree, out, term, counts[c]));
            CHECK(tree_sum(comm, tree, term, term, counts[c]));
        }
        co_tree_destroy(tree);
    }
    comm_free(term);
    comm_free(out);
    return true;
}

/* Larger than a slot and a piece; several in flight among other operations. */
static bool tree_sum_larger_than_slot_is_exact(co_comm *comm)
{
    const size_t n = ((size_t)1 << 20) + 4099;
    const int leaves = 2 * co_comm_size(comm) + 1;
    float *term = comm_blank(CO_F32, n), *other = comm_blank(CO_F32, n), small = 1;
    const void *part[CO_TREE_MAX_PARTS], *part2[CO_TREE_MAX_PARTS];
    co_request *request[3];
    co_tree *tree;
    co_tree_sum sum;

    CHECK_OK(co_tree_create(&tree, leaves, co_comm_size(comm)));
    CHECK_OK(co_tree_sum_init(&sum, tree, co_comm_rank(comm), n, co_vector_host(), NULL));
    tree_add_leaves(&sum, tree, term, co_comm_rank(comm), n);
    (void)co_tree_sum_parts(part, &sum, term, 0);
    (void)co_tree_sum_parts(part2, &sum, term, 5);
    CHECK_OK(co_comm_itree_allreduce(&request[0], comm, tree, other, part2, n - 5, CO_F32));
    CHECK_OK(co_comm_iallreduce(&request[1], comm, &small, &small, 1, CO_F32, CO_SUM));
    CHECK_OK(co_comm_itree_allreduce(&request[2], comm, tree, term, part, n, CO_F32));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(co_request_wait(request[i]));
        co_request_destroy(request[i]);
    }
    CHECK(small == (float)co_comm_size(comm));
    CHECK(bits_are_same(other, term + 5, (n - 5) * sizeof(*term)));
    for (size_t i = 0; i < n; i++) {
        const float want = tree_oracle(0, leaves, i);

        CHECK(bits_are_same(&want, &term[i], sizeof(want)));
    }
    co_tree_sum_fini(&sum);
    co_tree_destroy(tree);
    comm_free(term);
    comm_free(other);
    return true;
}

/* With one leaf per rank the traffic is that of an ordinary all-reduce. */
static bool tree_leaf_per_rank_sends_like_allreduce(co_comm *comm)
{
    const uint64_t before = co_comm_bytes_sent(comm);
    float term[40] = {0};
    const void *part = term;
    co_tree *tree;

    CHECK_OK(co_tree_create(&tree, co_comm_size(comm), co_comm_size(comm)));
    CHECK_OK(co_comm_tree_allreduce(comm, tree, term, &part, 40, CO_F32));
    CHECK(co_comm_bytes_sent(comm) - before == (co_comm_size(comm) > 1 ? sizeof(term) : 0));
    co_tree_destroy(tree);
    return true;
}

static bool tree_bad_arguments_are_refused(co_comm *comm)
{
    float data[16] = {0};
    const void *part[CO_TREE_MAX_PARTS] = {data + 1}, *none = NULL;
    co_tree *tree, *wrong;

    CHECK(co_tree_create(&tree, 2, 3) == CO_E_USAGE);
    CHECK(co_tree_create(&tree, 0, 1) == CO_E_USAGE);
    CHECK(co_tree_create(&tree, CO_TREE_MAX_LEAVES + 1, 1) == CO_E_USAGE);
    CHECK_OK(co_tree_create(&tree, co_comm_size(comm), co_comm_size(comm)));
    CHECK_OK(co_tree_create(&wrong, 2 * co_comm_size(comm), co_comm_size(comm) + 1));
    CHECK(co_comm_tree_allreduce(comm, tree, data, part, 8, CO_F32) == CO_E_USAGE);
    CHECK(strstr(co_error_message(), "overlap") != NULL);
    CHECK(co_comm_tree_allreduce(comm, wrong, data, part, 1, CO_F32) == CO_E_USAGE);
    CHECK(co_comm_tree_allreduce(comm, NULL, data, part, 1, CO_F32) == CO_E_USAGE);
    CHECK(co_comm_tree_allreduce(comm, tree, NULL, part, 1, CO_F32) == CO_E_USAGE);
    CHECK(co_comm_tree_allreduce(comm, tree, data, NULL, 1, CO_F32) == CO_E_USAGE);
    CHECK(co_comm_tree_allreduce(comm, tree, data, &none, 1, CO_F32) == CO_E_USAGE);
    CHECK(co_comm_tree_allreduce(comm, tree, data, part, SIZE_MAX / 8, CO_F32) == CO_E_USAGE);
    CHECK_OK(co_comm_tree_allreduce(comm, tree, data, part, 1, CO_F32)); /* still usable */
    co_tree_destroy(wrong);
    co_tree_destroy(tree);
    return true;
}

/* Trees with different leaves are a mismatch, not a wrong sum. Runs last: it fails the
   communicator. */
static bool tree_mismatch_fails_on_all_ranks(co_comm *comm)
{
    const int size = co_comm_size(comm);
    float data[8] = {0};
    const void *part[CO_TREE_MAX_PARTS];
    co_comm *both;
    co_tree *tree;

    for (int i = 0; i < CO_TREE_MAX_PARTS; i++)
        part[i] = data;
    CHECK_OK(co_comm_split(&both, comm, 0, co_comm_rank(comm)));
    CHECK_OK(co_tree_create(&tree, co_comm_rank(comm) == 0 ? 2 * size : 4 * size, size));
    CHECK(co_comm_tree_allreduce(both, tree, data, part, 8, CO_F32) == CO_E_MISMATCH);
    CHECK_OK(co_comm_barrier(comm));
    co_tree_destroy(tree);
    co_comm_destroy(both);
    return true;
}

/* Elements sent by all ranks for a sum of 1000: slices of parts to the rank that sums them, and
   sums to all. */
static double tree_traffic(const co_tree *tree)
{
    double sent = 0;

    for (int r = 0; r < tree->ranks; r++) {
        size_t begin;
        const double own = (double)co_tree_slice(&begin, tree, 1000, 1, r);

        sent += tree->parts[r] * (1000 - own) + (tree->ranks - 1) * own;
    }
    return sent;
}

/* For 8 shards the traffic is at most 1.3 times that of an ordinary all-reduce, for any number of
   ranks. */
static bool tree_traffic_of_eight_shards_is_bounded(co_comm *comm)
{
    (void)comm;
    for (int ranks = 2; ranks <= 8; ranks++) {
        const double plain = 2 * (ranks - 1) * 1000;
        co_tree *tree;
        size_t all = 0;

        CHECK_OK(co_tree_create(&tree, 8, ranks));
        for (int r = 0; r < ranks; r++) {
            size_t begin;
            const size_t n = co_tree_slice(&begin, tree, 1000, 1, r);

            CHECK(begin == all);
            all += n;
        }
        CHECK(all == 1000);
        CHECK(tree_traffic(tree) <= (ranks == 3 ? 1.3 : 1.0) * plain);
        co_tree_destroy(tree);
    }
    return true;
}

/* Runs of leaves are near-equal, ordered and complete, in as few parts as possible. */
static bool tree_runs_cover_leaves_in_order(co_comm *comm)
{
    static const int eight[8][9] = {{0, 8},
                                    {0, 4, 8},
                                    {0, 3, 6, 8},
                                    {0, 2, 4, 6, 8},
                                    {0, 2, 4, 6, 7, 8},
                                    {0, 2, 4, 5, 6, 7, 8},
                                    {0, 2, 3, 4, 5, 6, 7, 8},
                                    {0, 1, 2, 3, 4, 5, 6, 7, 8}};

    (void)comm;
    for (int leaves = 1; leaves <= 40; leaves++)
        for (int ranks = 1; ranks <= leaves; ranks++) {
            co_tree *tree;

            CHECK_OK(co_tree_create(&tree, leaves, ranks));
            CHECK(co_tree_first(tree, 0) == 0 && co_tree_first(tree, ranks) == leaves);
            for (int r = 0; r < ranks; r++) {
                const int n = co_tree_first(tree, r + 1) - co_tree_first(tree, r);

                CHECK(n == leaves / ranks || n == leaves / ranks + 1);
                CHECK(leaves != 8 || co_tree_first(tree, r) == eight[ranks - 1][r]);
                CHECK(co_tree_parts(tree, r) <= CO_TREE_MAX_PARTS);
            }
            co_tree_destroy(tree);
        }
    return true;
}

const comm_case comm_cases_tree[] = {
    {"tree_runs_cover_leaves_in_order", tree_runs_cover_leaves_in_order, 1},
    {"tree_traffic_of_eight_shards_is_bounded", tree_traffic_of_eight_shards_is_bounded, 1},
    {"tree_sum_of_any_ranks_has_same_bits", tree_sum_of_any_ranks_has_same_bits, 1},
    {"tree_sum_larger_than_slot_is_exact", tree_sum_larger_than_slot_is_exact, 1},
    {"tree_leaf_per_rank_sends_like_allreduce", tree_leaf_per_rank_sends_like_allreduce, 1},
    {"tree_bad_arguments_are_refused", tree_bad_arguments_are_refused, 1},
    {"tree_mismatch_fails_on_all_ranks", tree_mismatch_fails_on_all_ranks, 2},
    {NULL, NULL, 0},
};
