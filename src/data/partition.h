/* partition.h - what the author of a partition fills in: which rank owns which samples. */
#ifndef CO_DATA_PARTITION_H
#define CO_DATA_PARTITION_H

#include <cohort/data.h>

#include "core/plugin.h"

/* A set cut into one part per rank. */
typedef struct co_parts {
    uint32_t *order; /* room for count + ranks: samples of rank 0's part, then rank 1's, ... */
    uint64_t *size;  /* (ranks): samples of each part; 0 is allowed */
    bool fixed;      /* there are parts; else only `computed` is set */
    bool computed;   /* the set's order is computed place by place, not kept */
    bool equal;      /* batching: equal */
    bool dealt;      /* `order` holds places in an order of the set that every epoch draws */
    bool torch;      /* with dealt: drawn as torch.randperm, seeded with seed + epoch */
    bool frozen;     /* every epoch has the order of the first */
    uint64_t seed;   /* of what an epoch draws; the run's unless the partition sets it */
} co_parts;

typedef struct co_partition_ops {
    const char *name;
    const char *summary;
    const co_key *keys;
    size_t self_size;
    /** Fill out->order and out->size (and out->dealt). NULL: no parts, the ranks share every
     *  global batch. */
    co_status (*cut)(co_parts *out, const void *self, const co_sampler_options *options);
    /** Without cut: what its keys say of the order. NULL: nothing. */
    void (*describe)(co_parts *out, const void *self);
    bool independent_of_ranks; /* a batch has the same samples whatever the number of ranks */
    bool any_ranks;            /* makes sense with more ranks than samples */
    const char *repeats;       /* why a sample may be taken twice in an epoch; NULL: never is */
    const char *drops;         /* why one may not be taken; NULL: all are */
} co_partition_ops;

extern const co_partition_ops co_partition_global;
extern const co_partition_ops co_partition_random;
extern const co_partition_ops co_partition_contiguous;
extern const co_partition_ops co_partition_interleaved;
extern const co_partition_ops co_partition_labels;
extern const co_partition_ops co_partition_dirichlet;
extern const co_partition_ops co_partition_file;

/* NULL-ended, in the order that `cohort list partitions` prints. */
extern const co_partition_ops *const co_partitions[];
extern const co_plugins co_partition_plugins;
/* Of a config's value, which may be NULL; NULL: of no partition that there is. */
const co_partition_ops *co_partition_of(const co_value *value);
/* Keys of every partition that has parts. */
extern const co_key co_partition_common_keys[];

/* As options->partition says, into the caller's `order` and `size`. */
co_status co_partition_cut(co_parts *out, const co_sampler_options *options);

/* --- for partitions --- */

/* CO_E_USAGE: more ranks than samples. */
co_status co_partition_too_many_ranks(const co_sampler_options *options);
/* CO_E_USAGE unless there is a data set to ask for labels. */
co_status co_partition_needs_labels(const char *name, const co_sampler_options *options);
/* The cut where sample i goes to owner[i], each part in the order of the set. */
void co_parts_group(co_parts *out, const uint32_t *owner, const co_sampler_options *options);

/* Shares of the set by `ratios`, none meaning equal ones. Check first. */
co_status co_ratios_check(const co_reals *ratios, int ranks, const char *name);
/* Python's int(ratio * count) each; returns the samples that no rank got. */
uint64_t co_ratios_floor(uint64_t *size, const co_reals *ratios, const co_sampler_options *options);
/* Give `left` more samples away, one by one to the rank that is furthest behind its share. */
void co_ratios_add(uint64_t *size, uint64_t left, const co_reals *ratios,
                   const co_sampler_options *options);

#endif
