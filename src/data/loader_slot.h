/* loader_slot.h - the memory of a batch that is read ahead. */
#ifndef CO_DATA_LOADER_SLOT_H
#define CO_DATA_LOADER_SLOT_H

#include <cohort/ext/device.h>

#include "data/data.h"

#define LOADER_SLOT_MESSAGE 512

typedef struct loader_slot {
    co_batch batch;
    void *data[CO_MAX_FIELDS]; /* owned: the arrays of the batch's fields, `most` samples each */
    uint32_t *sample;          /* owned: (most) */
    co_fence *fence;           /* owned; recorded after the consumer's queued work on the batch */
    uint64_t claimed;          /* samples, guarded by plan_lock */
    /* guarded by queue_lock */
    uint64_t done; /* samples */
    bool ready;
    co_status status; /* first failure, and its message: co_error_message is per thread */
    char message[LOADER_SLOT_MESSAGE];
    uint64_t first_bad; /* position in the batch */
    char bad_message[LOADER_SLOT_MESSAGE];
} loader_slot;

/* Allocate room for `most` samples, in memory from which `device` copies, and point slot->batch at
   it; with `labels` none for the first field. Call loader_slot_free after a failure, too. */
co_status loader_slot_make(loader_slot *slot, const co_dataset *dataset, uint64_t most, bool labels,
                           co_device *device);
void loader_slot_free(loader_slot *slot, co_device *device);

#endif
