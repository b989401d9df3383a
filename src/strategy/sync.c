/*
 * sync.c - synchronous SGD: every step, the gradients of all ranks are added up before any weight
 * moves, so all ranks hold the same weights.
 *
 * Gradients are already divided by the size of the global batch, so their plain sum is the
 * gradient of the whole batch however unevenly its samples lie: sum of m_k/n g_k. The sum is
 * taken bucket by bucket, in the background of the backward pass (Li et al., "PyTorch
 * Distributed", VLDB 2020). Buckets are posted in one order on every rank, at the latest in
 * before_update: a rank without samples takes part like any other.
 */
#include "core/mem.h"
#include "strategy/bucket.h"
#include "strategy/strategy.h"

typedef struct sync_bucket {
    size_t begin, end;
    co_request *request; /* owned; NULL: not posted */
} sync_bucket;

typedef struct sync_state {
    double bucket_mib;
    int reduction;
    size_t n_bucket;
    sync_bucket *bucket; /* owned */
    size_t n_posted;     /* buckets of this step under way */
    size_t ready;        /* gradients [0, ready) of this step are final */
} sync_state;

enum { SYNC_SUM, SYNC_MEAN };
static const char *const sync_reductions[] = {"sum", "mean", NULL};

static const co_key sync_keys[] = {
    {.name = "reduction",
     .type = CO_KEY_CHOICE,
     .offset = offsetof(sync_state, reduction),
     .fallback = "sum",
     .choices = sync_reductions,
     .help = "sum: the gradient of the whole batch; mean: that divided by the ranks once more"},
    {.name = "bucket_mib",
     .type = CO_KEY_REAL,
     .offset = offsetof(sync_state, bucket_mib),
     .fallback = "4",
     .min = 1e-4,
     .max = 4096,
     .help = "MiB of gradients that are reduced in one piece"},
    CO_KEYS_END,
};

static co_status sync_init(co_strategy *strategy)
{
    sync_state *self = strategy->self;
    const size_t n = strategy->store->n, full = co_bucket_elements(self->bucket_mib);
    size_t begin = 0;

    self->n_bucket = co_bucket_count(n, full);
    self->bucket = co_calloc(self->n_bucket, sizeof(*self->bucket));
    if (!self->bucket)
        return CO_E_NOMEM;
    for (size_t i = 0; i < self->n_bucket; i++) {
        self->bucket[i].begin = begin;
        self->bucket[i].end = begin = co_bucket_end(begin, n, full);
    }
    return CO_OK;
}

static co_status sync_start(co_strategy *strategy)
{
    const co_store *store = strategy->store;

    CO_TRY(co_comm_bcast(strategy->comm, store->param, store->n, CO_F32, 0));
    return co_comm_bcast(strategy->comm, store->buffer, store->n_buffer, CO_F32, 0);
}

/* Start to reduce, in place, every bucket that ends by self->ready. */
static co_status sync_post(co_strategy *strategy)
{
    sync_state *self = strategy->self;
    const co_reduce_op op = self->reduction == SYNC_MEAN ? CO_AVG : CO_SUM;

    for (; self->n_posted < self->n_bucket; self->n_posted++) {
        sync_bucket *bucket = &self->bucket[self->n_posted];
        float *grad = strategy->store->grad + bucket->begin;

        if (bucket->end > self->ready)
            break;
        CO_TRY(co_comm_iallreduce(&bucket->request, strategy->comm, grad, grad,
                                  bucket->end - bucket->begin, CO_F32, op));
    }
    return CO_OK;
}

static co_status sync_grad_ready(co_strategy *strategy, size_t begin, size_t end)
{
    sync_state *self = strategy->self;

    /* A range beyond a hole waits for before_update. */
    if (begin <= self->ready && end > self->ready)
        self->ready = end;
    CO_TRY(sync_post(strategy));
    return co_comm_progress(strategy->comm);
}

static co_status sync_before_update(co_strategy *strategy, const co_strategy_step *step)
{
    sync_state *self = strategy->self;

    (void)step;
    self->ready = strategy->store->n;
    CO_TRY(sync_post(strategy));
    for (size_t i = 0; i < self->n_bucket; i++) {
        sync_bucket *bucket = &self->bucket[i];

        CO_TRY(co_request_wait(bucket->request));
        co_request_destroy(bucket->request);
        bucket->request = NULL;
    }
    self->n_posted = 0;
    self->ready = 0;
    return CO_OK;
}

static void sync_fini(co_strategy *strategy)
{
    sync_state *self = strategy->self;
    bool told = false;

    if (!self->bucket)
        return;
    for (size_t i = 0; i < self->n_bucket; i++) {
        co_request *request = self->bucket[i].request;

        /* This rank failed in the middle of a step: the others need not wait for it. */
        if (request && !told)
            co_comm_abort(strategy->comm, CO_E_FAILED, co_error_message());
        told = told || request;
        co_request_destroy(request);
    }
    co_free(self->bucket);
}

const co_strategy_ops co_strategy_sync = {
    .name = "sync",
    .summary = "add up the gradients of all ranks at every step (synchronous SGD)",
    .keys = sync_keys,
    .self_size = sizeof(sync_state),
    .init = sync_init,
    .start = sync_start,
    .grad_ready = sync_grad_ready,
    .before_update = sync_before_update,
    .fini = sync_fini,
};
