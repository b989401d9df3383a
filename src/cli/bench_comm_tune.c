/*
 * bench_comm_tune.c - times the all-reduce of a gradient in buckets of several sizes.
 *
 * Small buckets start early in the backward pass and leave little to wait for after it, but each
 * costs a latency. So the proposal is the smallest size that is nearly as fast as the fastest.
 * Sizes alternate within a round, so that other load on the machine affects them equally.
 *
 * Does not know what a transport does.
 */
#include "cli/bench_comm_tune.h"

#include <stdio.h>

#include "cli/cli.h"
#include "core/clock.h"
#include "core/mem.h"
#include "core/sort.h"
#include "strategy/bucket.h"

#define TUNE_MIN_MIB     0.125
#define TUNE_SIZES       14 /* doubling up to 1 GiB, the maximum of --max-bytes */
#define TUNE_ROUNDS      9
#define TUNE_MARGIN      1.1
#define TUNE_MAX_BUCKETS 32768 /* a bucket at the edge is a quarter of a full one */

typedef struct tune {
    co_comm *comm;
    float *data;
    size_t count;
    co_request *request[TUNE_MAX_BUCKETS];
    double seconds[TUNE_SIZES][TUNE_ROUNDS];
} tune;

static double tune_mib(int size)
{
    return TUNE_MIN_MIB * (double)(1 << size);
}

/* Cuts and posts buckets as `sync` does, with no computing in between. */
static co_status tune_reduce(tune *t, double mib)
{
    const size_t full = co_bucket_elements(mib);
    size_t n = 0, begin = 0;
    co_status st = CO_OK;

    while (st == CO_OK && begin < t->count) {
        const size_t end = co_bucket_end(begin, t->count, full);

        st = co_comm_iallreduce(&t->request[n], t->comm, t->data + begin, t->data + begin,
                                end - begin, CO_F32, CO_SUM);
        n += st == CO_OK;
        begin = end;
    }
    for (size_t i = 0; i < n; i++) {
        if (st == CO_OK)
            st = co_request_wait(t->request[i]);
        co_request_destroy(t->request[i]);
    }
    return st;
}

static co_status tune_time(double *seconds, tune *t, double mib)
{
    uint64_t start;

    for (size_t i = 0; i < t->count; i++)
        t->data[i] = 1;
    CO_TRY(co_comm_barrier(t->comm));
    start = co_clock_ns();
    CO_TRY(tune_reduce(t, mib));
    *seconds = co_clock_seconds(start, co_clock_ns());
    return CO_OK;
}

/* Per round the slowest rank counts; over rounds the median. */
static co_status tune_measure(tune *t, int sizes)
{
    for (int round = -1; round < TUNE_ROUNDS; round++) /* round -1 is a warm-up */
        for (int i = 0; i < sizes; i++)
            CO_TRY(tune_time(&t->seconds[i][round < 0 ? 0 : round], t, tune_mib(i)));
    CO_TRY(co_comm_allreduce(t->comm, t->seconds, t->seconds, TUNE_SIZES * TUNE_ROUNDS, CO_F64,
                             CO_MAX));
    for (int i = 0; i < sizes; i++)
        co_sort_doubles(t->seconds[i], TUNE_ROUNDS);
    return CO_OK;
}

static double tune_median(const tune *t, int size)
{
    return t->seconds[size][TUNE_ROUNDS / 2];
}

static int tune_choose(const tune *t, int sizes)
{
    double best = tune_median(t, 0);

    for (int i = 1; i < sizes; i++)
        best = tune_median(t, i) < best ? tune_median(t, i) : best;
    for (int i = 0; i < sizes; i++)
        if (tune_median(t, i) <= TUNE_MARGIN * best)
            return i;
    return sizes - 1;
}

static void tune_print(const tune *t, int sizes)
{
    const char *transport = co_comm_transport(t->comm);
    const int ranks = co_comm_size(t->comm), best = tune_choose(t, sizes);
    const double bytes = (double)(t->count * sizeof(float));

    for (int i = 0; i < sizes; i++)
        printf("{\"bench\": \"comm\", \"tune\": \"bucket_mib\", \"transport\": \"%s\", "
               "\"ranks\": %d, \"bytes\": %.0f, \"bucket_mib\": %g, \"buckets\": %zu, "
               "\"repeats\": %d, \"ms\": %.6g, \"ms_min\": %.6g, \"bandwidth_gb_per_s\": %.6g}\n",
               transport, ranks, bytes, tune_mib(i),
               co_bucket_count(t->count, co_bucket_elements(tune_mib(i))), TUNE_ROUNDS,
               tune_median(t, i) * 1e3, t->seconds[i][0] * 1e3, bytes / tune_median(t, i) * 1e-9);
    printf("{\"bench\": \"comm\", \"tune\": \"result\", \"transport\": \"%s\", \"ranks\": %d, "
           "\"bytes\": %.0f, \"bucket_mib\": %g, \"config\": \"strategy: {name: sync, "
           "bucket_mib: %g}\"}\n",
           transport, ranks, bytes, tune_mib(best), tune_mib(best));
}

co_status bench_comm_tune(co_comm *comm, float *data, size_t count)
{
    tune *t;
    int sizes = 1; /* the first is smaller than the data */
    co_status st;

    if (co_comm_size(comm) < 2)
        return co_fail(CO_E_USAGE,
                       "--tune: one rank reduces nothing; start two or more with -n or mpiexec");
    while (sizes < TUNE_SIZES && tune_mib(sizes) * (1 << 20) <= (double)(count * sizeof(float)))
        sizes++;
    t = co_calloc(1, sizeof(*t));
    if (!t)
        return CO_E_NOMEM;
    t->comm = comm;
    t->data = data;
    t->count = count;
    st = tune_measure(t, sizes);
    if (st == CO_OK && co_comm_rank(comm) == 0)
        tune_print(t, sizes);
    co_free(t);
    CO_TRY(st);
    return cli_flush_output();
}
