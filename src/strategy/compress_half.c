/*
 * compress_half.c - sends gradients in half precision and sums them in fp32.
 *
 * Two ranks send each other everything. With more, each receives a slice from all others, sums it,
 * and sends the sum, rounded again: like an all-reduce in half the bytes. The errors of both
 * roundings go to the memory, those of the sum on its owner; so does what exceeds the range of the
 * type. Over several hosts the communicator does that (co_wire): ranks of a host add up in fp32,
 * and their sum is sent in half precision, once for a host.
 */
#include <cohort/ext/compress.h>

#include "comm/queued.h"
#include "core/mem.h"
#include "device/device.h"
#include "strategy/compress.h"
#include "tensor/store.h"

#define HALF_DIRECT 2            /* up to this number, all ranks send all to each other */
#define HALF_LINE   ((size_t)32) /* elements; slices are whole cache lines */

typedef struct half_message {
    uint16_t *own;       /* what this rank sends; later the sum of all; (slices) */
    uint16_t *all;       /* (ranks, slice), or with two ranks (ranks, n) */
    size_t slice;        /* per rank; the slices of all ranks cover the piece */
    co_request **gather; /* (ranks): one per slice; the last is the piece's request */
    co_wire wire;        /* over several hosts; there is nothing else then */
} half_message;

typedef struct half_state {
    bool by_host;
    half_message *message; /* owned, (pieces) */
    float *block;          /* owned: all buffers, in the store's memory */
    co_request **request;  /* owned: for all pieces */
} half_state;

static const co_key half_keys[] = {CO_KEYS_END};

static co_dtype half_dtype(const co_compressor *c)
{
    return c->ops == &co_compressor_fp16 ? CO_F16 : CO_BF16;
}

static bool half_is_direct(const co_compressor *c)
{
    return co_comm_size(c->comm) <= HALF_DIRECT;
}

static size_t half_slice(const co_compressor *c, const co_piece *piece)
{
    const size_t n = piece->end - piece->begin, ranks = (size_t)co_comm_size(c->comm);

    if (half_is_direct(c))
        return n;
    return ((n + ranks - 1) / ranks + HALF_LINE - 1) / HALF_LINE * HALF_LINE;
}

static co_status half_init_messages(co_compressor *c)
{
    half_state *self = c->self;
    const size_t ranks = (size_t)co_comm_size(c->comm);
    size_t total = 0;
    uint16_t *at;

    self->request = co_calloc(c->n_piece * ranks, sizeof(co_request *));
    if (!self->request)
        return CO_E_NOMEM;
    for (size_t i = 0; i < c->n_piece; i++) {
        self->message[i].slice = half_slice(c, &c->piece[i]);
        self->message[i].gather = self->request + i * ranks;
        total += self->message[i].slice * 2 * ranks;
    }
    CO_TRY(co_store_take_array(&self->block, c->store, total / 2 + 1));
    at = (uint16_t *)(void *)self->block;
    for (size_t i = 0; i < c->n_piece; i++) {
        half_message *message = &self->message[i];

        message->own = at;
        message->all = at + message->slice * ranks;
        at += message->slice * 2 * ranks;
    }
    return CO_OK;
}

static co_status half_init(co_compressor *c)
{
    half_state *self = c->self;

    self->by_host = co_comm_has_hosts(c->comm) && co_device_is_host(c->store->device);
    self->message = co_calloc(c->n_piece, sizeof(*self->message));
    if (!self->message)
        return CO_E_NOMEM;
    for (size_t i = 0; i < c->n_piece; i++)
        self->message[i].wire = (co_wire){.dtype = half_dtype(c),
                                          .vector = c->store->vector,
                                          .rest = c->memory ? c->memory + c->piece[i].begin : NULL};
    return self->by_host ? CO_OK : half_init_messages(c);
}

/* out = sum of n elements over all ranks, in rank order. */
static void half_add(const co_compressor *c, float *out, const uint16_t *all, size_t stride,
                     size_t n)
{
    c->store->vector->widen_sum(c->store->queue, out, all, stride, co_comm_size(c->comm), n,
                                half_dtype(c));
}

static co_status half_gather_all(const co_compressor *c, co_piece *piece, uint16_t *out,
                                 const uint16_t *in, size_t n)
{
    return co_compress_send(
        &piece->request, c,
        (co_coll_args){
            .coll = CO_COLL_ALLGATHER, .in = in, .out = out, .count = n, .dtype = half_dtype(c)});
}

static co_status half_sum_by_host(const co_compressor *c, co_piece *piece, const float *in)
{
    const half_state *self = c->self;

    return co_compress_send(&piece->request, c,
                            (co_coll_args){.coll = CO_COLL_ALLREDUCE,
                                           .in = in,
                                           .out = c->store->grad + piece->begin,
                                           .count = piece->end - piece->begin,
                                           .dtype = CO_F32,
                                           .op = CO_SUM,
                                           .wire = &self->message[piece->index].wire});
}

static co_status half_post(co_compressor *c, co_piece *piece)
{
    const half_state *self = c->self;
    const half_message *message = &self->message[piece->index];
    const size_t n = piece->end - piece->begin;
    const co_store *store = c->store;
    const float *grad = store->grad + piece->begin;
    float *memory = c->memory ? c->memory + piece->begin : NULL;
    const int ranks = co_comm_size(c->comm);

    if (memory)
        store->vector->add(store->queue, memory, grad, n);
    if (self->by_host)
        return half_sum_by_host(c, piece, memory ? memory : grad);
    store->vector->narrow(store->queue, message->own, memory ? memory : grad, memory, false, n,
                          half_dtype(c));
    if (half_is_direct(c))
        return half_gather_all(c, piece, message->all, message->own, n);
    for (int rank = 0; rank < ranks; rank++) {
        co_request **request = rank + 1 < ranks ? &message->gather[rank] : &piece->request;

        CO_TRY(co_compress_send(
            request, c,
            (co_coll_args){.coll = CO_COLL_GATHER,
                           .in = message->own + (size_t)rank * message->slice,
                           .out = rank == co_comm_rank(c->comm) ? message->all : NULL,
                           .count = message->slice,
                           .dtype = half_dtype(c),
                           .peer = rank}));
    }
    return CO_OK;
}

/* This rank's slice has arrived from all: send its sum to all. */
static co_status half_take_slices(co_compressor *c, co_piece *piece)
{
    const half_state *self = c->self;
    const half_message *message = &self->message[piece->index];
    const size_t n = piece->end - piece->begin, rank = (size_t)co_comm_rank(c->comm);
    const size_t begin = rank * message->slice < n ? rank * message->slice : n;
    const size_t part = n - begin < message->slice ? n - begin : message->slice;
    float *sum = c->store->grad + piece->begin + begin;

    for (int i = 0; i + 1 < co_comm_size(c->comm); i++) {
        CO_TRY(co_request_order(message->gather[i], c->store->queue));
        co_request_destroy(message->gather[i]);
        message->gather[i] = NULL;
    }
    half_add(c, sum, message->all, message->slice, part);
    c->store->vector->narrow(c->store->queue, message->all, sum,
                             c->memory ? c->memory + piece->begin + begin : NULL, true, part,
                             half_dtype(c));
    return half_gather_all(c, piece, message->own, message->all, message->slice);
}

static co_status half_take(co_compressor *c, co_piece *piece)
{
    const half_state *self = c->self;
    const half_message *message = &self->message[piece->index];
    const size_t n = piece->end - piece->begin;
    float *grad = c->store->grad + piece->begin;

    if (self->by_host)
        return CO_OK;
    if (half_is_direct(c))
        half_add(c, grad, message->all, n, n);
    else if (piece->round == 0)
        return half_take_slices(c, piece);
    else
        c->store->vector->widen_sum(c->store->queue, grad, message->own, n, 1, n, half_dtype(c));
    return CO_OK;
}

static void half_fini(co_compressor *c)
{
    half_state *self = c->self;
    const size_t n = c->n_piece * (size_t)co_comm_size(c->comm);

    for (size_t i = 0; self->request && i < n; i++)
        co_request_destroy(self->request[i]);
    co_free(self->request);
    co_free(self->message);
    co_store_give_array(c->store, self->block);
}

const co_compressor_ops co_compressor_bf16 = {
    .name = "bf16",
    .summary = "gradients as 16-bit floats, 8 bits of exponent",
    .keys = half_keys,
    .self_size = sizeof(half_state),
    .queued = true,
    .init = half_init,
    .post = half_post,
    .take = half_take,
    .fini = half_fini,
};

const co_compressor_ops co_compressor_fp16 = {
    .name = "fp16",
    .summary = "gradients as 16-bit floats, 5 bits of exponent",
    .keys = half_keys,
    .self_size = sizeof(half_state),
    .queued = true,
    .init = half_init,
    .post = half_post,
    .take = half_take,
    .fini = half_fini,
};
