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
#include "strategy/compress.h"
#include "tensor/store.h"

/* A tensor of a piece, or the whole piece if its tensors are unknown. */
typedef struct powersgd_part {
    size_t begin;           /* offset in the store */
    co_vector_matrix shape; /* rank 0: `rows` elements that are sent whole */
    float *p, *q;           /* messages: P (rank, rows) or (rows); Q (rank, cols) */
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
    float *block;              /* owned; memory of all p and q */
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

/* Column k of a tensor's initial Q; the same on all ranks. */
static void powersgd_draw(float *q, const powersgd_part *part, size_t k, uint64_t step)
{
    const co_rng rng = {.stream = CO_RNG_COMPRESS, .step = step, .item = part->number};

    co_rng_normal(q, &rng, k * part->shape.cols, part->shape.cols);
}

static void powersgd_draw_all(float *q, const powersgd_part *part, uint64_t step)
{
    for (size_t k = 0; k < part->shape.rank; k++)
        powersgd_draw(q + k * part->shape.cols, part, k, step);
}

static co_status powersgd_init(co_compressor *c)
{
    powersgd_state *self = c->self;
    size_t n_part = 0, n = 0;
    float *at;

    self->message = co_calloc(c->n_piece, sizeof(*self->message));
    self->part = co_calloc(c->store->n_tensor + c->n_piece, sizeof(*self->part));
    if (self->warm_start)
        self->last = co_calloc_aligned(c->store->n, sizeof(float));
    if (!self->message || !self->part || (self->warm_start && !self->last))
        return CO_E_NOMEM;
    for (size_t i = 0; i < c->n_piece; i++) {
        powersgd_message *message = &self->message[i];

        message->part = self->part + n_part;
        powersgd_list_parts(message, c, &c->piece[i]);
        n_part += message->n_part;
        n += message->n_p + message->n_q;
    }
    self->block = at = co_calloc_aligned(n, sizeof(*at));
    if (!at)
        return CO_E_NOMEM;
    for (size_t i = 0; i < c->n_piece; i++)
        at = powersgd_place(&self->message[i], at);
    for (size_t i = 0; i < n_part && self->last; i++)
        powersgd_draw_all(self->last + self->part[i].begin, &self->part[i], 0);
    return CO_OK;
}

/* The matrix of a part: this rank's gradient, plus its memory if there is one. */
static float *powersgd_matrix(const co_compressor *c, const powersgd_part *part)
{
    return (c->memory ? c->memory : c->store->grad) + part->begin;
}

static void powersgd_project(co_compressor *c, const powersgd_part *part)
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
        powersgd_draw_all(q, part, c->step);
    store->vector->matrix_times(store->queue, part->p, m, q, &part->shape);
}

static co_status powersgd_post(co_compressor *c, co_piece *piece)
{
    const powersgd_state *self = c->self;
    const powersgd_message *message = &self->message[piece->index];
    const co_store *store = c->store;

    for (size_t i = 0; i < message->n_part; i++) {
        const powersgd_part *part = &message->part[i];

        if (part->shape.rank)
            powersgd_project(c, part);
        else
            store->vector->copy(store->queue, part->p, store->grad + part->begin, part->shape.rows);
    }
    return co_comm_iallreduce(&piece->request, c->comm, message->p, message->p, message->n_p,
                              CO_F32, CO_SUM);
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
   A column that is zero would stay so, and is redrawn. */
static co_status powersgd_keep(const co_compressor *c, const powersgd_part *part, bool finite)
{
    const powersgd_state *self = c->self;
    const co_store *store = c->store;
    const co_vector_matrix turned = {.rows = part->shape.cols, .rank = part->shape.rank};
    const size_t cols = part->shape.cols;
    float *last = self->last + part->begin;

    store->vector->copy(store->queue, last, part->q, part->shape.rank * cols);
    store->vector->matrix_orthonormalize(store->queue, last, &turned);
    for (size_t k = 0; k < part->shape.rank; k++) {
        float most;

        CO_TRY(co_store_max_abs(&most, store, last + k * cols, cols));
        if (!finite || most == 0)
            powersgd_draw(last + k * cols, part, k, 0);
    }
    return CO_OK;
}

/* Q is complete: compute the gradient. */
static co_status powersgd_take_q(co_compressor *c, const powersgd_part *part)
{
    const powersgd_state *self = c->self;
    const size_t n = part->shape.rows * part->shape.cols;
    const co_store *store = c->store;
    float most;

    if (part->shape.rank == 0)
        return CO_OK;
    CO_TRY(co_store_max_abs(&most, store, part->q, part->shape.rank * part->shape.cols));
    if (self->last)
        CO_TRY(powersgd_keep(c, part, isfinite(most)));
    if (!isfinite(most) && c->memory)
        store->vector->zero(store->queue, c->memory + part->begin, n);
    store->vector->zero(store->queue, store->grad + part->begin, n);
    store->vector->matrix_add_outer(store->queue, store->grad + part->begin, 1, part->p, part->q,
                                    &part->shape);
    return CO_OK;
}

static co_status powersgd_take(co_compressor *c, co_piece *piece)
{
    const powersgd_state *self = c->self;
    const powersgd_message *message = &self->message[piece->index];

    for (size_t i = 0; i < message->n_part; i++)
        if (piece->round == 0)
            powersgd_take_p(c, &message->part[i]);
        else
            CO_TRY(powersgd_take_q(c, &message->part[i]));
    if (piece->round > 0 || message->n_q == 0)
        return CO_OK;
    return co_comm_iallreduce(&piece->request, c->comm, message->q, message->q, message->n_q,
                              CO_F32, CO_SUM);
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
    co_free(self->block);
    co_free(self->last);
}

const co_compressor_ops co_compressor_powersgd = {
    .name = "powersgd",
    .summary = "each layer's gradient as a product of two thin matrices (PowerSGD)",
    .keys = powersgd_keys,
    .self_size = sizeof(powersgd_state),
    .whole_tensors = true,
    .init = powersgd_init,
    .post = powersgd_post,
    .take = powersgd_take,
    .persistent = powersgd_persistent,
    .fini = powersgd_fini,
};
