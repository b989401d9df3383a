/*
 * values.h - the values of the steps that are taken on a store (ext/step.h): how they get into the
 * memory of its device, and back.
 */
#ifndef CO_TENSOR_VALUES_H
#define CO_TENSOR_VALUES_H

#include "tensor/store.h"

/* Places of values for steps that are queued together: twice as many as there may be of those. */
#define CO_VALUES_KEPT 32

/* State besides the block of a store, where the host may not access that. */
typedef struct co_values_ring co_values_ring;

/* Transfers for one step after another; called by co_store_create_on and co_store_destroy. */
co_status co_values_open(co_store *store);
void co_values_close(co_store *store);

/* The values that the host gives the next step: change some, then send. */
co_step_given *co_values_given(const co_store *store);
/* One queued copy of it, where anything has changed, and what follows from it (CO_STEP_BEGIN).
   Copies for earlier steps may still be in flight. */
co_status co_values_send(co_store *store);
/* The same for steps that are queued together, on a device: keep the values as they are now at a
   place, which no work in flight reads; queue a copy of `n` places to the device, as they are when
   the queue comes there; and what a step begins with, by the values of a place that were copied. */
void co_values_keep(co_store *store, int place);
co_status co_values_bring(const co_store *store, int place, int n);
co_status co_values_use(co_store *store, int place);
/* Values that persist between steps, before the first one. On a device this waits for the queue. */
co_status co_values_set(co_store *store, uint64_t update, const co_loss_scale *scale);
/* All values, after the work that the queue has been given, which this waits for. */
co_status co_values_read(co_step_values *out, const co_store *store);

/* The same for who waits later. */
typedef struct co_values_late {
    co_step_values *values; /* owned, pinned */
    co_fence *done;         /* owned: the last queued copy is there */
} co_values_late;

/* Nothing where all is done at once. After a failure too, co_values_late_close frees what there is.
 */
co_status co_values_late_open(co_values_late *out, const co_store *store);
/* No copy is on its way. */
void co_values_late_close(co_values_late *late, const co_store *store);
/* A copy of the values, and the fence after it; the copy alone. */
co_status co_values_late_queue(co_values_late *late, const co_store *store);
co_status co_values_late_copy(const co_values_late *late, const co_store *store);

#endif
