/*
 * loader.c - batches in the order of the plan, read ahead by threads.
 *
 * A ring of slots, each for one batch. Readers claim a few samples at a time, batch after batch, so
 * that all of them work on the batch that is needed first; the consumer takes whole batches in
 * order. A slot is free again once the consumer has released it and the work on its queue that may
 * read it is done.
 */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/process.h"
#include "core/sized.h"
#include "data/loader_internal.h"
#include "device/device.h"

#define LOADER_WARNINGS 3 /* of bad samples; further ones are only counted */

/* Assign the next batch of the plan to a free slot. */
static co_status loader_plan(co_loader *l, loader_slot *slot)
{
    co_batch *batch = &slot->batch;

    loader_expect(l);
    batch->epoch = l->epoch;
    batch->step = l->step;
    batch->count = 0;
    batch->global = co_sampler_global(l->sampler, l->step);
    for (int rank = l->rank; rank < l->rank + l->shards; rank++) {
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
    return co_dataset_draw(l->dataset, (float *)slot->data[0] + k * l->sample_size, sample, &place,
                           scratch);
}

/* Replace a bad sample by the next readable one with its label: the same one on any rank, and
   counts do not change. */
static co_status loader_replace(co_loader *l, loader_slot *slot, uint64_t k,
                                co_data_scratch *scratch)
{
    const uint64_t count = co_dataset_count(l->dataset), bad = slot->sample[k];
    const int32_t label = ((const int32_t *)slot->data[1])[k];
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

/* The message names the sample; add what to do about it. */
static co_status loader_refuse(const co_loader *l)
{
    char why[LOADER_SLOT_MESSAGE];

    snprintf(why, sizeof(why), "%s", co_error_message());
    return co_fail(CO_E_DATA, "%s; repair it%s", why,
                   co_dataset_may_skip_bad(l->dataset) ? ", or set data.on_bad_sample: skip"
                                                       : ", or leave it out");
}

static co_status loader_read_fields(co_loader *l, loader_slot *slot, uint64_t k,
                                    co_data_scratch *scratch)
{
    const co_field *field = co_dataset_fields(l->dataset);
    const co_augment_place place = {l->seed, slot->batch.epoch, slot->sample[k]};

    for (int f = 0; f < CO_MAX_FIELDS && field[f].name; f++) {
        const size_t bytes =
            (size_t)co_shape_count(&field[f].shape) * co_dtype_size(field[f].dtype);

        CO_TRY(co_dataset_draw_field(l->dataset, (char *)slot->data[f] + k * bytes, f, &place));
        scratch->bytes += bytes;
    }
    return CO_OK;
}

static co_status loader_read_one(co_loader *l, loader_slot *slot, uint64_t k,
                                 co_data_scratch *scratch)
{
    co_status st;

    if (!co_dataset_has_images(l->dataset))
        return loader_read_fields(l, slot, k, scratch);
    CO_TRY(co_dataset_take_label((int32_t *)slot->data[1] + k, l->dataset, slot->sample[k]));
    if (l->labels)
        return CO_OK;
    st = loader_draw(l, slot, k, slot->sample[k], scratch);
    if (st != CO_E_DATA)
        return st;
    if (!l->skip_bad)
        return loader_refuse(l);
    loader_note_bad(l, slot, k);
    return loader_replace(l, slot, k, scratch);
}

/* Read the claimed samples; `reader` is the number of the thread. */
static co_status loader_read(co_loader *l, const loader_claim *claim, co_data_scratch *scratch,
                             int reader)
{
    const co_loader_observer *observer = atomic_load(&l->observer);
    const uint64_t begin_ns = co_clock_ns(), bytes = scratch->bytes;

    for (uint64_t k = claim->begin; k < claim->end; k++) {
        if (atomic_load_explicit(&l->stop, memory_order_relaxed))
            break;
        CO_TRY(loader_read_one(l, claim->slot, k, scratch));
    }
    atomic_fetch_add(&l->read_samples, claim->end - claim->begin);
    atomic_fetch_add(&l->read_bytes, scratch->bytes - bytes);
    atomic_fetch_add(&l->read_ns, co_clock_ns() - begin_ns);
    if (observer)
        observer->read(observer->arg, reader, begin_ns, claim->end - claim->begin);
    return CO_OK;
}

static void loader_finish(loader_slot *slot)
{
    slot->batch.bad_message = slot->batch.bad ? slot->bad_message : NULL;
    slot->ready = true;
}

/* Wait until batch `index` has a free slot; false if the loader is being destroyed. */
static bool loader_wait_free(co_loader *l, uint64_t index)
{
    bool go_on;

    pthread_mutex_lock(&l->queue_lock);
    while (!atomic_load(&l->stop) && index >= l->freed_up + l->n_slot)
        pthread_cond_wait(&l->freed, &l->queue_lock);
    go_on = !atomic_load(&l->stop);
    pthread_mutex_unlock(&l->queue_lock);
    return go_on;
}

/* Claim the next samples, of the open batch or of a new one. Under plan_lock. */
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

void *loader_read_ahead(void *arg)
{
    co_loader *l = arg;
    co_data_scratch scratch = {.stream = l->stream};
    const int reader = atomic_fetch_add(&l->entered, 1);

    atomic_store(&l->reader[reader].tid, (int)syscall(SYS_gettid));
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

/* Release the batch that the consumer holds. What is queued so far may still read it. */
static co_status loader_pass(co_loader *l)
{
    if (!l->borrowed)
        return CO_OK;
    l->borrowed = false;
    return co_fence_record(l->slot[l->taken++ % l->n_slot].fence, l->queue);
}

/* Free the released slots that no queued work reads any more; with `wait`, wait for one. */
static co_status loader_free_up(co_loader *l, bool wait)
{
    bool reached = true;

    for (; l->freed_up < l->taken; wait = false) {
        loader_slot *slot = &l->slot[l->freed_up % l->n_slot];

        if (wait)
            CO_TRY(co_fence_wait(slot->fence, CO_DEVICE_WAIT_MS));
        else
            CO_TRY(co_fence_reached(&reached, slot->fence));
        if (!reached)
            break;
        pthread_mutex_lock(&l->queue_lock);
        slot->ready = false;
        l->freed_up++;
        pthread_cond_signal(&l->freed);
        pthread_mutex_unlock(&l->queue_lock);
    }
    return CO_OK;
}

static co_status loader_next_here(co_batch *out, co_loader *l)
{
    const uint64_t begin_ns = co_clock_thread_ns();
    loader_claim claim;
    co_status st;

    CO_TRY(loader_pass(l));
    CO_TRY(loader_free_up(l, l->taken - l->freed_up == l->n_slot));
    st = loader_claim_next(&claim, l);
    if (st == CO_OK)
        st = loader_read(l, &claim, &l->scratch, 0);
    l->here_ns += co_clock_thread_ns() - begin_ns;
    loader_finish(claim.slot);
    *out = claim.slot->batch;
    l->borrowed = true;
    return st;
}

/* Release the batch that the consumer holds, and wait for the next one. */
static co_status loader_next_slot(loader_slot **out, co_loader *l)
{
    loader_slot *slot;
    bool ready;

    CO_TRY(loader_pass(l));
    CO_TRY(loader_free_up(l, l->taken - l->freed_up == l->n_slot));
    slot = &l->slot[l->taken % l->n_slot];
    for (;;) {
        pthread_mutex_lock(&l->queue_lock);
        while (!slot->ready && l->freed_up == l->taken)
            pthread_cond_wait(&l->filled, &l->queue_lock);
        ready = slot->ready;
        pthread_mutex_unlock(&l->queue_lock);
        if (ready)
            break;
        CO_TRY(loader_free_up(l, true)); /* readers may be waiting for a slot */
    }
    l->borrowed = slot->status == CO_OK; /* a failed batch stays: the next call fails again */
    *out = slot;
    return CO_OK;
}

static co_status loader_next_read_ahead(co_batch *out, co_loader *l)
{
    loader_slot *slot = NULL;

    CO_TRY(loader_next_slot(&slot, l));
    *out = slot->batch;
    return slot->status == CO_OK ? CO_OK : co_fail(slot->status, "%s", slot->message);
}

static void loader_count_bad(co_loader *l, const co_batch *batch)
{
    l->bad += batch->bad;
    if (batch->bad && l->warned++ < LOADER_WARNINGS)
        co_log(CO_LOG_WARN, "%s; replaced by another sample with its label%s", batch->bad_message,
               l->warned == LOADER_WARNINGS ? " (more will only be counted)" : "");
}

co_status co_loader_next_sized(co_batch *out, size_t size, co_loader *loader)
{
    const uint64_t start = co_clock_ns();
    co_batch batch = {0};
    co_status st = loader->n_thread == 0 ? loader_next_here(&batch, loader)
                                         : loader_next_read_ahead(&batch, loader);

    /* The whole call counts: a reader that shares this thread's core runs during it. */
    loader->wait_seconds += co_clock_seconds(start, co_clock_ns());
    if (st != CO_OK)
        return st;
    loader_count_bad(loader, &batch);
    co_sized_write(out, size, &batch, sizeof(batch));
    return CO_OK;
}

double co_loader_wait_seconds(const co_loader *loader)
{
    return loader->wait_seconds;
}

co_loader_reads co_loader_read_so_far(const co_loader *l)
{
    return (co_loader_reads){atomic_load(&l->read_samples), atomic_load(&l->read_bytes)};
}

co_loader_times co_loader_times_so_far(const co_loader *l)
{
    co_loader_times out = {.busy = (double)atomic_load(&l->read_ns) * 1e-9,
                           .core = (double)l->here_ns * 1e-9};

    for (int i = 0; i < l->n_thread; i++) {
        const int tid = atomic_load(&l->reader[i].tid);
        double core, delayed;

        if (!tid || !co_process_times(&core, &delayed, tid))
            continue;
        out.core += core;
        out.delayed += delayed;
    }
    return out;
}

uint64_t co_loader_bad_samples(const co_loader *loader)
{
    return loader->bad;
}
