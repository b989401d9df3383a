/*
 * bucket.h - cuts the flat store into buckets that are reduced one by one.
 *
 * The cut depends only on the length of the store and the requested size, so it is the same on
 * every rank.
 */
#ifndef CO_STRATEGY_BUCKET_H
#define CO_STRATEGY_BUCKET_H

#include <stddef.h>

/* Elements of a bucket of `mib` MiB of floats; at least a few. */
size_t co_bucket_elements(double mib);

/* End of the bucket that starts at `begin`, in a store of n > begin elements; `full` is from
   co_bucket_elements. The first and the last bucket are a quarter of the size of the others: the
   first reduction starts early, and little is left to reduce after backward. */
size_t co_bucket_end(size_t begin, size_t n, size_t full);

/* Number of buckets. */
size_t co_bucket_count(size_t n, size_t full);

#endif
