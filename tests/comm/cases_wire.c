/*
 * cases_wire.c - sums over hosts in half precision: their bits are those of a plain loop, and what
 * roundings lose is kept, once.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comm/cases.h"
#include "comm/mpi/levels.h"
#include "comm/queued.h"
#include "core/half.h"
#include "tensor/vector.h"

#define WIRE_MOST  ((size_t)280001) /* two pieces, the second not whole */
#define WIRE_RANKS 8

static float wire_value(int rank, size_t i)
{
    const float x = 1.0f / (float)(3 + rank * 1009 + (int)(i % 5003) * 7);

    return (i + (size_t)rank) % 3 ? x : -x;
}

static int wire_number(const char *name, int otherwise)
{
    const char *text = getenv(name);

    return text ? atoi(text) : otherwise;
}

/* What element i has to be: ranks of a host are added up in order, then groups of hosts, each term
   rounded before it is added, and the last sum, too, but for that of two hosts. */
static float wire_reference(int ranks, size_t i, co_dtype dtype)
{
    const int each = wire_number("COHORT_RANKS_PER_HOST", 1);
    float term[WIRE_RANKS] = {0};
    int hosts = 0;
    co_levels levels;

    for (int rank = 0; rank < ranks; rank++) {
        term[rank / each] =
            rank % each ? term[rank / each] + wire_value(rank, i) : wire_value(rank, i);
        hosts = rank / each + 1;
    }
    co_levels_find(&levels, hosts, wire_number("COHORT_HOSTS_PER_LEVEL", 0));
    for (int k = 0, n = hosts; k < levels.n; n /= levels.factor[k++]) {
        co_half_nearest(term, term, (size_t)n, dtype);
        for (int t = 0; t < n; t++)
            term[t / levels.factor[k]] =
                t % levels.factor[k] ? term[t / levels.factor[k]] + term[t] : term[t];
    }
    if (hosts > 2)
        co_half_nearest(term, term, 1, dtype);
    return term[0];
}

static co_status wire_sum(co_comm *comm, float *out, const float *in, float *rest, size_t n,
                          co_dtype dtype)
{
    const co_wire wire = {.dtype = dtype, .vector = co_vector_host(), .rest = rest};

    return co_comm_enqueue_run(comm, &(co_coll_args){.coll = CO_COLL_ALLREDUCE,
                                                     .in = in,
                                                     .out = out,
                                                     .count = n,
                                                     .dtype = CO_F32,
                                                     .op = CO_SUM,
                                                     .wire = &wire});
}

/* Result and rests of all ranks are the sum of their inputs. */
static bool wire_nothing_is_lost(co_comm *comm, const float *out, const float *rest, size_t n)
{
    double *all = malloc((n + 1) * sizeof(*all));

    CHECK(all);
    for (size_t i = 0; i < n; i++)
        all[i] = (double)rest[i];
    CHECK_OK(co_comm_allreduce(comm, all, all, n, CO_F64, CO_SUM));
    for (size_t i = 0; i < n; i++) {
        double sum = 0;

        for (int rank = 0; rank < co_comm_size(comm); rank++)
            sum += (double)wire_value(rank, i);
        CHECK(fabs(sum - all[i] - (double)out[i]) < 1e-7);
    }
    free(all);
    return true;
}

/* `in`, `out`, `rest`: room for n elements. kept: 0: nowhere, 1: apart, 2: where the input was. */
static bool wire_sum_is_right(co_comm *comm, float *in, float *out, float *rest, size_t n,
                              co_dtype dtype, int kept)
{
    const int ranks = co_comm_size(comm);
    const uint64_t before = co_comm_bytes_sent(comm);

    for (size_t i = 0; i < n; i++) {
        in[i] = wire_value(co_comm_rank(comm), i);
        out[i] = rest[i] = -1;
    }
    CHECK_OK(wire_sum(comm, kept ? out : in, in,
                      kept == 0   ? NULL
                      : kept == 1 ? rest
                                  : in,
                      n, dtype));
    CHECK(co_comm_bytes_sent(comm) - before == n * sizeof(uint16_t));
    for (size_t i = 0; i < n; i++)
        CHECK((kept ? out : in)[i] == wire_reference(ranks, i, dtype));
    return kept == 0 || wire_nothing_is_lost(comm, out, kept == 1 ? rest : in, n);
}

static bool wire_sums_have_bits_of_plain_loop(co_comm *comm)
{
    static const size_t counts[] = {0, 1, 33, 5000, WIRE_MOST};
    float *in = comm_blank(CO_F32, WIRE_MOST), *out = comm_blank(CO_F32, WIRE_MOST),
          *rest = comm_blank(CO_F32, WIRE_MOST);

    for (size_t i = 0; co_comm_has_hosts(comm) && i < sizeof(counts) / sizeof(counts[0]); i++)
        for (int kept = 0; kept < 3; kept++) {
            CHECK(wire_sum_is_right(comm, in, out, rest, counts[i], CO_BF16, kept));
            CHECK(wire_sum_is_right(comm, in, out, rest, counts[i], CO_F16, kept));
        }
    comm_free(in);
    comm_free(out);
    comm_free(rest);
    return true;
}

/* What is too large for the type is kept, and what is not finite is not. */
static bool wire_values_too_large_are_kept(co_comm *comm)
{
    const int rank = co_comm_rank(comm);
    float in[3] = {0}, out[3], kept;

    if (!co_comm_has_hosts(comm))
        return true;
    in[0] = rank == 0 ? 100000.0f : 0;
    in[1] = rank == 0 ? INFINITY : 1;
    in[2] = rank == 0 ? NAN : 1;
    CHECK_OK(wire_sum(comm, out, in, in, 3, CO_F16));
    CHECK(out[0] == 65504.0f && isinf(out[1]) && isnan(out[2]));
    CHECK(in[1] == 0 && in[2] == 0);
    CHECK_OK(co_comm_allreduce(comm, &kept, in, 1, CO_F32, CO_SUM));
    CHECK(kept == 100000.0f - 65504.0f);
    return true;
}

static bool wire_of_other_operations_is_refused(co_comm *comm)
{
    const co_wire wire = {.dtype = CO_BF16, .vector = co_vector_host()};
    float in[2] = {0}, out[2];
    co_coll_args args = {.coll = CO_COLL_ALLREDUCE,
                         .in = in,
                         .out = out,
                         .count = 2,
                         .dtype = CO_F32,
                         .op = CO_MAX,
                         .wire = &wire};

    CHECK(co_comm_enqueue_run(comm, &args) == CO_E_USAGE);
    args.op = CO_SUM;
    args.dtype = CO_I32;
    CHECK(co_comm_enqueue_run(comm, &args) == CO_E_USAGE);
    args.dtype = CO_F32;
    CHECK(co_comm_enqueue_run(comm, &args) == (co_comm_has_hosts(comm) ? CO_OK : CO_E_USAGE));
    return true;
}

/* Ranks that do not round alike are found. */
static bool wire_of_two_types_is_a_mismatch(co_comm *comm)
{
    const bool last = co_comm_rank(comm) == co_comm_size(comm) - 1;
    float x[4] = {0};
    co_comm *part;

    if (!co_comm_has_hosts(comm))
        return true;
    CHECK_OK(co_comm_split(&part, comm, 0, 0));
    CHECK(wire_sum(part, x, x, NULL, 4, last ? CO_F16 : CO_BF16) == CO_E_MISMATCH);
    co_comm_destroy(part);
    CHECK_OK(co_comm_barrier(comm));
    return true;
}

const comm_case comm_cases_wire[] = {
    {"wire_sums_have_bits_of_plain_loop", wire_sums_have_bits_of_plain_loop, 1},
    {"wire_values_too_large_are_kept", wire_values_too_large_are_kept, 1},
    {"wire_of_other_operations_is_refused", wire_of_other_operations_is_refused, 1},
    {"wire_of_two_types_is_a_mismatch", wire_of_two_types_is_a_mismatch, 2},
    {NULL, NULL, 0},
};
