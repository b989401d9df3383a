/*
 * bench_comm.c - `cohort bench comm`: times the operations between ranks.
 *
 * A repetition starts after a barrier and ends when the slowest rank is done, so a root that
 * returns early does not count as fast. As in a training step, each rank writes its message before
 * a repetition and reads the result after it; otherwise parts of them could already be in the
 * caches of other ranks.
 */
#include <string.h>
#include <sys/mman.h>

#include <cohort/ext/comm.h>
#include <cohort/launch.h>

#include "cli/bench_comm.h"
#include "cli/bench_comm_tune.h"
#include "cli/cli.h"
#include "comm/nccl.h"
#include "comm/queued.h"
#include "comm/tree.h"
#include "core/clock.h"
#include "core/config.h"
#include "core/mem.h"
#include "core/sort.h"
#include "device/cuda/cuda.h"
#include "train/run_device.h"

#define BENCH_COMM_MAX_RANKS   1024
#define BENCH_COMM_MAX_REPEATS 1000
#define BENCH_COMM_WARMUP      3
#define BENCH_COMM_BRIEF       50 /* repeats for `cohort tune` */
/* Bytes moved for each size; there are 10 to BENCH_COMM_MAX_REPEATS repetitions. */
#define BENCH_COMM_BUDGET ((size_t)256 << 20)

typedef struct bench_comm_options {
    int64_t ranks, min_bytes, max_bytes, leaves, repeats;
    const char *device;
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
    {"repeats", 0, CLI_COUNT, offsetof(bench_comm_options, repeats), "K", 1, BENCH_COMM_MAX_REPEATS,
     "repetitions of each size; default: 10 to 1000, fewer of large messages"},
    {"heap", 0, CLI_FLAG, offsetof(bench_comm_options, heap), NULL, 0, 0,
     "messages in each rank's own memory, not where other ranks can read them"},
    {"device", 0, CLI_TEXT, offsetof(bench_comm_options, device), "NAME", 0, 0,
     "cuda: messages in memory of GPUs, one for each rank of a machine"},
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
    co_device *device; /* owned; NULL: messages in memory of the host */
    co_queue *queue;   /* owned, of the device */
    co_fence *done;    /* likewise */
    float *in, *out;
    const void *part[CO_TREE_MAX_PARTS]; /* of tree_allreduce: all the same */
    bool heap, in_place;
    size_t repeats; /* of each size; 0: by the size */
    co_tree *tree;  /* NULL: not requested */
} bench_comm;

/* `blocks`: the message is the blocks of all ranks. */
static const struct {
    const char *name;
    co_coll coll;
    bool blocks;
} bench_comm_ops[] = {
    {"allreduce", CO_COLL_ALLREDUCE, false}, {"reduce", CO_COLL_REDUCE, false},
    {"bcast", CO_COLL_BCAST, false},         {"reduce_scatter", CO_COLL_REDUCE_SCATTER, true},
    {"allgather", CO_COLL_ALLGATHER, true},  {"gather", CO_COLL_GATHER, true},
    {"scatter", CO_COLL_SCATTER, true},      {"send", CO_COLL_SEND, false},
    {"tree_allreduce", CO_COLL_TREE, false},
};

#define BENCH_COMM_OPS (sizeof(bench_comm_ops) / sizeof(bench_comm_ops[0]))

static co_coll_args bench_comm_args(const bench_comm *b, size_t op, size_t count)
{
    const co_coll coll = bench_comm_ops[op].coll;
    const bool over = coll == CO_COLL_BCAST ||
                      (b->in_place && (coll == CO_COLL_ALLREDUCE || coll == CO_COLL_REDUCE));

    return (co_coll_args){.coll = coll,
                          .in = coll == CO_COLL_TREE ? (const void *)b->part : b->in,
                          .out = over ? b->in : b->out,
                          .count = bench_comm_ops[op].blocks ? count / (size_t)co_comm_size(b->comm)
                                                             : count,
                          .dtype = CO_F32,
                          .op = CO_SUM,
                          .tree = coll == CO_COLL_TREE ? b->tree : NULL,
                          .queue = b->queue};
}

/* Rank 0 to rank 1; nothing with one rank. */
static co_status bench_comm_send(const bench_comm *b, co_coll_args *args)
{
    if (co_comm_size(b->comm) < 2 || co_comm_rank(b->comm) > 1)
        return CO_OK;
    args->peer = 1 - co_comm_rank(b->comm);
    if (args->peer == 0)
        args->coll = CO_COLL_RECV;
    return co_comm_enqueue_run(b->comm, args);
}

/* Until the result is there. */
static co_status bench_comm_do(const bench_comm *b, size_t op, size_t count)
{
    co_coll_args args = bench_comm_args(b, op, count);

    if (args.coll == CO_COLL_SEND)
        CO_TRY(bench_comm_send(b, &args));
    else
        CO_TRY(co_comm_enqueue_run(b->comm, &args));
    if (!b->device)
        return CO_OK;
    CO_TRY(co_fence_record(b->done, b->queue));
    return co_comm_wait_fence(b->comm, b->done);
}

static size_t bench_comm_repeats(const bench_comm *b, size_t bytes)
{
    const size_t n = BENCH_COMM_BUDGET / bytes;

    if (b->repeats)
        return b->repeats;
    return n < 10 ? 10 : n > BENCH_COMM_MAX_REPEATS ? BENCH_COMM_MAX_REPEATS : n;
}

static co_status bench_comm_write(const bench_comm *b, size_t count, size_t round)
{
    if (b->device) {
        CO_TRY(co_queue_fill(b->queue, b->in, (int)(60 + round % 8), count * sizeof(*b->in)));
        return co_queue_wait(b->queue, CO_DEVICE_WAIT_MS);
    }
    for (size_t i = 0; i < count; i++)
        b->in[i] = (float)(round % 8 + i % 8);
    return CO_OK;
}

static float bench_comm_read(const bench_comm *b, size_t count)
{
    const float *data = b->in_place ? b->in : b->out;
    float most = 0;

    for (size_t i = 0; i < count && !b->device; i++)
        most = data[i] > most ? data[i] : most;
    return most;
}

static const char *bench_comm_way(const bench_comm *b, size_t op, size_t count)
{
    const co_coll_args args = bench_comm_args(b, op, count);

    return co_nccl_takes(b->comm, &args) ? "nccl" : co_comm_transport(b->comm);
}

static const char *bench_comm_memory(const bench_comm *b)
{
    return b->device ? co_device_name(b->device) : b->heap ? "heap" : "shared";
}

/* Time one operation at one size: seconds until the slowest rank was done, rising. */
static co_status bench_comm_repeat(double *seconds, const bench_comm *b, size_t op, size_t count)
{
    const size_t repeats = bench_comm_repeats(b, count * sizeof(float));
    volatile float seen; /* keeps the compiler from dropping the read */

    for (size_t i = 0; i < repeats + BENCH_COMM_WARMUP; i++) {
        uint64_t start;

        CO_TRY(bench_comm_write(b, count, i));
        CO_TRY(co_comm_barrier(b->comm));
        start = co_clock_ns();
        CO_TRY(bench_comm_do(b, op, count));
        if (i >= BENCH_COMM_WARMUP)
            seconds[i - BENCH_COMM_WARMUP] = co_clock_seconds(start, co_clock_ns());
        seen = bench_comm_read(b, count);
    }
    (void)seen;
    CO_TRY(co_comm_allreduce(b->comm, seconds, seconds, repeats, CO_F64, CO_MAX));
    co_sort_doubles(seconds, repeats);
    return CO_OK;
}

/* One operation at one size; rank 0 prints a line. */
static co_status bench_comm_time(const bench_comm *b, size_t op, size_t count)
{
    const size_t bytes = count * sizeof(float), repeats = bench_comm_repeats(b, bytes);
    double seconds[BENCH_COMM_MAX_REPEATS], median;

    CO_TRY(bench_comm_repeat(seconds, b, op, count));
    if (co_comm_rank(b->comm) != 0)
        return CO_OK;
    median = seconds[repeats / 2];
    printf("{\"bench\": \"comm\", \"transport\": \"%s\", \"ranks\": %d, \"op\": \"%s\", "
           "\"memory\": \"%s\", \"in_place\": %s, \"bytes\": %zu, \"repeats\": %zu, "
           "\"latency_us\": %.6g, \"latency_us_min\": %.6g, "
           "\"bandwidth_gb_per_s\": %.6g}\n",
           bench_comm_way(b, op, count), co_comm_size(b->comm), bench_comm_ops[op].name,
           bench_comm_memory(b), b->in_place ? "true" : "false", bytes, repeats, median * 1e6,
           seconds[0] * 1e6, median > 0 ? (double)bytes / median * 1e-9 : 0.0);
    return cli_flush_output();
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

/* Allocate `bytes` where messages are to be. */
static co_status bench_comm_take(float **out, const bench_comm *b, size_t bytes)
{
    void *data = NULL;
    co_status st = CO_OK;

    if (b->device)
        st = co_device_alloc(&data, b->device, bytes, CO_MEMORY_DEVICE);
    else if (!b->heap)
        st = co_comm_alloc(&data, b->comm, bytes);
    else if (!(data = co_calloc_aligned(bytes, 1)))
        st = CO_E_NOMEM;
    *out = data;
    return st;
}

static void bench_comm_give(const bench_comm *b, float *data, size_t bytes)
{
    if (b->device)
        co_device_free(b->device, data, CO_MEMORY_DEVICE);
    else if (b->heap)
        co_free(data);
    else
        co_comm_free(b->comm, data, bytes);
}

/* A GPU for the rank, if messages are to be there. */
static co_status bench_comm_open(bench_comm *b, const bench_comm_options *o)
{
    const co_run_device wanted = {.name = CO_RUN_DEVICE_CUDA, .index = -1, .ranks_per_gpu = 1};

    if (!o->device)
        return CO_OK;
    CO_TRY(co_run_device_join(&b->device, &wanted, b->comm, false));
    CO_TRY(co_queue_create(&b->queue, b->device));
    return co_fence_create(&b->done, b->device);
}

static void bench_comm_close(bench_comm *b, size_t bytes)
{
    co_comm_release_devices(b->comm);
    co_tree_destroy(b->tree);
    bench_comm_give(b, b->out, bytes);
    bench_comm_give(b, b->in, bytes);
    co_fence_destroy(b->done);
    co_queue_destroy(b->queue);
    co_cuda_close(b->device);
}

static co_status bench_comm_rank(co_comm *world, void *arg)
{
    const bench_comm_options *o = arg;
    const size_t bytes = (size_t)o->max_bytes, count = bytes / sizeof(float);
    bench_comm b = {
        .comm = world, .heap = o->heap, .in_place = o->in_place, .repeats = (size_t)o->repeats};
    co_status st = bench_comm_open(&b, o);

    if (st == CO_OK)
        st = bench_comm_take(&b.in, &b, bytes);
    if (st == CO_OK)
        st = bench_comm_take(&b.out, &b, bytes);
    if (st == CO_OK && bench_comm_wanted(&o->ops, "tree_allreduce"))
        st = co_tree_create(&b.tree, o->leaves ? (int)o->leaves : co_comm_size(world),
                            co_comm_size(world));
    for (size_t i = 0; i < CO_TREE_MAX_PARTS; i++)
        b.part[i] = b.in;
    for (size_t i = 0; st == CO_OK && i < count && !b.device; i++)
        b.in[i] = b.out[i] = 1; /* fault the pages in */
    if (st == CO_OK)
        st = o->tune ? bench_comm_tune(world, b.in, count) : bench_comm_all(&b, o);
    bench_comm_close(&b, bytes);
    return st;
}

/* ---- for `cohort tune` ---- */

typedef struct bench_comm_job {
    const size_t *bytes;
    double *seconds; /* shared by ranks */
    int n;
} bench_comm_job;

static co_status bench_comm_sums_all(const bench_comm *b, const bench_comm_job *job)
{
    double seconds[BENCH_COMM_MAX_REPEATS];

    for (int i = 0; i < job->n; i++) {
        CO_TRY(bench_comm_repeat(seconds, b, 0, job->bytes[i] / sizeof(float)));
        if (co_comm_rank(b->comm) == 0)
            job->seconds[i] = seconds[bench_comm_repeats(b, job->bytes[i]) / 2];
    }
    return CO_OK;
}

static co_status bench_comm_sums_rank(co_comm *world, void *arg)
{
    const bench_comm_job *job = arg;
    const size_t bytes = job->bytes[job->n - 1];
    bench_comm b = {.comm = world, .in_place = true, .repeats = BENCH_COMM_BRIEF};
    co_status st = bench_comm_take(&b.in, &b, bytes);

    if (st == CO_OK)
        st = bench_comm_sums_all(&b, job);
    bench_comm_give(&b, b.in, bytes);
    return st;
}

co_status bench_comm_sums(double *seconds, const size_t *bytes, int n, int ranks)
{
    const co_launch_options launch = {.ranks = ranks, .bind = true, .fork_one = true};
    const size_t size = (size_t)n * sizeof(*seconds);
    bench_comm_job job = {.bytes = bytes, .n = n};
    co_status st;

    job.seconds = co_map(size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
    if (!job.seconds)
        return co_fail(CO_E_NOMEM, "out of memory");
    st = co_launch(&launch, bench_comm_sums_rank, &job);
    memcpy(seconds, job.seconds, size);
    munmap(job.seconds, size);
    return st;
}

/* ---- the command ---- */

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
    if (o->device && strcmp(o->device, "cuda") != 0)
        return co_fail(CO_E_USAGE, "--device: cuda, or leave it out for messages of the host");
    if (o->device && (o->heap || o->tune))
        return co_fail(CO_E_USAGE, "--device: messages are in memory of GPUs; leave out --heap and "
                                   "--tune");
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
        "Transports: shared memory with -n, MPI under mpiexec, none with one rank. With --device\n"
        "cuda, messages go from GPU to GPU by NCCL, and without it, as with reduce, gather,\n"
        "scatter and send, through the memory of the host; latencies include agreeing on the "
        "call.\n"
        "\n"
        "With --tune it reduces --max-bytes of gradients in buckets of 128 KiB and more, as "
        "`sync`\n"
        "does, and prints a line for each size and one with the proposal: the smallest that\n"
        "takes at most a tenth longer than the fastest. Sums have the same bits with any.",
    .example = "  cohort bench comm -n 2 --op allreduce\n"
               "  mpiexec -n 2 cohort bench comm --min-bytes 1048576\n"
               "  cohort bench comm -n 2 --device cuda --op allreduce\n"
               "  mpiexec -n 2 cohort bench comm --tune --max-bytes 47000000",
    .options = bench_comm_option_table,
    .options_size = sizeof(bench_comm_options),
    .defaults = &bench_comm_defaults,
    .run = bench_comm_run,
};
