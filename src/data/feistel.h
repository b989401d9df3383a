/* feistel.h - a random order of any length that takes no memory. */
#ifndef CO_DATA_FEISTEL_H
#define CO_DATA_FEISTEL_H

#include "core/rng.h"

/* What lies at place i of a permutation of 0 .. n - 1 that `rng`'s place in the run draws; its item
   counts rounds, whatever it was. */
uint64_t co_feistel(uint64_t i, uint64_t n, const co_rng *rng);

#endif
