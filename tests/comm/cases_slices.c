/*
 * cases_slices.c - the halves of an all-reduce: sums of slices have the bits of the whole sum, and
 * gathered they are the whole, for as many bytes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bits.h"
#include "comm/cases.h"
#include "comm/queued.h"
#include "comm/tree.h"
#include "tensor/vector.h"

#define SLICES_MOST ((size_t)700001)

/* Rounds when added to others. */
static float slices_value(int rank, size_t i)
{
    return 1.0f / (float)(3 + rank * 1009 + (int)(i % 5003) * 7);
}

static void slices_fill(float *data, int rank, size_t n)
{
    for (size_t i = 0; i < n; i++)
        data[i] = slices_value(rank, i);
}

static co_status slices_run(co_comm *comm, co_coll coll, float *data, size_t n, co_reduce_op op)
{
    const co_coll_args args = {.coll = coll,
                               .in = data,
                               .out = data,
                               .count = n,
                               .each = co_comm_slice_each(comm, n),
                               .dtype = CO_F32,
                               .op = op};

    return co_comm_enqueue_run(comm, &args);
}

/* `data` and `whole`: room for n elements. */
static bool slices_sum(co_comm *comm, float *data, float *whole, size_t n, co_reduce_op op)
{
    const int rank = co_comm_rank(comm);
    const uint64_t start = co_comm_bytes_sent(comm);
    const size_t each = co_comm_slice_each(comm, n);
    uint64_t before;
    size_t at, own;

    slices_fill(whole, rank, n);
    slices_fill(data, rank, n);
    CHECK_OK(co_comm_allreduce(comm, whole, whole, n, CO_F32, op));
    before = co_comm_bytes_sent(comm);
    own = co_comm_slice(&at, n, each, co_comm_slice_index(comm, rank));
    CHECK_OK(slices_run(comm, CO_COLL_REDUCE_SLICES, data, n, op));
    CHECK(bits_are_same(data + at, whole + at, own * sizeof(*data)));
    for (size_t i = 0; i < n; i++)
        if (i < at || i >= at + own)
            data[i] = -1;
    CHECK_OK(slices_run(comm, CO_COLL_GATHER_SLICES, data, n, op));
    CHECK(bits_are_same(data, whole, n * sizeof(*data)));
    CHECK(co_comm_bytes_sent(comm) - before == before - start);
    return true;
}

static bool slices_have_bits_of_whole_sum(co_comm *comm)
{
    static const size_t counts[] = {0, 1, 1023, 1025, 4096, 70001, 300000, SLICES_MOST};
    const size_t bytes = SLICES_MOST * sizeof(float);
    float *whole = comm_blank(CO_F32, SLICES_MOST), *plain = comm_blank(CO_F32, SLICES_MOST);
    void *shared;

    CHECK_OK(co_comm_alloc(&shared, comm, bytes));
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        CHECK(slices_sum(comm, plain, whole, counts[i], CO_SUM));
        CHECK(slices_sum(comm, shared, whole, counts[i], CO_SUM));
        CHECK(slices_sum(comm, shared, whole, counts[i], CO_AVG));
    }
    co_comm_free(comm, shared, bytes);
    comm_free(whole);
    comm_free(plain);
    return true;
}

/* Several in flight, among other operations, and the memory written again at once. */
static bool slices_of_many_operations_arrive(co_comm *comm)
{
    enum { MANY = 12 };
    const size_t n = 50000;
    void *shared;
    float *data, one = 1;

    CHECK_OK(co_comm_alloc(&shared, comm, MANY * n * sizeof(float)));
    data = shared;
    for (int round = 0; round < 3; round++) {
        co_request *request[MANY];

        for (int i = 0; i < MANY; i++) {
            co_coll_args args = {.coll = i % 3 ? CO_COLL_REDUCE_SLICES : CO_COLL_GATHER_SLICES,
                                 .in = data + (size_t)i * n,
                                 .out = data + (size_t)i * n,
                                 .count = n,
                                 .each = co_comm_slice_each(comm, n),
                                 .dtype = CO_F32,
                                 .op = CO_SUM};

            for (size_t e = 0; e < n; e++)
                data[(size_t)i * n + e] = (float)(co_comm_rank(comm) + i + round);
            CHECK_OK(co_comm_enqueue(&request[i], comm, &args));
        }
        CHECK_OK(co_comm_allreduce(comm, &one, &one, 1, CO_F32, CO_MAX));
        for (int i = 0; i < MANY; i++) {
            const int size = co_comm_size(comm);
            const int all = size * (size - 1) / 2, want = all + size * (i + round);
            size_t at, own;

            CHECK_OK(co_request_wait(request[i]));
            co_request_destroy(request[i]);
            own = co_comm_slice(&at, n, co_comm_slice_each(comm, n),
                                co_comm_slice_index(comm, co_comm_rank(comm)));
            for (size_t e = 0; i % 3 && e < own; e++)
                CHECK(data[(size_t)i * n + at + e] == (float)want);
            for (int p = 0; i % 3 == 0 && p < size; p++) {
                own = co_comm_slice(&at, n, co_comm_slice_each(comm, n),
                                    co_comm_slice_index(comm, p));
                for (size_t e = 0; e < own; e++)
                    CHECK(data[(size_t)i * n + at + e] == (float)(p + i + round));
            }
        }
    }
    co_comm_free(comm, shared, MANY * n * sizeof(float));
    return true;
}

/* The parts of this rank are any arrays: sums have to follow the tree, whatever is in them. */
static bool slices_of_tree(co_comm *comm, int leaves, size_t n)
{
    const int rank = co_comm_rank(comm);
    const void *part[CO_TREE_MAX_PARTS];
    float *whole = comm_blank(CO_F32, n), *data[CO_TREE_MAX_PARTS];
    co_coll_args args = {.coll = CO_COLL_TREE_SLICES, .dtype = CO_F32, .count = n, .in = part};
    size_t at, own;
    co_tree *tree;
    int parts;

    CHECK_OK(co_tree_create(&tree, leaves, co_comm_size(comm)));
    parts = co_tree_parts(tree, rank);
    for (int i = 0; i < parts; i++) {
        data[i] = comm_blank(CO_F32, n);
        slices_fill(data[i], 40 * rank + i, n);
        part[i] = data[i];
    }
    CHECK_OK(co_comm_tree_allreduce(comm, tree, whole, part, n, CO_F32));
    args.tree = tree;
    args.out = data[parts - 1];
    args.each = co_comm_slice_each(comm, n);
    CHECK_OK(co_comm_enqueue_run(comm, &args));
    own = co_comm_slice(&at, n, args.each, co_comm_slice_index(comm, rank));
    CHECK(bits_are_same(data[parts - 1] + at, whole + at, own * sizeof(float)));
    for (int i = 0; i < parts; i++)
        comm_free(data[i]);
    comm_free(whole);
    co_tree_destroy(tree);
    return true;
}

static bool slices_of_tree_have_bits_of_whole_sum(co_comm *comm)
{
    for (int leaves = co_comm_size(comm); leaves < 20; leaves += 5)
        CHECK(slices_of_tree(comm, leaves, 1 << 12) && slices_of_tree(comm, leaves, 150001));
    return true;
}

static bool slices_too_short_are_refused(co_comm *comm)
{
    float data[8] = {0};
    co_coll_args args = {.coll = CO_COLL_GATHER_SLICES,
                         .in = data,
                         .out = data,
                         .count = 8,
                         .each = 1,
                         .dtype = CO_F32};

    if (co_comm_size(comm) > 7)
        return true;
    CHECK(co_comm_enqueue_run(comm, &args) == CO_E_USAGE);
    args.each = 8;
    args.out = data + 1;
    CHECK(co_comm_enqueue_run(comm, &args) == CO_E_USAGE);
    return true;
}

const comm_case comm_cases_slices[] = {
    {"slices_have_bits_of_whole_sum", slices_have_bits_of_whole_sum, 1},
    {"slices_of_many_operations_arrive", slices_of_many_operations_arrive, 1},
    {"slices_of_tree_have_bits_of_whole_sum", slices_of_tree_have_bits_of_whole_sum, 1},
    {"slices_too_short_are_refused", slices_too_short_are_refused, 1},
    {NULL, NULL, 0},
};
