/*
 * compress.c - when each piece of the gradient is compressed, and the memory of what was not sent
 * (error feedback: Seide et al., "1-Bit Stochastic Gradient Descent", INTERSPEECH 2014; Stich,
 * Cordonnier and Jaggi, arXiv:1809.07599; Karimireddy et al., arXiv:1901.09847):
 *
 *   p_k = g_k + e_k,    e_k <- p_k - C(p_k),    g = sum over ranks of C(p_k)
 *
 * Over all steps, the sum of applied gradients plus the memories equals the sum of gradients.
 *
 * Does not know how a compressor works, or any by name.
 */
#include "strategy/compress.h"

#include <string.h>

#include "comm/queued.h"
#include "core/mem.h"
#include "device/device.h"
#include "strategy/bucket.h"
#include "tensor/store.h"

#define COMPRESS_MIB 4 /* size of a piece */

struct co_compress {
    co_compressor c;
    int64_t start;
    bool error_feedback;
    size_t n_posted, ready; /* number of pieces posted; [0, ready) is final */
    uint64_t bytes[2];
    _Alignas(16) unsigned char self[]; /* the compressor's keys and state */
};

const co_key co_compressor_common_keys[] = {
    {.name = "start",
     .type = CO_KEY_INT,
     .offset = offsetof(co_compress, start),
     .fallback = "0",
     .min = 0,
     .max = 1e15,
     .help = "steps whose gradients are sent whole first"},
    {.name = "error_feedback",
     .type = CO_KEY_BOOL,
     .offset = offsetof(co_compress, error_feedback),
     .fallback = "true",
     .help = "keep what is not sent and add it to the next gradient; false: discard it"},
    CO_KEYS_END,
};

static co_status compress_read(co_compress *compress, const co_value *map)
{
    co_arena *arena = co_arena_create();
    co_status st;

    if (!arena)
        return CO_E_NOMEM;
    st = co_plugin_read(compress, compress->c.ops, &co_compressor_plugins,
                        co_compressor_common_keys, offsetof(co_compress, self), map, arena);
    co_arena_destroy(arena);
    return st;
}

/* End of a piece whose bucket would end at `end`; extended to the end of a tensor if the compressor
   needs whole ones. */
static size_t compress_piece_end(const co_compressor *c, size_t *tensor, size_t end)
{
    const co_store *store = c->store;

    if (!c->ops->whole_tensors || store->n_tensor == 0)
        return end;
    while (*tensor < store->n_tensor && store->tensor[*tensor].begin < end)
        ++*tensor;
    return *tensor < store->n_tensor ? store->tensor[*tensor].begin : store->n;
}

/* The cut depends only on the store and the size, so it is the same on every rank. It affects what
   is sent, so `auto` does not depend on where ranks are. */
static co_status compress_cut(co_compressor *c, double bucket_mib)
{
    const size_t n = c->store->n;
    const size_t full = co_bucket_elements(bucket_mib > 0 ? bucket_mib : COMPRESS_MIB);
    size_t begin = 0, tensor = 0;

    c->piece = co_calloc(co_bucket_count(n, full), sizeof(*c->piece));
    if (!c->piece)
        return CO_E_NOMEM;
    while (begin < n) {
        const size_t first = tensor;
        const size_t end = compress_piece_end(c, &tensor, co_bucket_end(begin, n, full));

        c->piece[c->n_piece] = (co_piece){.index = c->n_piece,
                                          .begin = begin,
                                          .end = end,
                                          .first_tensor = first,
                                          .n_tensor = tensor - first};
        c->n_piece++;
        begin = end;
    }
    return CO_OK;
}

static co_status compress_setup(co_compress *compress, const co_value *map, double bucket_mib)
{
    co_compressor *c = &compress->c;

    CO_TRY(compress_read(compress, map));
    CO_TRY(compress_cut(c, bucket_mib));
    if (compress->error_feedback)
        CO_TRY(co_store_take_array(&c->memory, c->store, c->store->n));
    if (c->ops->init)
        CO_PLUGIN_TRY(&co_compressor_plugins, c->ops, init, (c));
    return CO_OK;
}

co_status co_compress_create(co_compress **out, const co_value *value, const co_strategy *strategy,
                             double bucket_mib)
{
    const co_compressor_ops *ops;
    const co_value none = co_value_absent(value);
    const co_value *map = NULL;
    const char *name = NULL;
    co_compress *compress;
    co_status st;

    *out = NULL;
    if (value)
        CO_TRY(co_value_plugin(&name, &map, value, "compress"));
    if (!name || strcmp(name, "none") == 0)
        return CO_OK;
    ops = co_plugin_find(&co_compressor_plugins, name);
    if (!ops)
        return co_plugin_unknown(&co_compressor_plugins, name, value, "none");
    if (strategy->tree)
        return co_value_fail(value,
                             "compress: what is sent depends on the number of ranks, and shards "
                             "make the result independent of it; leave compress out, or let "
                             "shards be auto");
    if (!co_device_is_host(strategy->store->device) && !ops->queued)
        return co_value_fail(value,
                             "compress: %s makes up what is sent on the host, which cannot "
                             "access gradients on the device %s; use another, or leave it out",
                             name, co_device_name(strategy->store->device));
    compress = co_calloc(1, sizeof(*compress) + ops->self_size);
    if (!compress)
        return CO_E_NOMEM;
    compress->c = (co_compressor){
        .ops = ops, .self = compress->self, .comm = strategy->comm, .store = strategy->store};
    st = compress_setup(compress, map ? map : &none, bucket_mib);
    if (st != CO_OK) {
        co_compress_destroy(compress);
        return co_value_place(st, value);
    }
    *out = compress;
    return CO_OK;
}

void co_compress_destroy(co_compress *compress)
{
    bool told = false;

    if (!compress)
        return;
    for (size_t i = 0; i < compress->c.n_piece; i++) {
        co_request *request = compress->c.piece[i].request;

        if (request && !told)
            co_comm_abandon(compress->c.comm);
        told = told || request;
        co_request_destroy(request);
    }
    if (compress->c.ops->fini)
        compress->c.ops->fini(&compress->c);
    co_store_give_array(compress->c.store, compress->c.memory);
    co_free(compress->c.piece);
    co_free(compress);
}

bool co_compress_is_on(const co_compress *compress)
{
    return compress && compress->c.step >= (uint64_t)compress->start;
}

co_status co_compress_send(co_request **request, const co_compressor *c, co_coll_args args)
{
    args.queue = c->store->queue;
    return co_comm_enqueue(request, c->comm, &args);
}

/* Post every piece whose end is final. */
static co_status compress_post(co_compress *compress)
{
    co_compressor *c = &compress->c;

    for (; compress->n_posted < c->n_piece; compress->n_posted++) {
        co_piece *piece = &c->piece[compress->n_posted];

        if (piece->end > compress->ready)
            break;
        piece->round = 0;
        CO_PLUGIN_TRY(&co_compressor_plugins, c->ops, post, (c, piece));
    }
    return CO_OK;
}

/* Count the bytes sent since `before`, also after a failure; returns `st`. */
static co_status compress_count(co_compress *compress, uint64_t before, co_status st)
{
    compress->bytes[1] += co_comm_bytes_sent(compress->c.comm) - before;
    return st;
}

co_status co_compress_ready(co_compress *compress, size_t begin, size_t end)
{
    const uint64_t sent = co_comm_bytes_sent(compress->c.comm);
    co_status st;

    /* a range after a gap waits for co_compress_finish */
    if (begin <= compress->ready && end > compress->ready)
        compress->ready = end;
    st = compress_post(compress);
    if (st == CO_OK)
        st = co_comm_progress(compress->c.comm);
    return compress_count(compress, sent, st);
}

/* Take one message of every piece in flight; *more: some have another round. */
static co_status compress_round(bool *more, co_compressor *c)
{
    *more = false;
    for (size_t i = 0; i < c->n_piece; i++) {
        co_piece *piece = &c->piece[i];

        if (!piece->request)
            continue;
        CO_TRY(co_request_order(piece->request, c->store->queue));
        co_request_destroy(piece->request);
        piece->request = NULL;
        CO_PLUGIN_TRY(&co_compressor_plugins, c->ops, take, (c, piece));
        piece->round++;
        *more = *more || piece->request;
    }
    return CO_OK;
}

static co_status compress_complete(co_compress *compress)
{
    bool more = true;

    CO_TRY(compress_post(compress));
    while (more)
        CO_TRY(compress_round(&more, &compress->c));
    return CO_OK;
}

co_status co_compress_finish(co_compress *compress)
{
    const co_compressor *c = &compress->c;
    const uint64_t sent = co_comm_bytes_sent(c->comm);

    compress->ready = c->store->n;
    CO_TRY(compress_count(compress, sent, compress_complete(compress)));
    compress->n_posted = compress->ready = 0;
    if (co_comm_size(c->comm) > 1)
        compress->bytes[0] += c->store->n * sizeof(float);
    return CO_OK;
}

void co_compress_next(co_compress *compress)
{
    if (compress)
        compress->c.step++;
}

void co_compress_resume(co_compress *compress, uint64_t step)
{
    if (compress)
        compress->c.step = step;
}

static float *compress_persistent(bool *share, const co_compress *compress, size_t i)
{
    const co_compressor *c;

    *share = false;
    if (!compress)
        return NULL;
    c = &compress->c;
    if (c->memory && i == 0) {
        *share = true;
        return c->memory;
    }
    return c->ops->persistent ? c->ops->persistent(share, c, i - (c->memory ? 1 : 0)) : NULL;
}

/* Only parts of a sum of gradients scale with the loss; a direction that is the same on all ranks
   does not. */
void co_compress_rescale(co_compress *compress, double factor)
{
    bool share;
    float *array;

    for (size_t i = 0; (array = compress_persistent(&share, compress, i)) != NULL; i++) {
        const co_store *store = compress->c.store;

        if (share)
            store->vector->scale(store->queue, array, factor, array, store->n);
    }
}

float *co_compress_persistent(const co_compress *compress, size_t i)
{
    bool share;

    return compress_persistent(&share, compress, i);
}

bool co_compress_is_partial_sum(const co_compress *compress, size_t i)
{
    bool share;

    return compress_persistent(&share, compress, i) && share;
}

const uint64_t *co_compress_bytes(const co_compress *compress)
{
    return compress->bytes;
}
