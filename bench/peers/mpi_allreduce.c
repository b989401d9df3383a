/*
 * mpi_allreduce.c - MPI_Allreduce timed the way `cohort bench comm --op allreduce` times ours.
 *
 * The same sizes, repetitions, barrier before each, and the slowest rank's time; the message
 * written before and the result read behind each; the same fields on each line. Knows nothing of
 * Cohort.
 *
 *   mpicc -O2 mpi_allreduce.c -o mpi_allreduce
 *   mpiexec -n 2 --bind-to core ./mpi_allreduce [MIN_BYTES [MAX_BYTES [in-place]]]
 */
#define _POSIX_C_SOURCE 200809L

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_REPEATS 1000
#define WARMUP      3
#define BUDGET      ((size_t)256 << 20) /* bytes of all repetitions of one size */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static size_t repeats_of(size_t bytes)
{
    const size_t n = BUDGET / bytes;

    return n < 10 ? 10 : n > MAX_REPEATS ? MAX_REPEATS : n;
}

static void write_message(float *data, size_t count, size_t round)
{
    for (size_t i = 0; i < count; i++)
        data[i] = (float)(round % 8 + i % 8);
}

static float read_result(const float *data, size_t count)
{
    float most = 0;

    for (size_t i = 0; i < count; i++)
        most = data[i] > most ? data[i] : most;
    return most;
}

static void time_size(float *in, float *out, size_t count, int rank, int ranks)
{
    const int in_place = in == out;
    const size_t bytes = count * sizeof(float), repeats = repeats_of(bytes);
    double seconds[MAX_REPEATS], slowest[MAX_REPEATS], median;
    volatile float seen; /* so that reading is not left out */

    for (size_t i = 0; i < repeats + WARMUP; i++) {
        double start;

        write_message(in, count, i);
        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, (int)count, MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
        if (i >= WARMUP)
            seconds[i - WARMUP] = MPI_Wtime() - start;
        seen = read_result(out, count);
    }
    (void)seen;
    MPI_Reduce(seconds, slowest, (int)repeats, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank != 0)
        return;
    qsort(slowest, repeats, sizeof(slowest[0]), compare);
    median = slowest[repeats / 2];
    printf("{\"bench\": \"comm\", \"transport\": \"MPI\", \"ranks\": %d, \"op\": \"allreduce\", "
           "\"memory\": \"heap\", \"in_place\": %s, \"bytes\": %zu, \"repeats\": %zu, "
           "\"latency_us\": %.6g, \"latency_us_min\": %.6g, "
           "\"bandwidth_gb_per_s\": %.6g}\n",
           ranks, in_place ? "true" : "false", bytes, repeats, median * 1e6, slowest[0] * 1e6,
           median > 0 ? (double)bytes / median * 1e-9 : 0.0);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    size_t least = 1024, most = (size_t)32 << 20;
    int rank, ranks;
    float *in, *out;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc > 1)
        least = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        most = strtoull(argv[2], NULL, 10);
    in = malloc(most);
    out = malloc(most);
    if (!in || !out || least < sizeof(float) || most > (size_t)1 << 30) {
        fprintf(stderr, "mpi_allreduce: no memory, or sizes not within 4 bytes and 1 GiB\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
        return 1;
    }
    for (size_t i = 0; i < most / sizeof(float); i++)
        in[i] = out[i] = 1;
    for (size_t bytes = least; bytes <= most; bytes *= 2)
        time_size(in, argc > 3 ? in : out, bytes / sizeof(float), rank, ranks);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
