/* loader_setup.h - which samples a rank gets, and reading them ahead, as a config says. */
#ifndef CO_TRAIN_LOADER_SETUP_H
#define CO_TRAIN_LOADER_SETUP_H

#include "comm/tree.h"
#include "data/data.h"
#include "train/spec.h"

/* A sampler and its loader for one split, as the spec says. */
typedef struct co_feed {
    co_sampler *sampler;
    co_loader *loader;
    int readers;   /* its threads */
    co_tree *tree; /* of the shards; NULL: there are none */
} co_feed;
/* `first`: the epoch and the step in it to begin at; NULL: at the first. `queue`: on which batches
   are copied (co_loader_options). */
co_status co_feed_open(co_feed *out, const co_spec *spec, const co_dataset *dataset,
                       const co_comm *comm, co_split split, const co_batch *first, co_queue *queue);
void co_feed_close(co_feed *feed);
/* The sampler's options alone. */
co_status co_feed_options(co_sampler_options *out, const co_spec *spec, const co_dataset *dataset,
                          int ranks, co_split split);
/* The sampler alone. That of the test split takes each sample once, or is refused. */
co_status co_feed_sampler(co_sampler **out, const co_spec *spec, const co_dataset *dataset,
                          int ranks, co_split split);

#endif
