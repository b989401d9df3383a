/*
 * loader.c - batches in the order of the plan, read ahead by threads.
 *
 * A ring of slots. Readers claim a few samples at a time, batch after batch in the plan's order, so
 * that all of them work on the batch that is needed first; the consumer takes whole batches in
 * order. A slot is free again once the consumer has moved on from it. Must not know what a batch is
 * for.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/fs.h"
#include "core/log.h"
#include "core/mem.h"
#include "data/loader_slot.h"

#define LOADER_DEPTH     4
#define LOADER_CLAIMS    4  /* of a thread in a batch, where it is large enough */
#define LOADER_MAX_CLAIM 64 /* samples */
#define LOADER_WARNINGS  3  /* of bad samples, in all */
/* Bytes of the ring from which on a batch is out of the caches before it is read. */
#define LOADER_PAST ((size_t)16 << 20)

/* Samples of one batch that a reader works on. */
typedef struct loader_claim {
    loader_slot *slot;
    uint64_t begin, end;
} loader_claim;

struct co_loader {
    const co_dataset *dataset; /* borrowed */
    co_sampler *sampler;       /* borrowed; under plan_lock */
    int rank, parts;
    uint64_t seed;
    size_t sample_size; /* floats */
    bool skip_bad, past;
    double wait_seconds;
    uint64_t bad; /* samples, of batches that the consumer has had */
    int warned;
    co_data_scratch scratch; /* of the calling thread, when there are no others */

    pthread_mutex_t plan_lock; /* the place in the plan; taken before queue_lock */
    uint64_t begun;            /* batches */
    loader_slot *open;         /* the last of them, while it has samples to claim; else NULL */
    uint64_t epoch, step;      /* of the next batch */

    pthread_mutex_t queue_lock;
    pthread_cond_t filled, freed;
    uint64_t taken; /* batches that the consumer has moved on from */
    bool borrowed;  /* the consumer has batch `taken` */
    atomic_bool stop;
    size_t n_slot;
    loader_slot *slot; /* batch i lies in slot i % n_slot */

    uint64_t claim; /* samples */
    int n_thread;
    atomic_int entered; /* threads */
    _Atomic uint64_t read_samples, read_bytes;
    _Atomic(const co_loader_observer *) observer;
    pthread_t *thread;
};

/* The plan's next batch, into a free slot. */
static co_status loader_plan(co_loader *l, loader_slot *slot)
{
    co_batch *batch = &slot->batch;

    batch->epoch = l->epoch;
    batch->step = l->step;
    batch->count = 0;
    batch->global = co_sampler_global(l->sampler, l->step);
    for (int rank = l->rank; rank < l->rank + l->parts; rank++) {
        CO_TRY(
            co_sampler_indices(l->sampler, slot->sample + batch->count, l->epoch, l->step, rank));
        batch->count += co_sampler_local(l->sampler, l->step, rank);
    }
    batch->local = batch->count;
    batch->bad = 0;
    slot->claimed = slot->done = 0;
    slot->status = CO_OK;
    if (++l->step == co_sampler_steps(l->sampler)) {
        l->step = 0;
        l->epoch++;
    }
    return CO_OK;
}

static void loader_note_bad(co_loader *l, loader_slot *slot, uint64_t k)
{
    pthread_mutex_lock(&l->queue_lock);
    if (slot->batch.bad == 0 || k < slot->first_bad) {
        slot->first_bad = k;
        snprintf(slot->bad_message, sizeof(slot->bad_message), "%s", co_error_message());
    }
    slot->batch.bad++;
    pthread_mutex_unlock(&l->queue_lock);
}

static co_status loader_draw(co_loader *l, loader_slot *slot, uint64_t k, uint32_t sample,
                             co_data_scratch *scratch)
{
    const co_augment_place place = {l->seed, slot->batch.epoch, sample};

    slot->sample[k] = sample;
    return co_dataset_draw(l->dataset, slot->input + k * l->sample_size, sample, &place, scratch);
}

/* The next sample of the set that has this label and can be read takes the place: any rank would
   find the same, and no count changes. */
static co_status loader_replace(co_loader *l, loader_slot *slot, uint64_t k,
                                co_data_scratch *scratch)
{
    const uint64_t count = co_dataset_count(l->dataset), bad = slot->sample[k];
    const int32_t label = slot->label[k];
    char last[LOADER_SLOT_MESSAGE];

    for (uint64_t i = bad + 1; i < bad + count; i++) {
        const uint32_t sample = (uint32_t)(i % count);
        co_status st;

        if (co_dataset_label(l->dataset, sample) != label)
            continue;
        st = loader_draw(l, slot, k, sample, scratch);
        if (st != CO_E_DATA)
            return st;
    }
    snprintf(last, sizeof(last), "%s", co_error_message());
    return co_fail(CO_E_DATA, "on_bad_sample: skip: no sample of label %d can be read: %s",
                   (int)label, last);
}

/* The message names the sample; what to do about it is a matter of data sets. */
static co_status loader_refuse(void)
{
    char why[LOADER_SLOT_MESSAGE];

    snprintf(why, sizeof(why), "%s", co_error_message());
    return co_fail(CO_E_DATA, "%s; mend it, or go on without it: data.on_bad_sample: skip", why);
}

static co_status loader_read_one(co_loader *l, loader_slot *slot, uint64_t k,
                                 co_data_scratch *scratch)
{
    co_status st = co_dataset_take_label(&slot->label[k], l->dataset, slot->sample[k]);

    if (st != CO_OK)
        return st;
    st = loader_draw(l, slot, k, slot->sample[k], scratch);
    if (st != CO_E_DATA)
        return st;
    if (!l->skip_bad)
        return loader_refuse();
    loader_note_bad(l, slot, k);
    return loader_replace(l, slot, k, scratch);
}

/* As reader thread `reader`. */
static co_status loader_read(co_loader *l, const loader_claim *claim, co_data_scratch *scratch,
                             int reader)
{
    const co_loader_observer *observer = atomic_load(&l->observer);
    const uint64_t begin_ns = observer ? co_clock_ns() : 0, bytes = scratch->bytes;

    for (uint64_t k = claim->begin; k < claim->end; k++) {
        if (atomic_load_explicit(&l->stop, memory_order_relaxed))
            break;
        CO_TRY(loader_read_one(l, claim->slot, k, scratch));
    }
    atomic_fetch_add(&l->read_samples, claim->end - claim->begin);
    atomic_fetch_add(&l->read_bytes, scratch->bytes - bytes);
    if (observer)
        observer->read(observer->arg, reader, begin_ns, claim->end - claim->begin);
    return CO_OK;
}

static void loader_finish(loader_slot *slot)
{
    slot->batch.bad_message = slot->batch.bad ? slot->bad_message : NULL;
    slot->ready = true;
}

/* Wait until batch `index` has a free slot; false when the loader is to end. */
static bool loader_wait_free(co_loader *l, uint64_t index)
{
    bool go_on;

    pthread_mutex_lock(&l->queue_lock);
    while (!atomic_load(&l->stop) && index >= l->taken + l->n_slot)
        pthread_cond_wait(&l->freed, &l->queue_lock);
    go_on = !atomic_load(&l->stop);
    pthread_mutex_unlock(&l->queue_lock);
    return go_on;
}

/* The next samples to read: of the open batch, or of a new one. Under plan_lock. */
static co_status loader_claim_next(loader_claim *out, co_loader *l)
{
    loader_slot *slot = l->open;
    co_status st = CO_OK;

    if (!slot) {
        slot = &l->slot[l->begun++ % l->n_slot];
        st = loader_plan(l, slot);
        if (st != CO_OK)
            slot->batch.count = 0;
    }
    *out = (loader_claim){slot, slot->claimed, slot->claimed + l->claim};
    if (out->end > slot->batch.count)
        out->end = slot->batch.count;
    slot->claimed = out->end;
    l->open = out->end < slot->batch.count ? slot : NULL;
    return st;
}

static void loader_hand_over(co_loader *l, const loader_claim *claim, co_status st)
{
    loader_slot *slot = claim->slot;

    pthread_mutex_lock(&l->queue_lock);
    if (st != CO_OK && slot->status == CO_OK) {
        slot->status = st;
        snprintf(slot->message, sizeof(slot->message), "%s", co_error_message());
    }
    slot->done += claim->end - claim->begin;
    if (slot->done == slot->batch.count) {
        loader_finish(slot);
        pthread_cond_signal(&l->filled);
    }
    pthread_mutex_unlock(&l->queue_lock);
}

void co_loader_observe(co_loader *l, const co_loader_observer *observer)
{
    atomic_store(&l->observer, observer);
}

static void *loader_thread(void *arg)
{
    co_loader *l = arg;
    co_data_scratch scratch = {.past = l->past};
    const int reader = atomic_fetch_add(&l->entered, 1);

    for (;;) {
        loader_claim claim;
        co_status st;

        pthread_mutex_lock(&l->plan_lock);
        if (!l->open && !loader_wait_free(l, l->begun)) {
            pthread_mutex_unlock(&l->plan_lock);
            co_data_scratch_free(&scratch);
            return NULL;
        }
        st = loader_claim_next(&claim, l);
        pthread_mutex_unlock(&l->plan_lock);
        if (st == CO_OK)
            st = loader_read(l, &claim, &scratch, reader);
        loader_hand_over(l, &claim, st);
    }
}

/* Samples of a batch. */
static uint64_t loader_most(const co_loader *l)
{
    uint64_t most = 0;

    for (int rank = l->rank; rank < l->rank + l->parts; rank++)
        most += co_sampler_local_max(l->sampler, rank);
    return most;
}

static co_status loader_make_slots(co_loader *l)
{
    const uint64_t most = loader_most(l);

    l->slot = co_calloc(l->n_slot, sizeof(*l->slot));
    if (!l->slot)
        return CO_E_NOMEM;
    for (size_t i = 0; i < l->n_slot; i++)
        CO_TRY(loader_slot_make(&l->slot[i], l->dataset, most));
    l->past = most * l->sample_size > LOADER_PAST / sizeof(float) / l->n_slot;
    l->scratch.past = l->past;
    return CO_OK;
}

/* Signals are for the thread that runs the training. */
static co_status loader_start(co_loader *l, int threads)
{
    sigset_t all, before;
    int error = 0;

    if (threads == 0)
        return CO_OK;
    l->thread = co_calloc((size_t)threads, sizeof(*l->thread));
    if (!l->thread)
        return CO_E_NOMEM;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (l->n_thread < threads && error == 0) {
        error = pthread_create(&l->thread[l->n_thread], NULL, loader_thread, l);
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
    const uint64_t most = loader_most(l);
    const uint64_t claim = threads ? most / ((uint64_t)threads * LOADER_CLAIMS) : most;

    return claim < 1 ? 1 : threads && claim > LOADER_MAX_CLAIM ? LOADER_MAX_CLAIM : claim;
}

static co_status loader_check(const co_loader_options *o)
{
    if (o->threads < 0 || o->depth < 0 || o->parts < 0)
        return co_fail(CO_E_USAGE, "loader: threads, depth and parts cannot be negative");
    CO_TRY(co_sampler_fits(o->sampler, o->dataset, o->rank, o->parts));
    if (o->first_step >= co_sampler_steps(o->sampler))
        return co_fail(CO_E_USAGE, "loader: cannot start at step %llu of an epoch of %llu",
                       (unsigned long long)o->first_step,
                       (unsigned long long)co_sampler_steps(o->sampler));
    return CO_OK;
}

co_status co_loader_create(co_loader **out, const co_loader_options *options)
{
    co_loader *l;
    co_status st;

    CO_TRY(loader_check(options));
    l = co_calloc(1, sizeof(*l));
    if (!l)
        return CO_E_NOMEM;
    l->dataset = options->dataset;
    l->sampler = options->sampler;
    l->rank = options->rank;
    l->parts = options->parts ? options->parts : 1;
    l->seed = options->seed;
    l->skip_bad = co_dataset_skips_bad(l->dataset);
    l->sample_size = (size_t)co_shape_count(co_dataset_shape(l->dataset));
    l->claim = loader_claim_size(l, options->threads);
    l->epoch = options->first_epoch;
    l->step = options->first_step;
    /* One more than is read ahead: the consumer holds it. */
    l->n_slot = options->threads ? (size_t)(options->depth ? options->depth : LOADER_DEPTH) + 1 : 1;
    pthread_mutex_init(&l->plan_lock, NULL);
    pthread_mutex_init(&l->queue_lock, NULL);
    pthread_cond_init(&l->filled, NULL);
    pthread_cond_init(&l->freed, NULL);
    st = loader_make_slots(l);
    if (st == CO_OK)
        st = loader_start(l, options->threads);
    if (st != CO_OK) {
        co_loader_destroy(l);
        return st;
    }
    *out = l;
    return CO_OK;
}

static void loader_stop(co_loader *l)
{
    pthread_mutex_lock(&l->queue_lock);
    atomic_store(&l->stop, true);
    pthread_cond_broadcast(&l->freed);
    pthread_mutex_unlock(&l->queue_lock);
    for (int i = 0; i < l->n_thread; i++)
        pthread_join(l->thread[i], NULL);
}

void co_loader_destroy(co_loader *loader)
{
    if (!loader)
        return;
    loader_stop(loader);
    for (size_t i = 0; loader->slot && i < loader->n_slot; i++)
        loader_slot_free(&loader->slot[i]);
    co_data_scratch_free(&loader->scratch);
    co_free(loader->slot);
    co_free(loader->thread);
    pthread_cond_destroy(&loader->freed);
    pthread_cond_destroy(&loader->filled);
    pthread_mutex_destroy(&loader->queue_lock);
    pthread_mutex_destroy(&loader->plan_lock);
    co_free(loader);
}

static co_status loader_next_here(co_batch *out, co_loader *l)
{
    loader_claim claim;
    co_status st = loader_claim_next(&claim, l);

    if (st == CO_OK)
        st = loader_read(l, &claim, &l->scratch, 0);
    loader_finish(claim.slot);
    *out = claim.slot->batch;
    return st;
}

/* Give back the batch that the consumer holds, and wait for the next. */
static loader_slot *loader_take(co_loader *l)
{
    loader_slot *slot;

    pthread_mutex_lock(&l->queue_lock);
    if (l->borrowed) {
        l->slot[l->taken % l->n_slot].ready = false;
        l->taken++;
        l->borrowed = false;
        pthread_cond_signal(&l->freed);
    }
    slot = &l->slot[l->taken % l->n_slot];
    while (!slot->ready)
        pthread_cond_wait(&l->filled, &l->queue_lock);
    l->borrowed = slot->status == CO_OK; /* a failed one stays, and fails again */
    pthread_mutex_unlock(&l->queue_lock);
    return slot;
}

static co_status loader_next_read_ahead(co_batch *out, co_loader *l)
{
    const loader_slot *slot = loader_take(l);

    *out = slot->batch;
    return slot->status == CO_OK ? CO_OK : co_fail(slot->status, "%s", slot->message);
}

static void loader_count_bad(co_loader *l, const co_batch *batch)
{
    l->bad += batch->bad;
    if (batch->bad && l->warned++ < LOADER_WARNINGS)
        co_log(CO_LOG_WARN, "%s; another sample with its label stands in for it%s",
               batch->bad_message,
               l->warned == LOADER_WARNINGS ? " (more will only be counted)" : "");
}

co_status co_loader_next(co_batch *out, co_loader *loader)
{
    const uint64_t start = co_clock_ns();
    co_status st =
        loader->n_thread == 0 ? loader_next_here(out, loader) : loader_next_read_ahead(out, loader);

    /* All of it: on a core that it shares with this thread, a reader works in here. */
    loader->wait_seconds += co_clock_seconds(start, co_clock_ns());
    if (st == CO_OK)
        loader_count_bad(loader, out);
    return st;
}

double co_loader_wait_seconds(const co_loader *loader)
{
    return loader->wait_seconds;
}

co_loader_reads co_loader_read_so_far(const co_loader *l)
{
    return (co_loader_reads){atomic_load(&l->read_samples), atomic_load(&l->read_bytes)};
}

uint64_t co_loader_bad_samples(const co_loader *loader)
{
    return loader->bad;
}
