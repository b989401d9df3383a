/* cases_sum.c - floats are summed in a fixed order, however they are split into messages. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bits.h"
#include "comm/cases.h"
#include "comm/mpi/levels.h"

#define SUM_COUNT    1300001 /* more than one piece of any transport */
#define SUM_MESSAGES 16

/* Floats of many magnitudes, so that another order gives other bits. */
static float sum_value(int rank, size_t i)
{
    const uint32_t bits = ((uint32_t)i * 2654435761u + (uint32_t)rank * 40503u) * 2246822519u;

    return (float)(int32_t)bits * (1.0f / (float)(1u << (bits & 15)));
}

static float *sum_data(int rank)
{
    float *data = comm_blank(CO_F32, SUM_COUNT);

    for (size_t i = 0; i < SUM_COUNT; i++)
        data[i] = sum_value(rank, i);
    return data;
}

/* The end of message i. */
static size_t sum_end(int i)
{
    static const size_t end[SUM_MESSAGES] = {1,      2,      33,     64,       96,    1000,
                                             1001,   5000,   70001,  70002,    70003, 300000,
                                             600001, 600033, 700000, SUM_COUNT};

    return end[i];
}

/* One message, in place, and several concurrent messages give the same bits. */
static bool sum_in_pieces_has_same_bits(co_comm *comm)
{
    float *in = sum_data(co_comm_rank(comm)), *out = comm_blank(CO_F32, SUM_COUNT);
    co_request *request[SUM_MESSAGES];
    size_t begin = 0;

    CHECK_OK(co_comm_allreduce(comm, out, in, SUM_COUNT, CO_F32, CO_SUM));
    for (int i = 0; i < SUM_MESSAGES; begin = sum_end(i++))
        CHECK_OK(co_comm_iallreduce(&request[i], comm, in + begin, in + begin, sum_end(i) - begin,
                                    CO_F32, CO_SUM));
    for (int i = SUM_MESSAGES - 1; i >= 0; i--) {
        CHECK_OK(co_request_wait(request[i]));
        co_request_destroy(request[i]);
    }
    CHECK(bits_are_same(in, out, SUM_COUNT * sizeof(float)));
    comm_free(in);
    comm_free(out);
    return true;
}

static int sum_from_environment(const char *name, int otherwise)
{
    const char *text = getenv(name);

    return text ? atoi(text) : otherwise;
}

static int sum_ranks_per_host(void)
{
    return sum_from_environment("COHORT_RANKS_PER_HOST", 1);
}

/* Element i, summed within a host in rank order. */
static float sum_of_host(int host, int each, int size, size_t i)
{
    float sum = sum_value(host * each, i);

    for (int rank = host * each + 1; rank < (host + 1) * each && rank < size; rank++)
        sum += sum_value(rank, i);
    return sum;
}

/* Element i, summed within hosts, over the hosts of each group of neighbours, over these groups. */
static float sum_expected(int size, int each, const co_levels *levels, size_t i)
{
    const int hosts = (size + each - 1) / each;
    float value[64] = {0};
    int n = hosts;

    for (int host = 0; host < hosts; host++)
        value[host] = sum_of_host(host, each, size, i);
    for (int k = 0; k < levels->n; k++) {
        const int factor = levels->factor[k];

        n /= factor;
        for (int group = 0; group < n; group++) {
            float sum = value[group * factor];

            for (int host = 1; host < factor; host++)
                sum += value[group * factor + host];
            value[group] = sum;
        }
    }
    return value[0];
}

/* `comm` has all ranks of `world`, in any order. */
static bool sum_in_order(co_comm *comm, co_comm *world)
{
    const int each = sum_ranks_per_host(), size = co_comm_size(world);
    float *data = sum_data(co_comm_rank(world));
    co_levels levels;

    co_levels_find(&levels, (size + each - 1) / each,
                   sum_from_environment("COHORT_HOSTS_PER_LEVEL", 0));
    CHECK_OK(co_comm_allreduce(comm, data, data, SUM_COUNT, CO_F32, CO_SUM));
    for (size_t i = 0; i < SUM_COUNT; i += 7)
        CHECK(data[i] == sum_expected(size, each, &levels, i));
    comm_free(data);
    return true;
}

static bool sum_order_is_that_of_ranks(co_comm *comm)
{
    return comm_shares_memory(comm) || sum_in_order(comm, comm);
}

/* First ranks of hosts are ordered as the hosts, the other ranks in reverse: every rank must order
   hosts by their first ranks. */
static bool sum_order_follows_first_ranks_of_hosts(co_comm *comm)
{
    const int rank = co_comm_rank(comm), local = rank % sum_ranks_per_host();
    const int key = local == 0 ? rank : 2 * local * co_comm_size(comm) - rank;
    co_comm *turned;
    bool good;

    if (comm_shares_memory(comm))
        return true;
    CHECK_OK(co_comm_split(&turned, comm, 0, key));
    good = sum_in_order(turned, comm);
    co_comm_destroy(turned);
    return good;
}

/* Other operations between all-reduces. */
static bool sum_between_other_collectives_is_exact(co_comm *comm)
{
    const int rank = co_comm_rank(comm), size = co_comm_size(comm);
    float *a = sum_data(rank), *b = sum_data(rank), *want = sum_data(rank);
    co_request *request[3];

    CHECK_OK(co_comm_allreduce(comm, want, want, SUM_COUNT, CO_F32, CO_AVG));
    CHECK_OK(co_comm_iallreduce(&request[0], comm, a, a, SUM_COUNT, CO_F32, CO_AVG));
    CHECK_OK(co_comm_ibcast(&request[1], comm, a, SUM_COUNT, CO_F32, size - 1));
    CHECK_OK(co_comm_iallreduce(&request[2], comm, b, b, SUM_COUNT, CO_F32, CO_AVG));
    for (int i = 2; i >= 0; i--) {
        CHECK_OK(co_request_wait(request[i]));
        co_request_destroy(request[i]);
    }
    CHECK(bits_are_same(a, want, SUM_COUNT * sizeof(float)));
    CHECK(bits_are_same(b, want, SUM_COUNT * sizeof(float)));
    comm_free(a);
    comm_free(b);
    comm_free(want);
    return true;
}

/* The new communicator orders the hosts differently from the world. */
static bool sum_after_split_has_order_of_comm(co_comm *comm)
{
    const int rank = co_comm_rank(comm), size = co_comm_size(comm);
    float *data = sum_data(rank), *want = sum_data(rank);
    co_comm *part;

    CHECK_OK(co_comm_split(&part, comm, 0, size - rank));
    CHECK_OK(co_comm_allreduce(part, data, data, SUM_COUNT, CO_F32, CO_MAX));
    CHECK_OK(co_comm_allreduce(comm, want, want, SUM_COUNT, CO_F32, CO_MAX));
    CHECK(bits_are_same(data, want, SUM_COUNT * sizeof(float)));
    co_comm_destroy(part);
    CHECK_OK(co_comm_split(&part, comm, rank % 3 == 1 ? -1 : rank % 3, 0));
    if (part)
        CHECK_OK(co_comm_allreduce(part, data, data, SUM_COUNT, CO_F32, CO_SUM));
    co_comm_destroy(part);
    comm_free(data);
    comm_free(want);
    return true;
}

/* More communicators than a host has room for are slower, but work. */
static bool sum_after_many_splits_is_exact(co_comm *comm)
{
    enum { MANY = 40 };
    co_comm *part[MANY];

    if (comm_shares_memory(comm))
        return true;
    for (int i = 0; i < MANY; i++) {
        float x = 1;

        CHECK_OK(co_comm_split(&part[i], comm, 0, 0));
        CHECK_OK(co_comm_allreduce(part[i], &x, &x, 1, CO_F32, CO_SUM));
        CHECK(x == (float)co_comm_size(comm));
    }
    for (int i = MANY - 1; i >= 0; i--)
        co_comm_destroy(part[i]);
    return true;
}

const comm_case comm_cases_sum[] = {
    {"sum_in_pieces_has_same_bits", sum_in_pieces_has_same_bits, 1},
    {"sum_order_is_that_of_ranks", sum_order_is_that_of_ranks, 1},
    {"sum_order_follows_first_ranks_of_hosts", sum_order_follows_first_ranks_of_hosts, 1},
    {"sum_between_other_collectives_is_exact", sum_between_other_collectives_is_exact, 1},
    {"sum_after_split_has_order_of_comm", sum_after_split_has_order_of_comm, 1},
    {"sum_after_many_splits_is_exact", sum_after_many_splits_is_exact, 1},
    {NULL, NULL, 0},
};
