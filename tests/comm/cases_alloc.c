/* cases_alloc.c - all-reduces on memory that ranks can or cannot access directly. */
#include <stdint.h>
#include <string.h>

#include "comm/cases.h"

#define ALLOC_MOST ((size_t)200000) /* several chunks */

/* One buffer of an operation: the rank's own memory or the transport's. */
typedef struct alloc_side {
    float *data;
    bool heap;
} alloc_side;

static bool alloc_open(alloc_side *side, co_comm *comm, bool heap)
{
    void *data = NULL;

    *side = (alloc_side){.heap = heap};
    if (heap)
        data = comm_blank(CO_F32, ALLOC_MOST);
    else
        CHECK_OK(co_comm_alloc(&data, comm, ALLOC_MOST * sizeof(float)));
    side->data = data;
    return data != NULL;
}

static void alloc_close(alloc_side *side, co_comm *comm)
{
    if (side->heap)
        comm_free(side->data);
    else
        co_comm_free(comm, side->data, ALLOC_MOST * sizeof(float));
}

/* Sums of these round, so their bits depend on the order. */
static float alloc_value(int rank, size_t i, int round)
{
    return (float)(1 + (i * 7919 + (size_t)rank * 104729 + (size_t)round * 31) % 1000003) / 3;
}

static float alloc_sum(int ranks, size_t i, int round)
{
    float sum = alloc_value(0, i, round);

    for (int p = 1; p < ranks; p++)
        sum += alloc_value(p, i, round);
    return sum;
}

static bool alloc_sum_once(co_comm *comm, const alloc_side *in, const alloc_side *out, size_t n,
                           int round)
{
    const int rank = co_comm_rank(comm), ranks = co_comm_size(comm);
    const bool exact = strcmp(co_comm_transport(comm), "mpi") != 0;

    CHECK(in->data && out->data);
    for (size_t i = 0; i < n; i++)
        in->data[i] = alloc_value(rank, i, round);
    CHECK_OK(co_comm_allreduce(comm, out->data, in->data, n, CO_F32, CO_SUM));
    for (size_t i = 0; i < n; i++) {
        const float sum = alloc_sum(ranks, i, round), off = out->data[i] - sum;

        CHECK(exact ? off == 0 : (off < 0 ? -off : off) <= 1e-5f * sum);
        CHECK(in == out || in->data[i] == alloc_value(rank, i, round));
    }
    return true;
}

static const size_t alloc_sizes[] = {1, 96, 128, 300, 1024, 1025, 5000, 65536, ALLOC_MOST};

/* `mixed`: bits by rank, so that ranks of one operation use different kinds of memory. */
static bool alloc_all_sizes(co_comm *comm, unsigned mixed)
{
    const unsigned mine = mixed >> (2 * (co_comm_rank(comm) % 4));
    alloc_side in, out;
    int round = 0;

    CHECK(alloc_open(&in, comm, mine & 1));
    CHECK(alloc_open(&out, comm, mine & 2));
    for (size_t k = 0; k < sizeof(alloc_sizes) / sizeof(alloc_sizes[0]); k++) {
        CHECK(alloc_sum_once(comm, &in, &out, alloc_sizes[k], round++));
        CHECK(alloc_sum_once(comm, &in, &in, alloc_sizes[k], round++));
        CHECK(alloc_sum_once(comm, &out, &out, alloc_sizes[k], round++));
    }
    alloc_close(&out, comm);
    alloc_close(&in, comm);
    return true;
}

static bool alloc_on_every_rank_sums_exactly(co_comm *comm)
{
    return alloc_all_sizes(comm, 0);
}

static bool alloc_on_some_ranks_sums_exactly(co_comm *comm)
{
    /* 01 10 11 00, and with the sides swapped */
    return alloc_all_sizes(comm, 0x1b) && alloc_all_sizes(comm, 0x27) && alloc_all_sizes(comm, 3);
}

/* In a split communicator, on part of a buffer, with other reductions. */
static bool alloc_of_group_sums_exactly(co_comm *comm)
{
    const int rank = co_comm_rank(comm);
    co_comm *part;
    float *data;
    void *base;

    CHECK_OK(co_comm_alloc(&base, comm, 3000 * sizeof(float)));
    data = base;
    for (size_t i = 0; i < 3000; i++)
        CHECK(data[i] == 0);
    CHECK((uintptr_t)base % 64 == 0);
    CHECK_OK(co_comm_split(&part, comm, rank % 2, -rank));
    for (size_t i = 0; i < 3000; i++)
        data[i] = (float)rank;
    CHECK_OK(co_comm_allreduce(part, data + 17, data + 17, 2900, CO_F32, CO_AVG));
    for (size_t i = 0; i < 3000; i++) {
        /* ranks r, r + 2, ... of one parity */
        const float mean = (float)(rank % 2) + (float)(co_comm_size(part) - 1);

        CHECK(data[i] == (i < 17 || i >= 2917 ? (float)rank : mean));
    }
    co_comm_destroy(part);
    co_comm_free(comm, base, 3000 * sizeof(float));
    co_comm_free(comm, NULL, 5);
    CHECK(co_comm_alloc(&base, NULL, 8) == CO_E_USAGE);
    CHECK(co_comm_alloc(&base, comm, SIZE_MAX) == CO_E_USAGE && !base);
    CHECK(strstr(co_error_message(), "18446744073709551615 bytes are more than memory can hold"));
    return true;
}

/* 256 + 1 + 1 is 258 in BF16, but 256 when each sum is rounded. */
static bool alloc_bf16_sum_is_rounded_once(co_comm *comm)
{
    const bool counts = co_comm_rank(comm) < 3;
    co_comm *part;
    void *base;

    CHECK_OK(co_comm_alloc(&base, comm, 4096 * sizeof(uint16_t)));
    CHECK_OK(co_comm_split(&part, comm, counts ? 0 : -1, 0));
    for (size_t n = 1; counts && n <= 4096; n *= 64) {
        uint16_t *data = base;

        for (size_t i = 0; i < n; i++)
            data[i] = co_comm_rank(comm) == 0 ? 0x4380 : 0x3f80;
        CHECK_OK(co_comm_allreduce(part, data, data, n, CO_BF16, CO_SUM));
        for (size_t i = 0; i < n && strcmp(co_comm_transport(comm), "mpi") != 0; i++)
            CHECK(data[i] == 0x4381);
    }
    co_comm_destroy(part);
    co_comm_free(comm, base, 4096 * sizeof(uint16_t));
    return true;
}

/* Freed memory is reused: the total exceeds what one window has room for. */
static bool alloc_freed_memory_is_reused(co_comm *comm)
{
    for (int i = 0; i < 200; i++) {
        void *data;

        CHECK_OK(co_comm_alloc(&data, comm, ALLOC_MOST));
        CHECK(((unsigned char *)data)[ALLOC_MOST - 1] == 0);
        memset(data, 255, ALLOC_MOST);
        co_comm_free(comm, data, ALLOC_MOST);
    }
    return true;
}

const comm_case comm_cases_alloc[] = {
    {"alloc_on_every_rank_sums_exactly", alloc_on_every_rank_sums_exactly, 1},
    {"alloc_on_some_ranks_sums_exactly", alloc_on_some_ranks_sums_exactly, 1},
    {"alloc_of_group_sums_exactly", alloc_of_group_sums_exactly, 1},
    {"alloc_bf16_sum_is_rounded_once", alloc_bf16_sum_is_rounded_once, 3},
    {"alloc_freed_memory_is_reused", alloc_freed_memory_is_reused, 1},
    {NULL, NULL, 0},
};
