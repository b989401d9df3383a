/* partition.h - what the author of a partition fills in: which rank owns which samples. */
#ifndef CO_DATA_PARTITION_H
#define CO_DATA_PARTITION_H

#include <cohort/data.h>

typedef struct co_partition_ops {
    const char *name;
    const char *summary;
    const co_key *keys;
    size_t self_size;
    /** Cut the set into one part per rank: `order` (options->count) becomes the samples of rank
     *  0's part, then rank 1's, ..., and size[r] their numbers; all samples, each once. NULL: no
     *  parts, the ranks share every global batch. */
    co_status (*cut)(const void *self, uint32_t *order, uint64_t *size,
                     const co_sampler_options *options);
} co_partition_ops;

extern const co_partition_ops co_partition_global;
extern const co_partition_ops co_partition_random;

/* NULL-ended, in the order that `cohort list partitions` prints. */
extern const co_partition_ops *const co_partitions[];
const co_partition_ops *co_partition_find(const char *name);

/* As options->partition says. `order` and `size` (options->ranks) are filled and *parts is true,
   or left alone and *parts is false when there are no parts. */
co_status co_partition_cut(bool *parts, uint32_t *order, uint64_t *size,
                           const co_sampler_options *options);

#endif
