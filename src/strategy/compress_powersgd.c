/*
 * compress_powersgd.c - sends the gradient of each layer as a product of two thin matrices (Vogels,
 * Karimireddy and Jaggi, "PowerSGD", arXiv:1905.13727):
 *
 *   P = sum over ranks of M_k Q,   P <- orthonormal,   Q = sum over ranks of M_k^T P,   M = P Q^T
 *
 * This is one step of a power iteration on the sum; the next step starts from its Q. Both sums are
 * ordinary all-reduces of few elements. Tensors of one dimension, and those that it would not make
 * `min_compression` times smaller, are sent whole, together with P.
 *
 * A rank keeps M_k - P (M_k^T P)^T, its own part of what was not sent. (PowerSGD as published keeps
 * M_k - P Q^T / ranks. That has the same sum over ranks, which is all that matters to the gradient,
 * but accumulates the differences between ranks.)
 */
#include <cohort/ext/compress.h>

#include <math.h>

#include "core/mem.h"
#include "core/rng.h"
#include "device/device.h"
#include "strategy/compress.h"
#include "tensor/store.h"

/* A tensor of a piece, or the whole piece if its tensors are unknown. */
typedef struct powersgd_part {
    size_t begin;           /* offset in the store */
    co_vector_matrix shape; /* rank 0: `rows` elements that are sent whole */
    float *p, *q;           /* messages: P (rank, rows) or (rows); Q (rank, cols) */
    const float *fresh;     /* the initial Q, with warm_start */
    uint32_t number;        /* of the tensor; seeds its random numbers */
} powersgd_part;

typedef struct powersgd_message {
    powersgd_part *part; /* (n_part) */
    size_t n_part;
    float *p, *q; /* messages of all its parts */
    size_t n_p, n_q;
} powersgd_message;

typedef struct powersgd_state {
    int64_t rank;
    bool warm_start;
    double min_compression;
    float *last;               /* owned; laid out like the store: the last Q at its tensor's place,
                                  then zeros */
    float *block;              /* owned; memory of all p, q, and fresh, and of `most` */
    float *most;               /* a max_abs */
    float *drawn;              /* owned; on the host: room for the largest Q */
    powersgd_part *part;       /* owned; of all pieces */
    powersgd_message *message; /* owned, (pieces) */
} powersgd_state;

static const co_key powersgd_keys[] = {
    {.name = "rank",
     .type = CO_KEY_INT,
     .offset = offsetof(powersgd_state, rank),
     .fallback = "2",
     .min = 1,
     .max = CO_VECTOR_MAX_RANK,
     .help = "columns of the two thin matrices"},
    {.name = "warm_start",
     .type = CO_KEY_BOOL,
     .offset = offsetof(powersgd_state, warm_start),
     .fallback = "true",
     .help = "begin with the last step's result; false: with random numbers in every step"},
    {.name = "min_compression",
     .type = CO_KEY_REAL,
     .offset = offsetof(powersgd_state, min_compression),
     .fallback = "2",
     .min = 0,
     .max = 1e9,
     .help = "tensors that would shrink by less than this factor are sent whole"},
    CO_KEYS_END,
};

static size_t powersgd_rank(const powersgd_state *self, const co_store_tensor *tensor)
{
    const size_t least = tensor->rows < tensor->cols ? tensor->rows : tensor->cols;
    const size_t rank = (size_t)self->rank < least ? (size_t)self->rank : least;
    const double whole = (double)tensor->rows * (double)tensor->cols;

    if (least <= 1 || whole <= self->min_compression *
                                   ((double)tensor->rows + (double)tensor->cols) * (double)rank)
        return 0;
    return rank;
}

static void powersgd_add_part(powersgd_message *message, powersgd_part part)
{
    const co_vector_matrix *shape = &part.shape;

    message->n_p += shape->rows * (shape->rank ? shape->rank : 1);
    message->n_q += shape->cols * shape->rank;
    message->part[message->n_part++] = part;
}

static void powersgd_list_parts(powersgd_message *message, const co_compressor *c,
                                const co_piece *piece)
{
    for (size_t i = 0; i < piece->n_tensor; i++) {
        const size_t number = piece->first_tensor + i;
        const co_store_tensor *tensor = &c->store->tensor[number];
        powersgd_part part = {.begin = tensor->begin, .number = (uint32_t)number};

        part.shape.rank = powersgd_rank(c->self, tensor);
        part.shape.rows = part.shape.rank ? tensor->rows : tensor->rows * tensor->cols;
        part.shape.cols = part.shape.rank ? tensor->cols : 0;
        powersgd_add_part(message, part);
    }
    if (piece->n_tensor == 0)
        powersgd_add_part(message, (powersgd_part){.begin = piece->begin,
                                                   .shape = {.rows = piece->end - piece->begin}});
}

/* Place all p and q of a piece in the block. */
static float *powersgd_place(powersgd_message *message, float *at)
{
    message->p = at;
    for (size_t i = 0; i < message->n_part; i++) {
        powersgd_part *part = &message->part[i];

        part->p = at;
        at += part->shape.rows * (part->shape.rank ? part->shape.rank : 1);
    }
    message->q = at;
    for (size_t i = 0; i < message->n_part; i++) {
        message->part[i].q = at;
        at += message->part[i].shape.cols * message->part[i].shape.rank;
    }
    return at;
}

/* A tensor's Q of random numbers, the same on all ranks. Waits for the store's queue. */
static co_status powersgd_draw(const co_compressor *c, float *q, const powersgd_part *part,
                               uint64_t step)
{
    const powersgd_state *self = c->self;
    const co_rng rng = {.stream = CO_RNG_COMPRESS, .step = step, .item = part->number};
    const size_t cols = part->shape.cols;

    for (size_t k = 0; k < part->shape.rank; k++)
        co_rng_normal(self->drawn + k * cols, &rng, k * cols, cols);
    return co_queue_copy_now(c->store->queue, q, self->drawn, part->shape.rank * cols * sizeof(*q));
}

/* The parts of all pieces; *n: elements of their messages, *n_q: of their Q, *most_q: of one. */
static void powersgd_list(size_t *n, size_t *n_q, size_t *most_q, const co_compressor *c)
{
    const powersgd_state *self = c->self;
    powersgd_part *part = self->part;

    *n = *n_q = *most_q = 0;
    for (size_t i = 0; i < c->n_piece; i++) {
        powersgd_message *message = &self->message[i];

        message->part = part;
        powersgd_list_parts(message, c, &c->piece[i]);
        part += message->n_part;
        *n += message->n_p + message->n_q;
        *n_q += message->n_q;
        *most_q = message->n_q > *most_q ? message->n_q : *most_q;
    }
}

/* What the first step begins with, and columns that have become 0. */
static co_status powersgd_begin(const co_compressor *c, float *fresh)
{
    const powersgd_state *self = c->self;

    for (size_t i = 0; i < c->n_piece; i++)
        for (size_t k = 0; k < self->message[i].n_part; k++) {
            powersgd_part *part = &self->message[i].part[k];

            part->fresh = fresh;
            CO_TRY(powersgd_draw(c, fresh, part, 0));
            CO_TRY(powersgd_draw(c, self->last + part->begin, part, 0));
            fresh += part->shape.cols * part->shape.rank;
        }
    return CO_OK;
}

static co_status powersgd_init(co_compressor *c)
{
    powersgd_state *self = c->self;
    size_t n, n_q, most_q;
    float *at;

    self->message = co_calloc(c->n_piece, sizeof(*self->message));
    self->part = co_calloc(c->store->n_tensor + c->n_piece, sizeof(*self->part));
    if (!self->message || !self->part)
        return CO_E_NOMEM;
    powersgd_list(&n, &n_q, &most_q, c);
    self->drawn = co_calloc(most_q + 1, sizeof(*self->drawn));
    if (!self->drawn)
        return CO_E_NOMEM;
    CO_TRY(co_store_take_array(&self->block, c->store, n + (self->warm_start ? n_q : 0) + 1));
    at = self->block;
    for (size_t i = 0; i < c->n_piece; i++)
        at = powersgd_place(&self->message[i], at);
    self->most = self->block + n + (self->warm_start ? n_q : 0);
    if (!self->warm_start)
        return CO_OK;
    CO_TRY(co_store_take_array(&self->last, c->store, c->store->n));
    return powersgd_begin(c, at);
}

/* The matrix of a part: this rank's gradient, plus its memory if there is one. */
static float *powersgd_matrix(const co_compressor *c, const powersgd_part *part)
{
    return (c->memory ? c->memory : c->store->grad) + part->begin;
}

static co_status powersgd_project(co_compressor *c, const powersgd_part *part)
{
    const powersgd_state *self = c->self;
    const co_store *store = c->store;
    float *m = powersgd_matrix(c, part), *q = part->q;

    if (c->memory)
        store->vector->add(store->queue, m, store->grad + part->begin,
                           part->shape.rows * part->shape.cols);
    if (self->last)
        q = self->last + part->begin;
    else
        CO_TRY(powersgd_draw(c, q, part, c->step));
    store->vector->matrix_times(store->queue, part->p, m, q, &part->shape);
    return CO_OK;
}

static co_status powersgd_sum(const co_compressor *c, co_piece *piece, float *x, size_t n)
{
    return co_compress_send(&piece->request, c,
                            (co_coll_args){.coll = CO_COLL_ALLREDUCE,
                                           .in = x,
                                           .out = x,
                                           .count = n,
                                           .dtype = CO_F32,
                                           .op = CO_SUM});
}

static co_status powersgd_post(co_compressor *c, co_piece *piece)
{
    const powersgd_state *self = c->self;
    const powersgd_message *message = &self->message[piece->index];
    const co_store *store = c->store;

    for (size_t i = 0; i < message->n_part; i++) {
        const powersgd_part *part = &message->part[i];

        if (part->shape.rank)
            CO_TRY(powersgd_project(c, part));
        else
            store->vector->copy(store->queue, part->p, store->grad + part->begin, part->shape.rows);
    }
    return powersgd_sum(c, piece, message->p, message->n_p);
}

/* P is complete: compute this rank's Q of the part, and what they leave of the matrix. */
static void powersgd_take_p(co_compressor *c, const powersgd_part *part)
{
    const co_store *store = c->store;
    const co_vector_ops *vector = store->vector;
    float *m = powersgd_matrix(c, part);

    if (part->shape.rank == 0) {
        vector->copy(store->queue, store->grad + part->begin, part->p, part->shape.rows);
        return;
    }
    vector->matrix_orthonormalize(store->queue, part->p, &part->shape);
    vector->matrix_transposed_times(store->queue, part->q, m, part->p, &part->shape);
    if (c->memory)
        vector->matrix_add_outer(store->queue, m, -1, part->p, part->q, &part->shape);
}

/* Q for the next step, orthonormal: only its span matters, and long columns would hide short ones.
   A column that is zero would stay so, and one that is not finite, as all are then: it becomes the
   initial one. */
static void powersgd_keep(const co_compressor *c, const powersgd_part *part)
{
    const powersgd_state *self = c->self;
    const co_vector_ops *vector = c->store->vector;
    const co_vector_matrix turned = {.rows = part->shape.cols, .rank = part->shape.rank};
    const size_t cols = part->shape.cols;
    float *last = self->last + part->begin;
    co_queue *queue = c->store->queue;

    vector->copy(queue, last, part->q, part->shape.rank * cols);
    vector->matrix_orthonormalize(queue, last, &turned);
    for (size_t k = 0; k < part->shape.rank; k++) {
        vector->max_abs(queue, self->most, last + k * cols, cols);
        vector->copy_unless(queue, self->most, last + k * cols, part->fresh + k * cols, cols);
    }
}

/* Q is complete: compute the gradient. */
static void powersgd_take_q(co_compressor *c, const powersgd_part *part)
{
    const powersgd_state *self = c->self;
    const size_t n = part->shape.rows * part->shape.cols;
    const co_vector_ops *vector = c->store->vector;
    co_queue *queue = c->store->queue;
    float *grad = c->store->grad + part->begin;

    if (part->shape.rank == 0)
        return;
    if (self->last)
        powersgd_keep(c, part);
    if (c->memory) {
        vector->max_abs(queue, self->most, part->q, part->shape.rank * part->shape.cols);
        vector->copy_unless(queue, self->most, c->memory + part->begin, NULL, n);
    }
    vector->zero(queue, grad, n);
    vector->matrix_add_outer(queue, grad, 1, part->p, part->q, &part->shape);
}

static co_status powersgd_take(co_compressor *c, co_piece *piece)
{
    const powersgd_state *self = c->self;
    const powersgd_message *message = &self->message[piece->index];

    for (size_t i = 0; i < message->n_part; i++)
        if (piece->round == 0)
            powersgd_take_p(c, &message->part[i]);
        else
            powersgd_take_q(c, &message->part[i]);
    if (piece->round > 0 || message->n_q == 0)
        return CO_OK;
    return powersgd_sum(c, piece, message->q, message->n_q);
}

static float *powersgd_persistent(bool *share, const co_compressor *c, size_t i)
{
    const powersgd_state *self = c->self;

    *share = false;
    return i == 0 ? self->last : NULL;
}

static void powersgd_fini(co_compressor *c)
{
    powersgd_state *self = c->self;

    co_free(self->message);
    co_free(self->part);
    co_free(self->drawn);
    co_store_give_array(c->store, self->block);
    co_store_give_array(c->store, self->last);
}

const co_compressor_ops co_compressor_powersgd = {
    .name = "powersgd",
    .summary = "each layer's gradient as a product of two thin matrices (PowerSGD)",
    .keys = powersgd_keys,
    .self_size = sizeof(powersgd_state),
    .whole_tensors = true,
    .queued = true,
    .init = powersgd_init,
    .post = powersgd_post,
    .take = powersgd_take,
    .persistent = powersgd_persistent,
    .fini = powersgd_fini,
};
