/*
 * comm.c - the public operations: checks arguments, calls the transport, waits.
 *
 * Defines what a valid call is; after its first failure a communicator is dead. Does not know how
 * data is transferred.
 */
#include <cohort/ext/comm.h>

#include "comm/comm_internal.h"
#include "comm/nccl.h"
#include "comm/queued.h"
#include "comm/tree.h"
#include "comm/watch.h"
#include "core/half.h"
#include "core/mem.h"

co_coll_descriptor co_comm_descriptor(const co_coll_args *args, uint32_t sequence)
{
    const bool message = args->coll == CO_COLL_SEND || args->coll == CO_COLL_RECV;
    const int root = co_comm_is_tree(args) ? args->tree->leaves
                     : args->wire          ? (int)args->wire->dtype
                     : message             ? 0
                                           : args->peer;

    return (co_coll_descriptor){.sequence = sequence,
                                .coll = (uint8_t)args->coll,
                                .dtype_op = (uint8_t)(args->dtype | args->op << 4),
                                .root = (uint16_t)root,
                                .count = args->count};
}

/* Blocks of `count` elements that a rank reads or writes: none, one, one per rank, or these on the
   root only. */
typedef enum comm_blocks {
    COMM_NONE,
    COMM_ONE,
    COMM_ALL,
    COMM_ONE_ROOT,
    COMM_ALL_ROOT
} comm_blocks;

/* What each operation requires of a call. */
typedef struct comm_rule {
    comm_blocks in, out;
    bool reduces, has_peer, in_place;
} comm_rule;

static const comm_rule comm_rules[CO_COLL_COUNT] = {
    [CO_COLL_BCAST] = {COMM_NONE, COMM_ONE, .has_peer = true},
    [CO_COLL_REDUCE] = {COMM_ONE, COMM_ONE_ROOT, .reduces = true, .has_peer = true,
                        .in_place = true},
    [CO_COLL_ALLREDUCE] = {COMM_ONE, COMM_ONE, .reduces = true, .in_place = true},
    [CO_COLL_REDUCE_SCATTER] = {COMM_ALL, COMM_ONE, .reduces = true},
    [CO_COLL_ALLGATHER] = {COMM_ONE, COMM_ALL},
    [CO_COLL_SPLIT] = {COMM_ONE, COMM_ALL},
    [CO_COLL_GATHER] = {COMM_ONE, COMM_ALL_ROOT, .has_peer = true},
    [CO_COLL_SCATTER] = {COMM_ALL_ROOT, COMM_ONE, .has_peer = true},
    [CO_COLL_SEND] = {COMM_ONE, COMM_NONE, .has_peer = true},
    [CO_COLL_RECV] = {COMM_NONE, COMM_ONE, .has_peer = true},
    [CO_COLL_REDUCE_SLICES] = {COMM_ONE, COMM_ONE, .reduces = true, .in_place = true},
    [CO_COLL_GATHER_SLICES] = {COMM_ONE, COMM_ONE, .in_place = true},
};

static size_t comm_count_blocks(const co_comm *comm, const co_coll_args *args, comm_blocks blocks)
{
    if (blocks >= COMM_ONE_ROOT && args->peer != comm->rank)
        return 0;
    if (blocks == COMM_ONE || blocks == COMM_ONE_ROOT)
        return 1;
    return blocks == COMM_NONE ? 0 : (size_t)comm->size;
}

static co_status comm_check_tree(const co_comm *comm, const co_coll_args *args)
{
    const char *name = co_comm_coll_name(args->coll);
    const void *const *part = args->in;
    const uintptr_t out = (uintptr_t)args->out;
    size_t bytes;

    if (!args->tree || args->tree->ranks != comm->size)
        return co_fail(CO_E_USAGE, "%s: give a tree for the %d ranks of the communicator", name,
                       comm->size);
    if (__builtin_mul_overflow(args->count, co_dtype_size(args->dtype), &bytes) ||
        bytes > PTRDIFF_MAX / CO_TREE_MAX_LEAVES)
        return co_fail(CO_E_USAGE, "%s: %zu elements of %s are more than memory can hold", name,
                       args->count, co_dtype_name(args->dtype));
    if (bytes == 0)
        return CO_OK;
    if (!part || !args->out)
        return co_fail(CO_E_USAGE, "%s: rank %d gives no %s", name, comm->rank,
                       part ? "output buffer" : "parts");
    for (int i = 0; i < args->tree->parts[comm->rank]; i++) {
        const uintptr_t in = (uintptr_t)part[i];

        if (!in)
            return co_fail(CO_E_USAGE, "%s: rank %d gives no part %d", name, comm->rank, i);
        if (in != out && in < out + bytes && out < in + bytes)
            return co_fail(CO_E_USAGE,
                           "%s: part %d and output of rank %d overlap; give the same pointer to "
                           "work in place",
                           name, i, comm->rank);
    }
    return CO_OK;
}

static co_status comm_check_buffers(const co_comm *comm, const co_coll_args *args)
{
    const comm_rule *rule = &comm_rules[args->coll];
    const size_t ins = comm_count_blocks(comm, args, rule->in);
    const size_t outs = comm_count_blocks(comm, args, rule->out);
    const uintptr_t in = (uintptr_t)args->in, out = (uintptr_t)args->out;
    size_t block, all;

    /* Every rank must be able to hold size * count elements, so that all ranks reject a call
       alike. */
    if (__builtin_mul_overflow(args->count, co_dtype_size(args->dtype), &block) ||
        __builtin_mul_overflow(block, (size_t)comm->size, &all) || all > PTRDIFF_MAX)
        return co_fail(CO_E_USAGE, "%s: %zu elements of %s are more than memory can hold",
                       co_comm_coll_name(args->coll), args->count, co_dtype_name(args->dtype));
    if (block == 0)
        return CO_OK;
    if ((ins && !in) || (outs && !out))
        return co_fail(CO_E_USAGE, "%s: rank %d gives no %s buffer", co_comm_coll_name(args->coll),
                       comm->rank, ins && !in ? "input" : "output");
    if (ins && outs && !(rule->in_place && in == out) && in < out + outs * block &&
        out < in + ins * block)
        return co_fail(CO_E_USAGE, "%s: input and output of rank %d overlap%s",
                       co_comm_coll_name(args->coll), comm->rank,
                       rule->in_place ? "; give the same pointer to work in place" : "");
    return CO_OK;
}

static inline bool comm_has_slices(const co_coll_args *args)
{
    return args->coll >= CO_COLL_REDUCE_SLICES;
}

static co_status comm_check_slices(const co_comm *comm, const co_coll_args *args)
{
    const char *name = co_comm_coll_name(args->coll);
    size_t all;

    if (args->coll != CO_COLL_TREE_SLICES && args->in != args->out)
        return co_fail(CO_E_USAGE, "%s: give the same pointer as input and output", name);
    if (__builtin_mul_overflow(args->each, (size_t)comm->size, &all) || all < args->count)
        return co_fail(CO_E_USAGE, "%s: %d slices of %zu elements are not the %zu there are", name,
                       comm->size, args->each, args->count);
    return CO_OK;
}

static co_status comm_check_wire(const co_comm *comm, const co_coll_args *args)
{
    const co_wire *wire = args->wire;

    if (comm->ops->hosts && args->coll == CO_COLL_ALLREDUCE && args->dtype == CO_F32 &&
        args->op == CO_SUM && !args->queue && co_dtype_is_half(wire->dtype) &&
        (!wire->rest || wire->rest != args->out))
        return CO_OK;
    return co_fail(CO_E_USAGE,
                   "%s: only sums of floats in the host's memory, over several hosts, are sent as "
                   "bf16 or fp16, with a rest that is not the output",
                   co_comm_coll_name(args->coll));
}

static co_status comm_check(const co_comm *comm, const co_coll_args *args)
{
    const comm_rule *rule = &comm_rules[args->coll];

    if (!comm)
        return co_fail(CO_E_USAGE, "%s: no communicator", co_comm_coll_name(args->coll));
    if ((unsigned)args->dtype >= CO_DTYPE_COUNT)
        return co_fail(CO_E_USAGE, "%s: unknown element type %d", co_comm_coll_name(args->coll),
                       (int)args->dtype);
    if (rule->reduces && (unsigned)args->op >= CO_REDUCE_OP_COUNT)
        return co_fail(CO_E_USAGE, "%s: unknown reduction %d", co_comm_coll_name(args->coll),
                       (int)args->op);
    if (rule->has_peer && (args->peer < 0 || args->peer >= comm->size))
        return co_fail(CO_E_USAGE, "%s: there is no rank %d, only 0 to %d",
                       co_comm_coll_name(args->coll), args->peer, comm->size - 1);
    if (comm_has_slices(args))
        CO_TRY(comm_check_slices(comm, args));
    if (args->wire)
        CO_TRY(comm_check_wire(comm, args));
    return co_comm_is_tree(args) ? comm_check_tree(comm, args) : comm_check_buffers(comm, args);
}

co_status co_comm_settle(co_comm *comm, co_status st)
{
    co_status first;

    if (st == CO_OK || st == CO_E_USAGE)
        return st;
    co_nccl_abort(comm);
    comm->ops->fail(comm, comm->rank, st, co_error_message());
    first = comm->ops->progress(comm);
    return first == CO_OK ? st : first;
}

/* The parts of slices that other ranks add up, and this rank's slice of the sum. */
static uint64_t comm_tree_contribution(const co_comm *comm, const co_coll_args *args)
{
    size_t begin;
    const size_t own = co_tree_slice(&begin, args->tree, args->count, 1, comm->rank);
    const size_t parts = (size_t)args->tree->parts[comm->rank];

    return (uint64_t)((parts * (args->count - own) + own) * co_dtype_size(args->dtype));
}

/* Of a half of an all-reduce: what is others' to add up, in each part of a tree; its slice. */
static uint64_t comm_slices_contribution(const co_comm *comm, const co_coll_args *args)
{
    size_t begin;
    const size_t own =
        co_comm_slice(&begin, args->count, args->each, co_comm_slice_index(comm, comm->rank));
    const size_t parts = co_comm_is_tree(args) ? (size_t)args->tree->parts[comm->rank] : 1;

    return (uint64_t)((args->coll == CO_COLL_GATHER_SLICES ? own : parts * (args->count - own)) *
                      co_dtype_size(args->dtype));
}

/* Bytes of its own data that a rank sends. */
static uint64_t comm_contribution(const co_comm *comm, const co_coll_args *args)
{
    size_t blocks = comm_count_blocks(comm, args, comm_rules[args->coll].in);

    if (args->coll == CO_COLL_BCAST)
        blocks = args->peer == comm->rank;
    if (args->coll == CO_COLL_REDUCE && args->peer == comm->rank)
        blocks = 0;
    if (comm->size == 1 || args->coll == CO_COLL_SPLIT)
        return 0;
    if (args->coll == CO_COLL_TREE)
        return comm_tree_contribution(comm, args);
    if (comm_has_slices(args))
        return comm_slices_contribution(comm, args);
    return (uint64_t)(blocks * args->count *
                      co_dtype_size(args->wire ? args->wire->dtype : args->dtype));
}

void co_comm_buffer_bytes(size_t *in, size_t *out, const co_comm *comm, const co_coll_args *args)
{
    const comm_rule *rule = &comm_rules[args->coll];
    const size_t block = args->count * co_dtype_size(args->dtype);

    *in = comm_count_blocks(comm, args, rule->in) * block;
    *out = comm_count_blocks(comm, args, rule->out) * block;
    if (args->coll == CO_COLL_BCAST)
        *in = args->peer == comm->rank ? block : 0;
    if (co_comm_is_tree(args)) {
        *in = (size_t)args->tree->parts[comm->rank] * block;
        *out = block;
    }
}

bool co_comm_has_hosts(const co_comm *comm)
{
    return comm->ops->hosts;
}

int co_comm_slice_index(const co_comm *comm, int rank)
{
    return comm->ops->slice_index ? comm->ops->slice_index(comm, rank) : rank;
}

size_t co_comm_slice_each(const co_comm *comm, size_t count)
{
    const size_t units = (count + CO_SLICE_UNIT - 1) / CO_SLICE_UNIT, ranks = (size_t)comm->size;

    return (units + ranks - 1) / ranks * CO_SLICE_UNIT;
}

co_status co_comm_post_now(co_request **request, co_comm *comm, const co_coll_args *args)
{
    CO_TRY(co_comm_settle(comm, comm->ops->post(request, comm, args)));
    co_watch_post(comm, *request, args);
    comm->bytes_sent += comm_contribution(comm, args);
    return CO_OK;
}

/* Whether the transport cannot access the buffers, so that they are copied to the host. */
static bool comm_is_staged(const co_comm *comm, const co_coll_args *args)
{
    return args->queue && !(comm->ops->memory & 1u << CO_MEMORY_DEVICE);
}

co_status co_comm_post(co_request **request, co_comm *comm, const co_coll_args *args)
{
    *request = NULL;
    CO_TRY(comm_check(comm, args));
    CO_TRY(co_nccl_check_captured(comm, args));
    if (comm_is_staged(comm, args) && !co_nccl_takes(comm, args))
        return co_comm_settle(comm, co_staged_post(request, comm, args));
    if (comm->staged)
        CO_TRY(co_staged_flush(comm));
    if (!co_nccl_takes(comm, args))
        return co_comm_post_now(request, comm, args);
    comm->bytes_sent += comm_contribution(comm, args);
    return co_comm_settle(comm, co_nccl_post(request, comm, args));
}

co_status co_comm_run(co_comm *comm, const co_coll_args *args)
{
    co_request *request = NULL;
    co_status st;

    CO_TRY(comm_check(comm, args));
    CO_TRY(co_nccl_check_captured(comm, args));
    if (comm->staged)
        CO_TRY(co_staged_flush(comm));
    if (comm->ops->run && !comm->observer) {
        comm->bytes_sent += comm_contribution(comm, args);
        return co_comm_settle(comm, comm->ops->run(comm, args));
    }
    CO_TRY(co_comm_post_now(&request, comm, args));
    st = co_request_wait(request);
    co_request_destroy(request);
    return st;
}

co_status co_comm_enqueue(co_request **request, co_comm *comm, const co_coll_args *args)
{
    return co_comm_post(request, comm, args);
}

co_status co_comm_enqueue_run(co_comm *comm, const co_coll_args *args)
{
    co_request *request = NULL;
    co_status st;

    if (!args->queue)
        return co_comm_run(comm, args);
    CO_TRY(co_comm_post(&request, comm, args));
    st = co_request_order(request, args->queue);
    co_request_destroy(request);
    return st;
}

co_status co_comm_progress(co_comm *comm)
{
    CO_TRY(co_comm_settle(comm, comm->ops->progress(comm)));
    if (comm->staged)
        CO_TRY(co_comm_settle(comm, co_staged_advance(comm)));
    if (comm->nccl)
        CO_TRY(co_comm_settle(comm, co_nccl_advance(comm)));
    if (comm->observer)
        co_watch_progressed(comm->observer);
    return CO_OK;
}

co_status co_comm_split(co_comm **out, co_comm *comm, int color, int key)
{
    *out = NULL;
    if (!comm)
        return co_fail(CO_E_USAGE, "split: no communicator");
    if (color < -1)
        return co_fail(CO_E_USAGE, "split: color %d; give 0 or more, or -1 for none", color);
    if (comm->staged)
        CO_TRY(co_staged_flush(comm));
    CO_TRY(co_comm_settle(comm, comm->ops->split(out, comm, color, key)));
    if (!*out)
        return CO_OK;
    (*out)->watch = comm->watch;
    return co_comm_set_timeout(*out, comm->timeout_ms);
}

co_comm *co_comm_local(co_comm *comm)
{
    return comm->ops->local ? comm->ops->local(comm) : comm;
}

co_status co_comm_window_create(void **base, co_comm *comm, size_t bytes)
{
    co_status st;

    *base = NULL;
    if (!comm)
        return co_fail(CO_E_USAGE, "window: no communicator");
    if (bytes == 0 || bytes > PTRDIFF_MAX)
        return co_fail(CO_E_USAGE, "window: %zu bytes; give 1 or more, and less than memory holds",
                       bytes);
    if (!comm->ops->window)
        return co_fail(CO_E_UNSUPPORTED,
                       "ranks over %s share no memory; start them on one machine with -n",
                       comm->ops->name);
    if (comm->staged)
        CO_TRY(co_staged_flush(comm));
    st = comm->ops->window(base, comm, bytes);
    return st == CO_E_UNSUPPORTED ? st : co_comm_settle(comm, st);
}

void co_comm_window_destroy(co_comm *comm, void *base, size_t bytes)
{
    if (base)
        comm->ops->free_window(comm, base, bytes);
}

co_status co_comm_alloc(void **out, co_comm *comm, size_t bytes)
{
    *out = NULL;
    if (!comm)
        return co_fail(CO_E_USAGE, "alloc: no communicator");
    if (bytes > PTRDIFF_MAX)
        return co_fail(CO_E_USAGE, "alloc: %zu bytes are more than memory can hold", bytes);
    if (comm->ops->alloc && bytes)
        *out = comm->ops->alloc(comm, bytes);
    if (!*out)
        *out = co_calloc_aligned(bytes, 1);
    return *out ? CO_OK : CO_E_NOMEM;
}

void co_comm_free(co_comm *comm, void *data, size_t bytes)
{
    if (data && !(comm->ops->free && comm->ops->free(comm, data, bytes)))
        co_free(data);
}

void co_comm_abort(co_comm *comm, co_status status, const char *cause)
{
    co_nccl_abort(comm);
    comm->ops->abort(comm, status == CO_OK ? CO_E_FAILED : status, cause ? cause : "");
}

void co_comm_abandon(co_comm *comm)
{
    const co_status st = co_error_status();

    if (st == CO_OK)
        co_comm_abort(comm, CO_E_USAGE,
                      "it has left a step, or a strategy, with messages in flight; "
                      "co_distributed_finish waits for them");
    else
        co_comm_abort(comm, st, co_error_message());
}

void co_comm_destroy(co_comm *comm)
{
    if (!comm)
        return;
    co_comm_release_devices(comm);
    co_comm_free_spare(comm);
    comm->ops->destroy(comm);
}

int co_comm_rank(const co_comm *comm)
{
    return comm->rank;
}

int co_comm_size(const co_comm *comm)
{
    return comm->size;
}

const char *co_comm_transport(const co_comm *comm)
{
    return comm->ops->name;
}

co_status co_comm_set_timeout(co_comm *comm, uint32_t timeout_ms)
{
    if (timeout_ms == 0)
        return co_fail(CO_E_USAGE, "a timeout of 0 ms lets no operation end; give 1 or more");
    comm->timeout_ms = timeout_ms;
    if (comm->ops->set_timeout)
        comm->ops->set_timeout(comm);
    return CO_OK;
}

uint32_t co_comm_timeout(const co_comm *comm)
{
    return comm->timeout_ms;
}

uint64_t co_comm_bytes_sent(const co_comm *comm)
{
    return comm->bytes_sent;
}
