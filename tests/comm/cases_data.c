/* cases_data.c - every collective, type, reduction and root, with counts around every limit. */
#include <stdlib.h>
#include <string.h>

#include "bits.h"
#include "comm/cases.h"

static const size_t data_counts[] = {0, 1, 17, 1025, 5003};

#define DATA_COUNTS (sizeof(data_counts) / sizeof(data_counts[0]))
/* More bytes than any slot, ring or piece, and no multiple of one. */
#define DATA_LARGE ((size_t)(2 << 20) + 3)

static bool data_allreduce(co_comm *comm, co_dtype dtype, co_reduce_op op, size_t count)
{
    const int rank = co_comm_rank(comm), size = co_comm_size(comm);
    void *in = comm_data(dtype, rank, 0, count), *out = comm_blank(dtype, count);

    CHECK_OK(co_comm_allreduce(comm, out, in, count, dtype, op));
    CHECK(comm_is_combined(out, dtype, op, size, 0, count));
    CHECK(comm_is_data(in, dtype, rank, 0, count));
    CHECK_OK(co_comm_allreduce(comm, in, in, count, dtype, op));
    CHECK(comm_is_combined(in, dtype, op, size, 0, count));
    comm_free(in);
    comm_free(out);
    return true;
}

static bool data_reduce(co_comm *comm, co_dtype dtype, co_reduce_op op, size_t count, int root)
{
    const int rank = co_comm_rank(comm), size = co_comm_size(comm);
    void *in = comm_data(dtype, rank, 0, count), *out = comm_blank(dtype, count);

    CHECK_OK(co_comm_reduce(comm, rank == root ? out : NULL, in, count, dtype, op, root));
    if (rank == root)
        CHECK(comm_is_combined(out, dtype, op, size, 0, count));
    else
        CHECK(comm_is_blank(out, dtype, count));
    CHECK(comm_is_data(in, dtype, rank, 0, count));
    CHECK_OK(co_comm_reduce(comm, in, in, count, dtype, op, root));
    if (rank == root)
        CHECK(comm_is_combined(in, dtype, op, size, 0, count));
    comm_free(in);
    comm_free(out);
    return true;
}

static bool data_reduce_scatter(co_comm *comm, co_dtype dtype, co_reduce_op op, size_t count)
{
    const int rank = co_comm_rank(comm), size = co_comm_size(comm);
    void *in = comm_data(dtype, rank, 0, count * (size_t)size), *out = comm_blank(dtype, count);

    CHECK_OK(co_comm_reduce_scatter(comm, out, in, count, dtype, op));
    CHECK(comm_is_combined(out, dtype, op, size, (size_t)rank * count, count));
    comm_free(in);
    comm_free(out);
    return true;
}

static bool reductions_of_any_type_equal_oracle(co_comm *comm)
{
    for (size_t i = 0; i < DATA_COUNTS; i++)
        for (int dtype = 0; dtype < CO_DTYPE_COUNT; dtype++)
            for (int op = 0; op < CO_REDUCE_OP_COUNT; op++) {
                const size_t count = data_counts[i];
                const int root = (dtype + op) % co_comm_size(comm);

                CHECK(data_allreduce(comm, (co_dtype)dtype, (co_reduce_op)op, count));
                CHECK(data_reduce(comm, (co_dtype)dtype, (co_reduce_op)op, count, root));
                CHECK(data_reduce_scatter(comm, (co_dtype)dtype, (co_reduce_op)op, count));
            }
    return true;
}

static bool data_bcast(co_comm *comm, co_dtype dtype, size_t count, int root)
{
    const bool here = co_comm_rank(comm) == root;
    void *data = here ? comm_data(dtype, root, 0, count) : comm_blank(dtype, count);

    CHECK_OK(co_comm_bcast(comm, data, count, dtype, root));
    CHECK(comm_is_data(data, dtype, root, 0, count));
    comm_free(data);
    return true;
}

static bool data_is_gathered(const co_comm *comm, const void *all, co_dtype dtype, size_t count)
{
    for (int p = 0; p < co_comm_size(comm); p++)
        CHECK(comm_is_data((const char *)all + (size_t)p * count * co_dtype_size(dtype), dtype, p,
                           0, count));
    return true;
}

static bool data_gathers(co_comm *comm, co_dtype dtype, size_t count, int root)
{
    const int rank = co_comm_rank(comm);
    const size_t total = count * (size_t)co_comm_size(comm);
    void *in = comm_data(dtype, rank, 0, count), *out = comm_blank(dtype, total);

    CHECK_OK(co_comm_allgather(comm, out, in, count, dtype));
    CHECK(data_is_gathered(comm, out, dtype, count));
    comm_free(out);
    out = comm_blank(dtype, total);
    CHECK_OK(co_comm_gather(comm, rank == root ? out : NULL, in, count, dtype, root));
    CHECK(rank == root ? data_is_gathered(comm, out, dtype, count)
                       : comm_is_blank(out, dtype, total));
    comm_free(in);
    comm_free(out);
    return true;
}

static bool data_scatter(co_comm *comm, co_dtype dtype, size_t count, int root)
{
    const int rank = co_comm_rank(comm);
    void *in = comm_data(dtype, root, 0, count * (size_t)co_comm_size(comm));
    void *out = comm_blank(dtype, count);

    CHECK_OK(co_comm_scatter(comm, out, rank == root ? in : NULL, count, dtype, root));
    CHECK(comm_is_data(out, dtype, root, (size_t)rank * count, count));
    comm_free(in);
    comm_free(out);
    return true;
}

static bool moves_of_any_size_equal_oracle(co_comm *comm)
{
    for (size_t i = 0; i < DATA_COUNTS; i++)
        for (int dtype = 0; dtype < CO_DTYPE_COUNT; dtype++)
            for (int root = 0; root < co_comm_size(comm); root++) {
                CHECK(data_bcast(comm, (co_dtype)dtype, data_counts[i], root));
                CHECK(data_gathers(comm, (co_dtype)dtype, data_counts[i], root));
                CHECK(data_scatter(comm, (co_dtype)dtype, data_counts[i], root));
            }
    return true;
}

static bool messages_larger_than_slot_arrive(co_comm *comm)
{
    const int last = co_comm_size(comm) - 1;

    CHECK(data_allreduce(comm, CO_U8, CO_SUM, DATA_LARGE));
    CHECK(data_allreduce(comm, CO_F32, CO_AVG, 1500001));
    CHECK(data_reduce(comm, CO_F32, CO_SUM, 700001, last));
    CHECK(data_reduce_scatter(comm, CO_U8, CO_MAX, DATA_LARGE));
    CHECK(data_bcast(comm, CO_U8, DATA_LARGE, last));
    CHECK(data_gathers(comm, CO_U8, DATA_LARGE, last));
    CHECK(data_scatter(comm, CO_U8, DATA_LARGE, last));
    return true;
}

static bool barrier_repeated_succeeds(co_comm *comm)
{
    CHECK_OK(co_comm_barrier(comm));
    CHECK_OK(co_comm_barrier(comm));
    return true;
}

/* Sums of these round, so their bits depend on the order of ranks. */
static float data_uneven(int rank, size_t i)
{
    return 1.0f / (float)(3 + rank * 1009 + (int)(i % 5000) * 7) - 0.001f;
}

static bool allreduce_gives_same_bits_on_all_ranks(co_comm *comm)
{
    const int rank = co_comm_rank(comm), size = co_comm_size(comm);
    const size_t count = 40001;
    const bool in_order = size <= 2 || strcmp(co_comm_transport(comm), "shm") == 0;
    float *in = comm_blank(CO_F32, count), *out = comm_blank(CO_F32, count);
    float *all = comm_blank(CO_F32, count * (size_t)size);

    for (size_t n = 7; n <= count; n = n < 1000 ? 1000 : n < count ? count : n + 1) {
        for (size_t i = 0; i < n; i++)
            in[i] = data_uneven(rank, i);
        CHECK_OK(co_comm_allreduce(comm, out, in, n, CO_F32, CO_SUM));
        for (size_t i = 0; in_order && i < n; i++) {
            float sum = data_uneven(0, i);

            for (int p = 1; p < size; p++)
                sum += data_uneven(p, i);
            CHECK(bits_are_same(&sum, &out[i], sizeof(sum)));
        }
        CHECK_OK(co_comm_allgather(comm, all, out, n, CO_F32));
        for (int p = 0; p < size; p++)
            CHECK(bits_are_same(all + (size_t)p * n, out, n * sizeof(*out)));
    }
    comm_free(in);
    comm_free(out);
    comm_free(all);
    return true;
}

static bool bytes_sent_equal_formula(co_comm *comm)
{
    const int rank = co_comm_rank(comm), size = co_comm_size(comm);
    const uint64_t before = co_comm_bytes_sent(comm);
    float in[40] = {0}, out[40];

    CHECK_OK(co_comm_allreduce(comm, out, in, 10, CO_F32, CO_SUM));
    CHECK(co_comm_bytes_sent(comm) - before == (size > 1 ? 40 : 0));
    CHECK_OK(co_comm_bcast(comm, out, 10, CO_F32, 0));
    CHECK(co_comm_bytes_sent(comm) - before == (size > 1 ? 40 + (rank == 0 ? 40 : 0) : 0));
    return true;
}

const comm_case comm_cases_data[] = {
    {"reductions_of_any_type_equal_oracle", reductions_of_any_type_equal_oracle, 1},
    {"moves_of_any_size_equal_oracle", moves_of_any_size_equal_oracle, 1},
    {"messages_larger_than_slot_arrive", messages_larger_than_slot_arrive, 1},
    {"barrier_repeated_succeeds", barrier_repeated_succeeds, 1},
    {"allreduce_gives_same_bits_on_all_ranks", allreduce_gives_same_bits_on_all_ranks, 1},
    {"bytes_sent_equal_formula", bytes_sent_equal_formula, 1},
    {NULL, NULL, 0},
};
