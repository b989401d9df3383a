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
    size_t held;                /* bytes that they take */
    char why[CO_ON_DEVICE_WHY]; /* on a device without images: the reason */
} co_feed;

typedef struct co_feed_source {
    const co_dataset *dataset;
    co_split split;
    /* The epoch and the step within it to start from; NULL: the first ones. */
    const co_batch *first;
    co_queue *queue; /* where batches are copied (co_loader_options) */
    size_t held;     /* bytes of other samples that its device holds */
} co_feed_source;
/* Threads that read ahead, of a rank with so many cores, unless the config says how many: decoding
   images can use each of them, and copying samples needs one. None where no file is waited for and
   the only core computes, unless a device does: what is read ahead holds the network up. */
int co_feed_readers(const co_dataset *dataset, int cores, bool on_device);
/* Samples that the queue's device can hold, within what the config allows for those of both splits,
   are brought there if all ranks can. Collective. */
co_status co_feed_open(co_feed *out, const co_spec *spec, co_comm *comm,
                       const co_feed_source *from);
/* Samples of the test split that a rank computes at once, where there are enough. */
uint64_t co_feed_test_rows(const co_spec *spec);
void co_feed_close(co_feed *feed);
co_status co_feed_options(co_sampler_options *out, const co_spec *spec, const co_dataset *dataset,
                          int ranks, co_split split);
/* Whether partitions are for so many ranks, as far as that is known without the data. */
co_status co_feed_check(const co_spec *spec, int ranks);
/* The sampler alone. For the test split it fails unless each sample is taken exactly once. */
co_status co_feed_sampler(co_sampler **out, const co_spec *spec, const co_dataset *dataset,
                          int ranks, co_split split);

#endif
