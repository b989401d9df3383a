/* feistel.h - a random permutation of any length that takes no memory. */
#ifndef CO_DATA_FEISTEL_H
#define CO_DATA_FEISTEL_H

#include "core/rng.h"

/* Element i of the permutation of 0 .. n - 1 for seed, stream and step of `rng`; ignores its
   item. */
uint64_t co_feistel(uint64_t i, uint64_t n, const co_rng *rng);

#endif
