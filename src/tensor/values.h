/*
 * values.h - the values of the steps that are taken on a store (ext/step.h): how they get into the
 * memory of its device, and back.
 */
#ifndef CO_TENSOR_VALUES_H
#define CO_TENSOR_VALUES_H

#include "tensor/store.h"

/* Beside the block of a store, where the host may not touch it. */
typedef struct co_values_ring co_values_ring;

/* Of one step after another; called by co_store_create_on and co_store_destroy. */
co_status co_values_open(co_store *store);
void co_values_close(co_store *store);

/* What the host gives the next step: change what is new, then send it. */
co_step_given *co_values_given(const co_store *store);
/* One queued copy of it, where anything is new, and what follows from it (CO_STEP_BEGIN). Copies
   for earlier steps may still be under way. */
co_status co_values_send(co_store *store);
/* What goes from step to step: before the first. Of a device it waits for the queue. */
co_status co_values_set(co_store *store, uint64_t update, const co_loss_scale *scale);
/* All of it once the queue has done what it was given, which this waits for. */
co_status co_values_read(co_step_values *out, const co_store *store);

#endif
