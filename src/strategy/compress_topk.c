/*
 * compress_topk.c - sends the largest elements of the gradient with their positions (Aji and
 * Heafield, arXiv:1704.05021; Stich, Cordonnier and Jaggi, arXiv:1809.07599; Lin et al., "Deep
 * Gradient Compression", arXiv:1712.01887).
 *
 * Each rank chooses its own k elements of each piece and receives those of all; they are summed in
 * rank order, so that all ranks have the same bits. With ratio 1 and few ranks that equals the sum
 * of `sync`. Over several hosts all messages of a host pass between hosts once, and its ranks share
 * what has come.
 *
 * `momentum` is that of Deep Gradient Compression, in place of the optimizer's: each rank keeps a
 * velocity u and adds it to its memory, so that unsent elements gain momentum as if they had been
 * sent. The velocity of a sent element is cleared, because it belongs to old gradients.
 *    u_k <- m u_k + g_k,    p_k = u_k + e_k,    u_k <- 0 where p_k is sent
 */
#include <cohort/ext/compress.h>

#include <math.h>

#include "comm/queued.h"
#include "core/mem.h"
#include "device/device.h"
#include "strategy/compress.h"
#include "tensor/store.h"

/* Message of a piece: positions relative to its begin, then values. */
typedef struct topk_message {
    size_t k;
    bool sliced;   /* sent as slices (queued.h) */
    uint32_t *own; /* (2, k); if sliced, in `all` */
    uint32_t *all; /* (ranks, 2, k); if sliced, in the order of slices */
} topk_message;

typedef struct topk_state {
    double ratio, momentum;
    float *velocity;       /* owned; laid out like the store; NULL without momentum */
    float *block;          /* owned; memory of the following, where the store is */
    uint32_t *room;        /* scratch for selections */
    topk_message *message; /* owned, (pieces) */
} topk_state;

static const co_key topk_keys[] = {
    {.name = "ratio",
     .type = CO_KEY_REAL,
     .offset = offsetof(topk_state, ratio),
     .fallback = "0.01",
     .min = 1e-6,
     .max = 1,
     .help = "share of the elements that is sent in a step"},
    {.name = "momentum",
     .type = CO_KEY_REAL,
     .offset = offsetof(topk_state, momentum),
     .fallback = "0",
     .min = 0,
     .max = 0.9999,
     .help = "of the residual, in place of the optimizer's (Deep Gradient Compression)"},
    CO_KEYS_END,
};

static size_t topk_count(const topk_state *self, const co_piece *piece)
{
    const size_t n = piece->end - piece->begin;
    const size_t k = (size_t)ceil(self->ratio * (double)n);

    return k < 1 ? 1 : k > n ? n : k;
}

/* MPI counts the elements of a message in an int. */
static bool topk_is_sliced(const co_compressor *c, size_t k)
{
    return co_comm_has_hosts(c->comm) && co_device_is_host(c->store->device) &&
           k <= INT32_MAX / 2 / (size_t)co_comm_size(c->comm);
}

static uint32_t *topk_of_rank(const co_compressor *c, const topk_message *message, int rank)
{
    const int index = message->sliced ? co_comm_slice_index(c->comm, rank) : rank;

    return message->all + (size_t)index * 2 * message->k;
}

static co_status topk_init(co_compressor *c)
{
    topk_state *self = c->self;
    const size_t ranks = (size_t)co_comm_size(c->comm);
    size_t words = 0, room = 0;
    uint32_t *at;

    if (self->momentum > 0 && !c->memory)
        return co_fail(CO_E_USAGE, "compress topk: momentum is that of the memory, which "
                                   "error_feedback: false leaves out; give one of them");
    if (self->momentum > 0)
        CO_TRY(co_store_take_array(&self->velocity, c->store, c->store->n));
    self->message = co_calloc(c->n_piece, sizeof(*self->message));
    if (!self->message)
        return CO_E_NOMEM;
    for (size_t i = 0; i < c->n_piece; i++) {
        const co_piece *piece = &c->piece[i];
        const size_t k = topk_count(self, piece);
        const size_t more = c->store->vector->top_k_room(k);

        self->message[i].k = k;
        words += (1 + ranks) * 2 * k;
        room = more > room ? more : room;
    }
    CO_TRY(co_store_take_array(&self->block, c->store, words + room));
    at = (uint32_t *)(void *)self->block;
    for (size_t i = 0; i < c->n_piece; i++) {
        topk_message *message = &self->message[i];

        message->sliced = topk_is_sliced(c, message->k);
        message->all = at + 2 * message->k;
        message->own = message->sliced ? topk_of_rank(c, message, co_comm_rank(c->comm)) : at;
        at += (1 + ranks) * 2 * message->k;
    }
    self->room = at;
    return CO_OK;
}

/* Add this step to the memory: the gradient, or the updated velocity. */
static void topk_remember(co_compressor *c, const co_piece *piece)
{
    const topk_state *self = c->self;
    const co_store *store = c->store;
    const size_t n = piece->end - piece->begin;
    const float *grad = store->grad + piece->begin;
    float *velocity = self->velocity ? self->velocity + piece->begin : NULL;

    if (velocity)
        store->vector->axpby(store->queue, velocity, (float)self->momentum, velocity, 1, grad, n);
    if (c->memory)
        store->vector->add(store->queue, c->memory + piece->begin, velocity ? velocity : grad, n);
}

/* Whether what is sent is finite, and with it all that is not: it is the largest. A device is not
   waited for, and taken not to know. */
static co_status topk_is_sound(bool *sound, const co_store *store, const float *value, size_t k)
{
    float most = NAN;

    if (co_device_is_host(store->device))
        CO_TRY(co_store_max_abs(&most, store, value, k));
    *sound = isfinite(most);
    return CO_OK;
}

/* Clear the sent elements of an array. If values may not be finite, clear all of these, or they
   would come back in every step. */
static void topk_forget(const co_store *store, float *x, size_t n, const topk_message *message,
                        bool sound)
{
    store->vector->scatter(store->queue, x, message->own, NULL, message->k);
    if (!sound)
        store->vector->drop_nonfinite(store->queue, x, n);
}

static co_status topk_send(const co_compressor *c, co_piece *piece, const topk_message *message)
{
    const size_t ranks = (size_t)co_comm_size(c->comm), each = 2 * message->k;
    co_coll_args args = {.coll = CO_COLL_ALLGATHER,
                         .in = message->own,
                         .out = message->all,
                         .count = each,
                         .dtype = CO_I32};

    if (message->sliced) {
        args.coll = CO_COLL_GATHER_SLICES;
        args.in = message->all;
        args.count = ranks * each;
        args.each = each;
    }
    return co_compress_send(&piece->request, c, args);
}

static co_status topk_post(co_compressor *c, co_piece *piece)
{
    topk_state *self = c->self;
    topk_message *message = &self->message[piece->index];
    const size_t n = piece->end - piece->begin, k = message->k;
    float *memory = c->memory ? c->memory + piece->begin : NULL;
    const co_store *store = c->store;
    const float *from = memory ? memory : store->grad + piece->begin;
    float *velocity = self->velocity ? self->velocity + piece->begin : NULL;
    float *value = (float *)message->own + k;
    bool sound;

    topk_remember(c, piece);
    store->vector->top_k(store->queue, message->own, self->room, from, n, k);
    store->vector->gather(store->queue, value, from, message->own, k);
    CO_TRY(topk_is_sound(&sound, store, value, k));
    if (memory)
        topk_forget(store, memory, n, message, sound);
    if (velocity)
        topk_forget(store, velocity, n, message, sound);
    return topk_send(c, piece, message);
}

/* Rank 0's values are copied, because adding to 0 would lose the sign of -0. What has come to a
   device the host does not see. */
static co_status topk_add(const co_store *store, float *grad, size_t n, const uint32_t *index,
                          size_t k, int rank)
{
    const float *value = (const float *)index + k;

    for (size_t i = 0; i < k && co_device_is_host(store->device); i++)
        if (index[i] >= n)
            return co_fail(CO_E_MISMATCH, "rank %d sent an element %u of %zu", rank, index[i], n);
    if (rank == 0)
        store->vector->scatter(store->queue, grad, index, value, k);
    else
        store->vector->scatter_add(store->queue, grad, index, value, k);
    return CO_OK;
}

static co_status topk_take(co_compressor *c, co_piece *piece)
{
    const topk_state *self = c->self;
    const topk_message *message = &self->message[piece->index];
    const size_t n = piece->end - piece->begin;
    const co_store *store = c->store;
    float *grad = store->grad + piece->begin;

    store->vector->zero(store->queue, grad, n);
    for (int rank = 0; rank < co_comm_size(c->comm); rank++)
        CO_TRY(topk_add(store, grad, n, topk_of_rank(c, message, rank), message->k, rank));
    return CO_OK;
}

static float *topk_persistent(bool *share, const co_compressor *c, size_t i)
{
    const topk_state *self = c->self;

    *share = true;
    return i == 0 ? self->velocity : NULL;
}

static void topk_fini(co_compressor *c)
{
    topk_state *self = c->self;

    co_free(self->message);
    co_store_give_array(c->store, self->block);
    co_store_give_array(c->store, self->velocity);
}

const co_compressor_ops co_compressor_topk = {
    .name = "topk",
    .summary = "the largest elements of each rank's gradient and memory, with their places",
    .keys = topk_keys,
    .self_size = sizeof(topk_state),
    .queued = true,
    .init = topk_init,
    .post = topk_post,
    .take = topk_take,
    .persistent = topk_persistent,
    .fini = topk_fini,
};
