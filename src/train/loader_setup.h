/* loader_setup.h - the sampler and the loader of a split, set up from a config. */
#ifndef CO_TRAIN_LOADER_SETUP_H
#define CO_TRAIN_LOADER_SETUP_H

#include "comm/tree.h"
#include "data/on_device.h"
#include "train/spec.h"

/* The sampler and the loader of one split. */
typedef struct co_feed {
    co_sampler *sampler;
    co_loader *loader;
    int readers;   /* loader threads */
    co_tree *tree; /* of the shards; NULL without shards */
    /* Owned; on a device, which draws the batches. NULL: the loader reads them. */
    co_images *images;
    char why[CO_ON_DEVICE_WHY]; /* on a device without images: the reason */
} co_feed;
/* `first`: the epoch and the step within it to start from; NULL: the first ones. `queue` is where
   batches are copied (co_loader_options); training samples that its device can hold, within what
   the config allows, are brought there if all ranks can. Collective. */
co_status co_feed_open(co_feed *out, const co_spec *spec, const co_dataset *dataset, co_comm *comm,
                       co_split split, const co_batch *first, co_queue *queue);
/* Samples of the test split that a rank computes at once, where there are enough. */
uint64_t co_feed_test_rows(const co_spec *spec);
void co_feed_close(co_feed *feed);
co_status co_feed_options(co_sampler_options *out, const co_spec *spec, const co_dataset *dataset,
                          int ranks, co_split split);
/* The sampler alone. For the test split it fails unless each sample is taken exactly once. */
co_status co_feed_sampler(co_sampler **out, const co_spec *spec, const co_dataset *dataset,
                          int ranks, co_split split);

#endif
