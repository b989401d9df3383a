/*
 * loader_create.c - create and destroy a loader: its slots and threads.
 */
#include <signal.h>
#include <string.h>

#include "core/mem.h"
#include "core/sized.h"
#include "data/loader_internal.h"
#include "device/device.h"

#define LOADER_DEPTH     4
#define LOADER_CLAIMS    4  /* per thread and batch, if the batch is large enough */
#define LOADER_MAX_CLAIM 64 /* samples */
/* Bytes of a ring that is so large that a batch is evicted from the caches before it is used. */
#define LOADER_STREAM ((size_t)16 << 20)

/* Upper limit on the samples of a batch. */
static uint64_t loader_max_batch(const co_loader *l)
{
    uint64_t most = 0;

    for (int rank = l->rank; rank < l->rank + l->shards; rank++)
        most += co_sampler_local_max(l->sampler, rank);
    return most;
}

static co_status loader_make_slots(co_loader *l)
{
    co_device *device = co_queue_device(l->queue);
    const uint64_t most = loader_max_batch(l);

    l->slot = co_calloc(l->n_slot, sizeof(*l->slot));
    if (!l->slot)
        return CO_E_NOMEM;
    for (size_t i = 0; i < l->n_slot; i++)
        CO_TRY(loader_slot_make(&l->slot[i], l->dataset, most, l->labels, device));
    l->stream = most * l->sample_size * l->n_slot > LOADER_STREAM / sizeof(float);
    l->scratch.stream = l->stream;
    return CO_OK;
}

/* Reader threads block all signals: these are for the thread that runs the training. */
static co_status loader_start(co_loader *l, int threads)
{
    sigset_t all, before;
    int error = 0;

    if (threads == 0)
        return CO_OK;
    l->reader = co_calloc((size_t)threads, sizeof(*l->reader));
    if (!l->reader)
        return CO_E_NOMEM;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (l->n_thread < threads && error == 0) {
        error = pthread_create(&l->reader[l->n_thread].thread, NULL, loader_read_ahead, l);
        l->n_thread += error == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return co_fail(CO_E_FAILED, "cannot start a reader thread: %s; set loader.threads to 0",
                       strerror(error));
    return CO_OK;
}

static uint64_t loader_claim_size(const co_loader *l, int threads)
{
    const uint64_t most = loader_max_batch(l);
    const uint64_t claim = threads ? most / ((uint64_t)threads * LOADER_CLAIMS) : most;

    return claim < 1 ? 1 : threads && claim > LOADER_MAX_CLAIM ? LOADER_MAX_CLAIM : claim;
}

static co_status loader_check(const co_loader_options *o)
{
    if (!o->dataset || !o->sampler)
        return co_fail(CO_E_USAGE, "loader: give a data set and a sampler");
    if (o->threads < 0 || o->depth < 0 || o->shards < 0)
        return co_fail(CO_E_USAGE, "loader: threads, depth and shards cannot be negative");
    CO_TRY(co_sampler_fits(o->sampler, o->dataset, o->rank, o->shards));
    if (o->first_step >= co_sampler_steps(o->sampler))
        return co_fail(CO_E_USAGE, "loader: cannot start at step %llu of an epoch of %llu",
                       (unsigned long long)o->first_step,
                       (unsigned long long)co_sampler_steps(o->sampler));
    return CO_OK;
}

CO_SIZED_END(co_loader_options, queue);

static co_status loader_create(co_loader **out, const co_loader_options *options, bool labels)
{
    co_loader *l;
    co_status st;

    CO_TRY(loader_check(options));
    l = co_calloc(1, sizeof(*l));
    if (!l)
        return CO_E_NOMEM;
    l->labels = labels;
    l->dataset = options->dataset;
    l->sampler = options->sampler;
    l->queue = options->queue;
    l->rank = options->rank;
    l->shards = options->shards ? options->shards : 1;
    l->seed = options->seed;
    l->skip_bad = co_dataset_skips_bad(l->dataset);
    l->sample_size = (size_t)co_shape_count(co_dataset_shape(l->dataset));
    l->claim = loader_claim_size(l, options->threads);
    l->epoch = options->first_epoch;
    l->step = options->first_step;
    /* Besides those read ahead: one that the consumer holds, and one that its queue may read. */
    l->n_slot = options->threads ? (size_t)(options->depth ? options->depth : LOADER_DEPTH) + 1 : 1;
    l->n_slot += l->queue ? 1 : 0;
    pthread_mutex_init(&l->plan_lock, NULL);
    pthread_mutex_init(&l->queue_lock, NULL);
    pthread_cond_init(&l->filled, NULL);
    pthread_cond_init(&l->freed, NULL);
    st = loader_make_slots(l);
    if (st == CO_OK)
        st = loader_expect_begin(l, loader_max_batch(l));
    if (st == CO_OK)
        st = loader_start(l, options->threads);
    if (st != CO_OK) {
        co_loader_destroy(l);
        return st;
    }
    *out = l;
    return CO_OK;
}

co_status co_loader_create_sized(co_loader **out, const co_loader_options *given, size_t size)
{
    co_loader_options options;

    CO_TRY(CO_SIZED_READ(&options, given, size, co_loader_options));
    return loader_create(out, &options, false);
}

co_status co_loader_create_labels(co_loader **out, const co_loader_options *options)
{
    return loader_create(out, options, true);
}

static void loader_stop(co_loader *l)
{
    pthread_mutex_lock(&l->queue_lock);
    atomic_store(&l->stop, true);
    pthread_cond_broadcast(&l->freed);
    pthread_mutex_unlock(&l->queue_lock);
    for (int i = 0; i < l->n_thread; i++)
        pthread_join(l->reader[i].thread, NULL);
    loader_expect_end(l);
}

void co_loader_destroy(co_loader *loader)
{
    if (!loader)
        return;
    loader_stop(loader);
    (void)co_queue_wait(loader->queue, CO_DEVICE_WAIT_MS); /* it may still read a slot */
    for (size_t i = 0; loader->slot && i < loader->n_slot; i++)
        loader_slot_free(&loader->slot[i], co_queue_device(loader->queue));
    co_data_scratch_free(&loader->scratch);
    co_free(loader->slot);
    co_free(loader->reader);
    pthread_cond_destroy(&loader->freed);
    pthread_cond_destroy(&loader->filled);
    pthread_mutex_destroy(&loader->queue_lock);
    pthread_mutex_destroy(&loader->plan_lock);
    co_free(loader);
}
