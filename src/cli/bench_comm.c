/*
 * bench_comm.c - `cohort bench comm`: times the operations between ranks.
 *
 * A repetition starts after a barrier and ends when the slowest rank is done, so a root that
 * returns early does not count as fast. As in a training step, each rank writes its message before
 * a repetition and reads the result after it; otherwise parts of them could already be in the
 * caches of other ranks.
 */
#include <string.h>

#include <cohort/comm.h>
#include <cohort/launch.h>

#include "cli/bench_comm_tune.h"
#include "cli/cli.h"
#include "comm/tree.h"
#include "core/clock.h"
#include "core/config.h"
#include "core/mem.h"
#include "core/sort.h"

#define BENCH_COMM_MAX_RANKS   1024
#define BENCH_COMM_MAX_REPEATS 1000
#define BENCH_COMM_WARMUP      3
/* Bytes moved for each size; there are 10 to BENCH_COMM_MAX_REPEATS repetitions. */
#define BENCH_COMM_BUDGET ((size_t)256 << 20)

typedef struct bench_comm_options {
    int64_t ranks, min_bytes, max_bytes, leaves;
    cli_list ops;
    bool heap, in_place, tune;
} bench_comm_options;

static const bench_comm_options bench_comm_defaults = {.min_bytes = 1 << 10, .max_bytes = 32 << 20};

static const cli_option bench_comm_option_table[] = {
    {"ranks", 'n', CLI_COUNT, offsetof(bench_comm_options, ranks), "N", 1, BENCH_COMM_MAX_RANKS,
     "ranks to start here; default: 1, or mpiexec's"},
    {"op", 0, CLI_LIST, offsetof(bench_comm_options, ops), "NAME", 0, 0,
     "time only this operation; repeatable"},
    {"min-bytes", 0, CLI_COUNT, offsetof(bench_comm_options, min_bytes), "BYTES", 4, 1 << 30,
     "smallest message; default: 1024"},
    {"max-bytes", 0, CLI_COUNT, offsetof(bench_comm_options, max_bytes), "BYTES", 4, 1 << 30,
     "largest message; sizes double; default: 33554432"},
    {"heap", 0, CLI_FLAG, offsetof(bench_comm_options, heap), NULL, 0, 0,
     "messages in each rank's own memory, not where other ranks can read them"},
    {"in-place", 0, CLI_FLAG, offsetof(bench_comm_options, in_place), NULL, 0, 0,
     "allreduce and reduce write their result over the message"},
    {"leaves", 0, CLI_COUNT, offsetof(bench_comm_options, leaves), "V", 1, 1024,
     "leaves of tree_allreduce, the shards of a batch; default: one per rank"},
    {"tune", 0, CLI_FLAG, offsetof(bench_comm_options, tune), NULL, 0, 0,
     "reduce --max-bytes in buckets of several sizes, and propose bucket_mib"},
    CLI_OPTIONS_END,
};

/* Buffers of the largest size. In operations on blocks, a rank's block is 1 / size of it. */
typedef struct bench_comm {
    co_comm *comm;
    float *in, *out;
    bool heap, in_place;
    co_tree *tree; /* NULL: not requested */
} bench_comm;

typedef co_status (*bench_comm_fn)(const bench_comm *b, size_t count);

static co_status bench_comm_allreduce(const bench_comm *b, size_t count)
{
    return co_comm_allreduce(b->comm, b->in_place ? b->in : b->out, b->in, count, CO_F32, CO_SUM);
}

/* All parts of a rank are the same; their values do not matter. */
static co_status bench_comm_tree_allreduce(const bench_comm *b, size_t count)
{
    const void *part[CO_TREE_MAX_PARTS];

    for (int i = 0; i < CO_TREE_MAX_PARTS; i++)
        part[i] = b->in;
    return co_comm_tree_allreduce(b->comm, b->tree, b->out, part, count, CO_F32);
}

static co_status bench_comm_reduce(const bench_comm *b, size_t count)
{
    return co_comm_reduce(b->comm, b->in_place ? b->in : b->out, b->in, count, CO_F32, CO_SUM, 0);
}

static co_status bench_comm_bcast(const bench_comm *b, size_t count)
{
    return co_comm_bcast(b->comm, b->in, count, CO_F32, 0);
}

/* In operations on blocks the message size counts the blocks of all ranks. */
static size_t bench_comm_block(const bench_comm *b, size_t count)
{
    return count / (size_t)co_comm_size(b->comm);
}

static co_status bench_comm_reduce_scatter(const bench_comm *b, size_t count)
{
    return co_comm_reduce_scatter(b->comm, b->out, b->in, bench_comm_block(b, count), CO_F32,
                                  CO_SUM);
}

static co_status bench_comm_allgather(const bench_comm *b, size_t count)
{
    return co_comm_allgather(b->comm, b->out, b->in, bench_comm_block(b, count), CO_F32);
}

static co_status bench_comm_gather(const bench_comm *b, size_t count)
{
    return co_comm_gather(b->comm, b->out, b->in, bench_comm_block(b, count), CO_F32, 0);
}

static co_status bench_comm_scatter(const bench_comm *b, size_t count)
{
    return co_comm_scatter(b->comm, b->out, b->in, bench_comm_block(b, count), CO_F32, 0);
}

/* Rank 0 to rank 1; nothing with one rank. */
static co_status bench_comm_send(const bench_comm *b, size_t count)
{
    if (co_comm_size(b->comm) < 2 || co_comm_rank(b->comm) > 1)
        return CO_OK;
    if (co_comm_rank(b->comm) == 0)
        return co_comm_send(b->comm, b->in, count, CO_F32, 1);
    return co_comm_recv(b->comm, b->out, count, CO_F32, 0);
}

static const struct {
    const char *name;
    bench_comm_fn run;
} bench_comm_ops[] = {
    {"allreduce", bench_comm_allreduce},
    {"reduce", bench_comm_reduce},
    {"bcast", bench_comm_bcast},
    {"reduce_scatter", bench_comm_reduce_scatter},
    {"allgather", bench_comm_allgather},
    {"gather", bench_comm_gather},
    {"scatter", bench_comm_scatter},
    {"send", bench_comm_send},
    {"tree_allreduce", bench_comm_tree_allreduce},
};

#define BENCH_COMM_OPS (sizeof(bench_comm_ops) / sizeof(bench_comm_ops[0]))

static size_t bench_comm_repeats(size_t bytes)
{
    size_t n = BENCH_COMM_BUDGET / bytes;

    return n < 10 ? 10 : n > BENCH_COMM_MAX_REPEATS ? BENCH_COMM_MAX_REPEATS : n;
}

static void bench_comm_write(float *data, size_t count, size_t round)
{
    for (size_t i = 0; i < count; i++)
        data[i] = (float)(round % 8 + i % 8);
}

static float bench_comm_read(const float *data, size_t count)
{
    float most = 0;

    for (size_t i = 0; i < count; i++)
        most = data[i] > most ? data[i] : most;
    return most;
}

/* Time one operation at one size; rank 0 prints a line. */
static co_status bench_comm_time(const bench_comm *b, size_t op, size_t count)
{
    const size_t bytes = count * sizeof(float), repeats = bench_comm_repeats(bytes);
    double seconds[BENCH_COMM_MAX_REPEATS], median;
    volatile float seen; /* keeps the compiler from dropping the read */

    for (size_t i = 0; i < repeats + BENCH_COMM_WARMUP; i++) {
        uint64_t start;

        bench_comm_write(b->in, count, i);
        CO_TRY(co_comm_barrier(b->comm));
        start = co_clock_ns();
        CO_TRY(bench_comm_ops[op].run(b, count));
        if (i >= BENCH_COMM_WARMUP)
            seconds[i - BENCH_COMM_WARMUP] = co_clock_seconds(start, co_clock_ns());
        seen = bench_comm_read(b->in_place ? b->in : b->out, count);
    }
    (void)seen;
    CO_TRY(co_comm_allreduce(b->comm, seconds, seconds, repeats, CO_F64, CO_MAX));
    if (co_comm_rank(b->comm) != 0)
        return CO_OK;
    co_sort_doubles(seconds, repeats);
    median = seconds[repeats / 2];
    printf("{\"bench\": \"comm\", \"transport\": \"%s\", \"ranks\": %d, \"op\": \"%s\", "
           "\"memory\": \"%s\", \"in_place\": %s, \"bytes\": %zu, \"repeats\": %zu, "
           "\"latency_us\": %.6g, \"latency_us_min\": %.6g, "
           "\"bandwidth_gb_per_s\": %.6g}\n",
           co_comm_transport(b->comm), co_comm_size(b->comm), bench_comm_ops[op].name,
           b->heap ? "heap" : "shared", b->in_place ? "true" : "false", bytes, repeats,
           median * 1e6, seconds[0] * 1e6, median > 0 ? (double)bytes / median * 1e-9 : 0.0);
    return fflush(stdout) == 0 ? CO_OK : co_fail(CO_E_IO, "cannot write to standard output");
}

static bool bench_comm_wanted(const cli_list *ops, const char *name)
{
    for (int i = 0; i < ops->n; i++)
        if (strcmp(ops->text[i], name) == 0)
            return true;
    return ops->n == 0;
}

static co_status bench_comm_all(const bench_comm *b, const bench_comm_options *o)
{
    for (size_t op = 0; op < BENCH_COMM_OPS; op++) {
        if (!bench_comm_wanted(&o->ops, bench_comm_ops[op].name))
            continue;
        for (int64_t bytes = o->min_bytes; bytes <= o->max_bytes; bytes *= 2)
            CO_TRY(bench_comm_time(b, op, (size_t)bytes / sizeof(float)));
    }
    return CO_OK;
}

/* Allocate `bytes` on the heap or in memory that ranks share. */
static co_status bench_comm_take(float **out, co_comm *comm, size_t bytes, bool heap)
{
    void *data = NULL;
    co_status st = CO_OK;

    if (!heap)
        st = co_comm_alloc(&data, comm, bytes);
    else if (!(data = co_calloc_aligned(bytes, 1)))
        st = CO_E_NOMEM;
    *out = data;
    return st;
}

static void bench_comm_give(float *data, co_comm *comm, size_t bytes, bool heap)
{
    if (heap)
        co_free(data);
    else
        co_comm_free(comm, data, bytes);
}

static co_status bench_comm_rank(co_comm *world, void *arg)
{
    const bench_comm_options *o = arg;
    const size_t bytes = (size_t)o->max_bytes, count = bytes / sizeof(float);
    bench_comm b = {.comm = world, .heap = o->heap, .in_place = o->in_place};
    co_status st = bench_comm_take(&b.in, world, bytes, o->heap);

    if (st == CO_OK)
        st = bench_comm_take(&b.out, world, bytes, o->heap);
    if (st == CO_OK && bench_comm_wanted(&o->ops, "tree_allreduce"))
        st = co_tree_create(&b.tree, o->leaves ? (int)o->leaves : co_comm_size(world),
                            co_comm_size(world));
    for (size_t i = 0; st == CO_OK && i < count; i++)
        b.in[i] = b.out[i] = 1; /* fault the pages in */
    if (st == CO_OK)
        st = o->tune ? bench_comm_tune(world, b.in, count) : bench_comm_all(&b, o);
    co_tree_destroy(b.tree);
    bench_comm_give(b.out, world, bytes, o->heap);
    bench_comm_give(b.in, world, bytes, o->heap);
    return st;
}

static co_status bench_comm_check(const bench_comm_options *o)
{
    const char *names[BENCH_COMM_OPS];

    for (size_t i = 0; i < BENCH_COMM_OPS; i++)
        names[i] = bench_comm_ops[i].name;
    for (int i = 0; i < o->ops.n; i++) {
        const char *near = co_nearest(o->ops.text[i], names, BENCH_COMM_OPS);
        bool known = false;

        for (size_t k = 0; k < BENCH_COMM_OPS && !known; k++)
            known = strcmp(o->ops.text[i], names[k]) == 0;
        if (!known)
            return co_fail(CO_E_USAGE, "unknown operation '%s'%s%s; see `cohort bench comm --help`",
                           o->ops.text[i], near ? ", did you mean " : "", near ? near : "");
    }
    if (o->tune && (o->ops.n || o->leaves || o->in_place))
        return co_fail(CO_E_USAGE, "--tune: it times all-reduces in buckets, in place; leave out "
                                   "--op, --leaves and --in-place");
    if (o->tune && (size_t)o->max_bytes < BENCH_TUNE_MIN_BYTES)
        return co_fail(CO_E_USAGE, "--tune: gradients of at least %zu bytes; see --max-bytes",
                       BENCH_TUNE_MIN_BYTES);
    if (o->min_bytes > o->max_bytes)
        return co_fail(CO_E_USAGE, "--min-bytes is larger than --max-bytes");
    return CO_OK;
}

static co_status bench_comm_run(const void *options, int n, const char *const *argument)
{
    bench_comm_options o = *(const bench_comm_options *)options;
    const co_launch_options launch = {.ranks = (int)o.ranks, .bind = true};

    (void)n;
    (void)argument;
    CO_TRY(bench_comm_check(&o));
    return co_launch(&launch, bench_comm_rank, &o);
}

const co_command co_command_bench_comm = {
    .name = "bench comm",
    .summary = "time the operations between ranks",
    .about =
        "Prints one JSON object per operation and message size: latency_us is the median over\n"
        "the repetitions of the time until the slowest rank is done, bandwidth_gb_per_s the\n"
        "message divided by it. Messages are 32-bit floats; of reduce_scatter, allgather,\n"
        "gather and scatter the message is all ranks' blocks together. Messages are in memory\n"
        "that ranks of one machine share, as gradients are in training, but with --heap; before\n"
        "each repetition they are written again, and afterwards the result is read, untimed.\n"
        "\n"
        "Operations: allreduce, reduce, bcast, reduce_scatter, allgather, gather, scatter, send,\n"
        "tree_allreduce (a sum with the same bits for any number of ranks, as `shards` takes it).\n"
        "Transports: shared memory with -n, MPI under mpiexec, none with one rank.\n"
        "\n"
        "With --tune it reduces --max-bytes of gradients in buckets of 128 KiB and more, as "
        "`sync`\n"
        "does, and prints a line for each size and one with the proposal: the smallest that\n"
        "takes at most a tenth longer than the fastest. Sums have the same bits with any.",
    .example = "  cohort bench comm -n 2 --op allreduce\n"
               "  mpiexec -n 2 cohort bench comm --min-bytes 1048576\n"
               "  mpiexec -n 2 cohort bench comm --tune --max-bytes 47000000",
    .options = bench_comm_option_table,
    .options_size = sizeof(bench_comm_options),
    .defaults = &bench_comm_defaults,
    .run = bench_comm_run,
};
