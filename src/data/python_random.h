/* python_random.h - the shuffle of Python's random module, bit for bit. */
#ifndef CO_DATA_PYTHON_RANDOM_H
#define CO_DATA_PYTHON_RANDOM_H

#include <stdint.h>

/* Fill `order` (n) with x after x = list(range(n)); random.Random(seed).shuffle(x) in Python 3.2
   and later. */
void co_python_shuffle(uint32_t *order, uint32_t n, uint64_t seed);

#endif
