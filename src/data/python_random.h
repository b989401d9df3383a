/* python_random.h - the shuffle of Python's random module, bit for bit. */
#ifndef CO_DATA_PYTHON_RANDOM_H
#define CO_DATA_PYTHON_RANDOM_H

#include <stdint.h>

/* Fill `order` (n) as Python 3.2 and later do x: x = list(range(n));
   random.Random(seed).shuffle(x). */
void co_python_shuffle(uint32_t *order, uint32_t n, uint64_t seed);

#endif
