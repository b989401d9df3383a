/* partition.h - interface of a partition: which rank trains on which samples. */
#ifndef CO_DATA_PARTITION_H
#define CO_DATA_PARTITION_H

#include <cohort/data.h>

#include "core/plugin.h"

/* A data set cut into one part per rank. */
typedef struct co_parts {
    uint32_t *order; /* room for count + ranks: samples of rank 0's part, then rank 1's, ... */
    uint64_t *size;  /* (ranks): samples of each part; 0 is allowed */
    bool fixed;      /* there are parts; else only `computed` applies */
    bool computed;   /* the order of the set is computed element by element, not stored */
    bool equal;      /* batching: equal */
    bool dealt;      /* `order` indexes a permutation of the set, drawn for each epoch */
    bool torch;      /* with dealt: drawn as by torch.randperm, seeded with seed + epoch */
    bool frozen;     /* every epoch has the order of the first */
    uint64_t seed;   /* of the orders of epochs; the run's unless the partition sets it */
} co_parts;

typedef struct co_partition_ops {
    const char *name;
    const char *summary;
    const co_key *keys;
    size_t self_size;
    /** Whether the keys are for so many ranks, as far as that is known without the data; before
     *  `cut`. May be NULL. */
    co_status (*check)(const void *self, int ranks);
    /** Fill out->order and out->size (and out->dealt). NULL: no parts, the ranks share every
     *  global batch. */
    co_status (*cut)(co_parts *out, const void *self, const co_sampler_options *options);
    /** Without cut: set the flags of `out` that follow from the keys. May be NULL. */
    void (*describe)(co_parts *out, const void *self);
    bool independent_of_ranks; /* a batch has the same samples for any number of ranks */
    bool any_ranks;            /* allows more ranks than samples */
    const char *repeats;       /* why an epoch may take a sample twice; NULL: it does not */
    const char *drops;         /* why an epoch may leave a sample out; NULL: it does not */
} co_partition_ops;

extern const co_partition_ops co_partition_global;
extern const co_partition_ops co_partition_random;
extern const co_partition_ops co_partition_contiguous;
extern const co_partition_ops co_partition_interleaved;
extern const co_partition_ops co_partition_labels;
extern const co_partition_ops co_partition_dirichlet;
extern const co_partition_ops co_partition_file;

/* NULL-terminated, in the order that `cohort list partitions` prints. */
extern const co_partition_ops *const co_partitions[];
extern const co_plugins co_partition_plugins;
/* The partition that a config value names, the default one for NULL; NULL if it is unknown. */
const co_partition_ops *co_partition_of(const co_value *value);
/* Keys of every partition that has parts. */
extern const co_key co_partition_common_keys[];

/* Cut as options->partition says, into `order` and `size`, which the caller has allocated. */
co_status co_partition_cut(co_parts *out, const co_sampler_options *options);

/* The keys of a partition, and whether they are for so many ranks, without the data. */
co_status co_partition_check(const char *text, int ranks);

/* --- for partitions --- */

/* Fails with CO_E_USAGE: more ranks than samples. */
co_status co_partition_too_many_ranks(const co_sampler_options *options);
/* CO_E_USAGE unless options->dataset is set and has labels. */
co_status co_partition_needs_labels(const char *name, const co_sampler_options *options);
/* Give sample i to rank owner[i]; parts keep the order of the set. */
void co_parts_group(co_parts *out, const uint32_t *owner, const co_sampler_options *options);

/* Shares of the set by `ratios`, or equal ones if there are none. Call co_ratios_check first, in
   `check`. */
co_status co_ratios_check(const co_reals *ratios, int ranks, const char *name);
/* size[r] = int(ratio * count), as in Python; returns the number of samples left over. */
uint64_t co_ratios_floor(uint64_t *size, const co_reals *ratios, const co_sampler_options *options);
/* Hand out `left` more samples, each to the rank furthest below its share. */
void co_ratios_add(uint64_t *size, uint64_t left, const co_reals *ratios,
                   const co_sampler_options *options);

#endif
