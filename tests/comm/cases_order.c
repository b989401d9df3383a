/* cases_order.c - concurrent operations, messages, groups, long random sequences. */
#include <stdlib.h>
#include <string.h>

#include "comm/cases.h"
#include "core/clock.h"

#define ORDER_FLIGHT 16

/* ---- concurrent collectives ---- */

static bool order_wait(co_request **requests, int n, bool backwards)
{
    for (int i = 0; i < n; i++) {
        co_request *request = requests[backwards ? n - 1 - i : i];

        CHECK_OK(co_request_wait(request));
    }
    for (int i = 0; i < n; i++) {
        bool done = false;

        CHECK_OK(co_request_test(&done, requests[i]));
        CHECK(done);
        co_request_destroy(requests[i]);
    }
    return true;
}

/* Many all-reduces of uneven sizes at once, like buckets of a gradient. */
static bool allreduces_posted_at_once_finish(co_comm *comm)
{
    const int rank = co_comm_rank(comm), size = co_comm_size(comm);

    for (int round = 0; round < 3; round++) {
        co_request *requests[ORDER_FLIGHT];
        void *data[ORDER_FLIGHT];

        for (int i = 0; i < ORDER_FLIGHT; i++) {
            const size_t count = (size_t)i * 7919 % 60000;

            data[i] = comm_data(CO_F32, rank, (size_t)i, count);
            CHECK_OK(
                co_comm_iallreduce(&requests[i], comm, data[i], data[i], count, CO_F32, CO_SUM));
            if (i % 3 == rank % 3)
                CHECK_OK(co_comm_progress(comm));
        }
        CHECK(order_wait(requests, ORDER_FLIGHT, round % 2));
        for (int i = 0; i < ORDER_FLIGHT; i++) {
            const size_t count = (size_t)i * 7919 % 60000;

            CHECK(comm_is_combined(data[i], CO_F32, CO_SUM, size, (size_t)i, count));
            comm_free(data[i]);
        }
    }
    return true;
}

/* All kinds at once, with messages in between. */
static bool collectives_and_messages_mixed_finish(co_comm *comm)
{
    const int rank = co_comm_rank(comm), size = co_comm_size(comm);
    const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    const size_t n = 3001, total = n * (size_t)size;
    int32_t *in = comm_data(CO_I32, rank, 0, total), *sum = comm_blank(CO_I32, n);
    int32_t *all = comm_blank(CO_I32, total), *from = comm_blank(CO_I32, total);
    int32_t *part = comm_blank(CO_I32, n), *block = comm_blank(CO_I32, n);
    int32_t *given = rank == 0 ? comm_data(CO_I32, 0, 0, n) : comm_blank(CO_I32, n);
    co_request *requests[8];
    bool done = false;

    CHECK_OK(co_comm_irecv(&requests[0], comm, from, total, CO_I32, previous));
    CHECK_OK(co_comm_iallreduce(&requests[1], comm, sum, in, n, CO_I32, CO_MAX));
    CHECK_OK(co_comm_iallgather(&requests[2], comm, all, in, n, CO_I32));
    CHECK_OK(co_comm_isend(&requests[3], comm, in, total, CO_I32, next));
    CHECK_OK(co_comm_ireduce_scatter(&requests[4], comm, part, in, n, CO_I32, CO_SUM));
    CHECK_OK(co_comm_ibcast(&requests[5], comm, given, n, CO_I32, 0));
    CHECK_OK(co_comm_ibarrier(&requests[6], comm));
    CHECK_OK(co_comm_iscatter(&requests[7], comm, block, in, n, CO_I32, size - 1));
    while (!done)
        CHECK_OK(co_request_test(&done, requests[7]));
    CHECK(order_wait(requests, 8, true));
    CHECK(comm_is_data(from, CO_I32, previous, 0, total));
    CHECK(comm_is_combined(sum, CO_I32, CO_MAX, size, 0, n));
    CHECK(comm_is_combined(part, CO_I32, CO_SUM, size, (size_t)rank * n, n));
    CHECK(comm_is_data(given, CO_I32, 0, 0, n));
    CHECK(comm_is_data(block, CO_I32, size - 1, (size_t)rank * n, n));
    for (int p = 0; p < size; p++)
        CHECK(comm_is_data(all + (size_t)p * n, CO_I32, p, 0, n));
    comm_free(in), comm_free(sum), comm_free(all), comm_free(from);
    comm_free(part), comm_free(block), comm_free(given);
    return true;
}

/* No rank leaves before the last has arrived. */
static bool barrier_waits_for_last_rank(co_comm *comm)
{
    const int rank = co_comm_rank(comm), size = co_comm_size(comm);

    for (int late = 0; late < size; late++) {
        int64_t come, gone, last, first;

        if (rank == late)
            co_clock_sleep_us(2000);
        come = (int64_t)co_clock_ns();
        CHECK_OK(co_comm_barrier(comm));
        gone = (int64_t)co_clock_ns();
        CHECK_OK(co_comm_allreduce(comm, &last, &come, 1, CO_I64, CO_MAX));
        CHECK_OK(co_comm_allreduce(comm, &first, &gone, 1, CO_I64, CO_MIN));
        CHECK(last <= first);
    }
    return true;
}

/* ---- messages ---- */

static bool order_exchange(co_comm *comm, size_t count, int peer)
{
    const int rank = co_comm_rank(comm);
    void *out = comm_blank(CO_U8, count), *in = comm_data(CO_U8, rank, count, count);
    co_request *requests[2];

    CHECK_OK(co_comm_isend(&requests[0], comm, in, count, CO_U8, peer));
    CHECK_OK(co_comm_irecv(&requests[1], comm, out, count, CO_U8, peer));
    CHECK(order_wait(requests, 2, count % 2));
    CHECK(comm_is_data(out, CO_U8, peer, count, count));
    comm_free(in);
    comm_free(out);
    return true;
}

/* Every pair in both directions at once, and each rank with itself. */
static bool messages_of_all_pairs_arrive(co_comm *comm)
{
    static const size_t counts[] = {
        0, 1, 100, 4095, 65536 - 16, 65536, 1048575, (1 << 20) - 16, 1 << 20, (2 << 20) + 3};
    const int rank = co_comm_rank(comm), size = co_comm_size(comm);

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        for (int sum = 0; sum < size; sum++)
            CHECK(order_exchange(comm, counts[i], (sum - rank + size) % size));
    return true;
}

static bool messages_blocking_arrive(co_comm *comm)
{
    const int rank = co_comm_rank(comm), size = co_comm_size(comm);
    double holder[2] = {0, 0};

    for (int i = 0; i < 300; i++) { /* around the ring of ranks */
        if (rank == i % size && i > 0 && size > 1) {
            CHECK_OK(co_comm_recv(comm, holder, 2, CO_F64, (i - 1) % size));
            CHECK(holder[0] == i - 1 && holder[1] == 1 - i);
        }
        holder[0] = i;
        holder[1] = -i;
        if (rank == i % size && size > 1 && i < 299)
            CHECK_OK(co_comm_send(comm, holder, 2, CO_F64, (i + 1) % size));
    }
    CHECK_OK(co_comm_send(comm, holder, 2, CO_F64, rank));
    CHECK_OK(co_comm_recv(comm, holder, 2, CO_F64, rank));
    return true;
}

/* Messages of one pair stay in order, however many are in flight. */
static bool messages_of_pair_stay_in_order(co_comm *comm)
{
    enum { MESSAGES = 200 };
    const int rank = co_comm_rank(comm), size = co_comm_size(comm);
    co_request *requests[2 * MESSAGES];
    int32_t *in = comm_blank(CO_I32, MESSAGES), *out = comm_blank(CO_I32, MESSAGES);

    for (int i = 0; i < MESSAGES; i++) {
        in[i] = rank * 1000 + i;
        CHECK_OK(co_comm_isend(&requests[i], comm, &in[i], 1, CO_I32, (rank + 1) % size));
    }
    for (int i = 0; i < MESSAGES; i++)
        CHECK_OK(co_comm_irecv(&requests[MESSAGES + i], comm, &out[i], 1, CO_I32,
                               (rank + size - 1) % size));
    CHECK(order_wait(requests, 2 * MESSAGES, true));
    for (int i = 0; i < MESSAGES; i++)
        CHECK(out[i] == (rank + size - 1) % size * 1000 + i);
    comm_free(in);
    comm_free(out);
    return true;
}

/* ---- groups ---- */

static bool split_halves_work_independently(co_comm *comm)
{
    const int rank = co_comm_rank(comm), size = co_comm_size(comm);
    int32_t one = 1, n = 0, mine = rank, sum = 0;
    co_comm *half, *inner, *none;

    CHECK_OK(co_comm_split(&half, comm, rank % 2, -rank)); /* the highest rank becomes rank 0 */
    CHECK(co_comm_size(half) == (size + 1 - rank % 2) / 2);
    CHECK(co_comm_rank(half) == co_comm_size(half) - 1 - rank / 2);
    CHECK_OK(co_comm_allreduce(half, &n, &one, 1, CO_I32, CO_SUM));
    CHECK(n == co_comm_size(half));
    CHECK_OK(co_comm_allreduce(comm, &sum, &mine, 1, CO_I32, CO_SUM));
    CHECK(sum == size * (size - 1) / 2);
    CHECK_OK(co_comm_bcast(half, &mine, 1, CO_I32, 0));
    CHECK(mine == (size - 1) - (size - 1 - rank) % 2);
    CHECK_OK(co_comm_split(&inner, half, 0, 0));
    CHECK(co_comm_rank(inner) == co_comm_rank(half));
    CHECK(allreduces_posted_at_once_finish(inner));
    CHECK(messages_of_all_pairs_arrive(inner));
    co_comm_destroy(inner);
    co_comm_destroy(half);
    CHECK_OK(co_comm_split(&none, comm, rank == 0 ? -1 : 5, 0));
    CHECK((none == NULL) == (rank == 0));
    if (none)
        CHECK_OK(co_comm_barrier(none));
    co_comm_destroy(none);
    return true;
}

static bool split_repeated_succeeds(co_comm *comm)
{
    for (int i = 0; i < 80; i++) {
        co_comm *part;
        float x = 1;

        CHECK_OK(co_comm_split(&part, comm, co_comm_rank(comm) / 2, 0));
        for (int k = 0; k < 6; k++)
            CHECK_OK(co_comm_allreduce(part, &x, &x, 1, CO_F32, CO_AVG));
        CHECK(x == 1);
        co_comm_destroy(part);
    }
    return true;
}

/* Shared memory supports a limited number of groups; beyond it every rank gets a clear error and
   can go on. */
static bool split_beyond_limit_is_an_error(co_comm *comm)
{
    co_comm *parts[64] = {NULL};
    int n = 0;
    co_status st = CO_OK;

    while (n < 64 && st == CO_OK) {
        st = co_comm_split(&parts[n], comm, 0, 0);
        n += st == CO_OK;
    }
    if (strcmp(co_comm_transport(comm), "shm") == 0) {
        CHECK(n < 64 && st == CO_E_USAGE);
        CHECK(strstr(co_error_message(), "destroy some first"));
    }
    for (int i = 0; i < n; i++)
        co_comm_destroy(parts[i]);
    CHECK_OK(co_comm_barrier(comm)); /* all have destroyed theirs */
    CHECK_OK(co_comm_split(&parts[0], comm, 0, 0));
    co_comm_destroy(parts[0]);
    return true;
}

/* ---- random sequences ---- */

static uint32_t order_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static bool order_random_one(co_comm *comm, uint32_t *state)
{
    static const size_t limits[] = {4, 300, 9000, 70000};
    const int rank = co_comm_rank(comm), size = co_comm_size(comm);
    const co_dtype dtype = (co_dtype)(order_random(state) % CO_DTYPE_COUNT);
    const co_reduce_op op = (co_reduce_op)(order_random(state) % CO_REDUCE_OP_COUNT);
    const int root = (int)(order_random(state) % (uint32_t)size);
    const size_t count = order_random(state) % limits[order_random(state) % 4];
    const unsigned kind = order_random(state) % 5;
    void *in = comm_data(dtype, rank, 0, count), *out = comm_blank(dtype, count);
    co_request *request;

    if (kind == 0) {
        CHECK_OK(co_comm_ireduce(&request, comm, out, in, count, dtype, op, root));
        CHECK(order_wait(&request, 1, false));
        CHECK(rank != root || comm_is_combined(out, dtype, op, size, 0, count));
    } else if (kind == 1) {
        CHECK_OK(co_comm_bcast(comm, in, count, dtype, root));
        CHECK(comm_is_data(in, dtype, root, 0, count));
    } else if (kind == 2) {
        CHECK(order_exchange(comm, count, (root - rank + size) % size));
    } else if (kind == 3) {
        CHECK_OK(co_comm_barrier(comm));
    } else {
        CHECK_OK(co_comm_allreduce(comm, out, in, count, dtype, op));
        CHECK(comm_is_combined(out, dtype, op, size, 0, count));
    }
    comm_free(in);
    comm_free(out);
    return true;
}

static bool collectives_in_random_order_equal_oracle(co_comm *comm)
{
    uint32_t state = 2024;

    for (int i = 0; i < 250; i++)
        CHECK(order_random_one(comm, &state));
    return true;
}

const comm_case comm_cases_order[] = {
    {"allreduces_posted_at_once_finish", allreduces_posted_at_once_finish, 1},
    {"collectives_and_messages_mixed_finish", collectives_and_messages_mixed_finish, 1},
    {"barrier_waits_for_last_rank", barrier_waits_for_last_rank, 1},
    {"messages_of_all_pairs_arrive", messages_of_all_pairs_arrive, 1},
    {"messages_blocking_arrive", messages_blocking_arrive, 1},
    {"messages_of_pair_stay_in_order", messages_of_pair_stay_in_order, 1},
    {"split_halves_work_independently", split_halves_work_independently, 2},
    {"split_repeated_succeeds", split_repeated_succeeds, 1},
    {"split_beyond_limit_is_an_error", split_beyond_limit_is_an_error, 1},
    {"collectives_in_random_order_equal_oracle", collectives_in_random_order_equal_oracle, 1},
    {NULL, NULL, 0},
};
