/*
 * values.c - transfers the values of a step to the memory of the store's device, and back.
 *
 * Where work is done at once the host writes them itself. Otherwise a copy on the queue reads them
 * from pinned memory, from several buffers in turn, so that the host can be some steps ahead. Must
 * not know what the values mean.
 */
#include "tensor/values.h"

#include <string.h>

#include "core/mem.h"
#include "device/device.h"

#define VALUES_AHEAD 4 /* copies that may be in flight */

/* Of steps that are queued together (CO_VALUES_KEPT): where the host writes, and the device reads.
 */
typedef struct values_table {
    co_step_given *host;  /* owned, pinned */
    co_step_given *there; /* owned, of the device */
} values_table;

struct co_values_ring {
    co_step_given now, sent;
    bool fresh;                   /* nothing has been sent yet */
    co_step_given *given;         /* (VALUES_AHEAD) owned, pinned: sources of the copies */
    co_fence *done[VALUES_AHEAD]; /* owned: reached when such a copy is done */
    uint64_t n;                   /* copies so far */
    values_table table;
};

static bool values_are_direct(const co_store *store)
{
    return !store->queue && co_device_is_host(store->device);
}

static co_status values_open_ring(co_store *store)
{
    co_values_ring *ring = co_calloc(1, sizeof(*ring));
    void *given = NULL;

    if (!ring)
        return CO_E_NOMEM;
    store->ring = ring;
    ring->fresh = true;
    CO_TRY(co_device_alloc(&given, store->device, VALUES_AHEAD * sizeof(*ring->given),
                           CO_MEMORY_PINNED));
    ring->given = given;
    CO_TRY(co_device_alloc(&given, store->device, CO_VALUES_KEPT * sizeof(*ring->given),
                           CO_MEMORY_PINNED));
    ring->table.host = given;
    CO_TRY(co_device_alloc(&given, store->device, CO_VALUES_KEPT * sizeof(*ring->given),
                           CO_MEMORY_DEVICE));
    ring->table.there = given;
    for (int i = 0; i < VALUES_AHEAD; i++)
        CO_TRY(co_fence_create(&ring->done[i], store->device));
    return CO_OK;
}

co_status co_values_open(co_store *store)
{
    const co_loss_scale none = {.scale = 1};
    void *values = NULL;

    CO_TRY(co_device_alloc(&values, store->device, sizeof(*store->values), CO_MEMORY_DEVICE));
    store->values = values;
    if (!values_are_direct(store))
        CO_TRY(values_open_ring(store));
    CO_TRY(co_values_set(store, 1, &none));
    return co_values_send(store);
}

void co_values_close(co_store *store)
{
    co_values_ring *ring = store->ring;

    if (ring) {
        for (int i = 0; i < VALUES_AHEAD; i++)
            co_fence_destroy(ring->done[i]);
        co_device_free(store->device, ring->given, CO_MEMORY_PINNED);
        co_device_free(store->device, ring->table.host, CO_MEMORY_PINNED);
        co_device_free(store->device, ring->table.there, CO_MEMORY_DEVICE);
        co_free(ring);
    }
    co_device_free(store->device, store->values, CO_MEMORY_DEVICE);
}

co_step_given *co_values_given(const co_store *store)
{
    return store->ring ? &store->ring->now : &store->values->given;
}

static co_status values_copy(co_store *store)
{
    co_values_ring *ring = store->ring;
    const size_t i = ring->n % VALUES_AHEAD;

    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-*): the bits that were sent */
    if (!ring->fresh && memcmp(&ring->now, &ring->sent, sizeof(ring->now)) == 0)
        return CO_OK;
    CO_TRY(co_fence_wait(ring->done[i], CO_DEVICE_WAIT_MS));
    ring->given[i] = ring->sent = ring->now;
    ring->fresh = false;
    CO_TRY(co_queue_copy(store->queue, &store->values->given, &ring->given[i],
                         sizeof(ring->given[i])));
    CO_TRY(co_fence_record(ring->done[i], store->queue));
    ring->n++;
    if (store->vector)
        store->vector->step(store->queue, store->values, CO_STEP_BEGIN, NULL);
    return CO_OK;
}

co_status co_values_send(co_store *store)
{
    if (store->ring)
        return values_copy(store);
    co_step_do(store->values, CO_STEP_BEGIN, NULL);
    return CO_OK;
}

void co_values_keep(co_store *store, int place)
{
    store->ring->table.host[place] = store->ring->now;
    store->ring->fresh = true;
}

co_status co_values_bring(const co_store *store, int place, int n)
{
    const values_table *table = &store->ring->table;

    return co_queue_copy(store->queue, table->there + place, table->host + place,
                         (size_t)n * sizeof(*table->host));
}

co_status co_values_use(co_store *store, int place)
{
    co_values_ring *ring = store->ring;

    ring->now = ring->sent = ring->table.host[place];
    ring->fresh = false;
    CO_TRY(co_queue_copy(store->queue, &store->values->given, &ring->table.there[place],
                         sizeof(store->values->given)));
    store->vector->step(store->queue, store->values, CO_STEP_BEGIN, NULL);
    return CO_OK;
}

co_status co_values_set(co_store *store, uint64_t update, const co_loss_scale *scale)
{
    co_step_values *values = store->values;

    if (store->ring)
        store->ring->fresh = true;
    CO_TRY(co_queue_copy(store->queue, &values->update, &update, sizeof(update)));
    return co_queue_copy_now(store->queue, &values->loss_scale, scale, sizeof(*scale));
}

co_status co_values_read(co_step_values *out, const co_store *store)
{
    return co_queue_copy_now(store->queue, out, store->values, sizeof(*out));
}

co_status co_values_late_open(co_values_late *out, const co_store *store)
{
    void *values = NULL;

    *out = (co_values_late){NULL, NULL};
    if (!store->ring)
        return CO_OK;
    CO_TRY(co_device_alloc(&values, store->device, sizeof(*out->values), CO_MEMORY_PINNED));
    out->values = values;
    return co_fence_create(&out->done, store->device);
}

void co_values_late_close(co_values_late *late, const co_store *store)
{
    co_fence_destroy(late->done);
    co_device_free(store->device, late->values, CO_MEMORY_PINNED);
    *late = (co_values_late){NULL, NULL};
}

co_status co_values_late_copy(const co_values_late *late, const co_store *store)
{
    return co_queue_copy(store->queue, late->values, store->values, sizeof(*late->values));
}

co_status co_values_late_queue(co_values_late *late, const co_store *store)
{
    CO_TRY(co_values_late_copy(late, store));
    return co_fence_record(late->done, store->queue);
}
