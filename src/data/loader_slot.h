/* loader_slot.h - the memory of a batch that is read ahead. */
#ifndef CO_DATA_LOADER_SLOT_H
#define CO_DATA_LOADER_SLOT_H

#include <cohort/ext/device.h>

#include "data/data.h"

#define LOADER_SLOT_MESSAGE 512

typedef struct loader_slot {
    co_batch batch;
    void *data[CO_MAX_FIELDS]; /* of the batch's fields, for `most` samples each, owned */
    uint32_t *sample;          /* (most), owned */
    co_fence *fence;           /* owned; after what the consumer's queue does with the batch */
    uint64_t claimed;          /* samples, under plan_lock */
    /* under queue_lock */
    uint64_t done; /* samples */
    bool ready;
    co_status status; /* of the reads, with its message: that of a thread is its own */
    char message[LOADER_SLOT_MESSAGE];
    uint64_t first_bad; /* place in the batch */
    char bad_message[LOADER_SLOT_MESSAGE];
} loader_slot;

/* Room for `most` samples of a data set, in memory from which `device` copies, with the batch
   pointing at it. After a failure, too, loader_slot_free gives back what there is. */
co_status loader_slot_make(loader_slot *slot, const co_dataset *dataset, uint64_t most,
                           co_device *device);
void loader_slot_free(loader_slot *slot, co_device *device);

#endif
