/* python_random.h - the shuffle of Python's random module, bit for bit. */
#ifndef CO_DATA_PYTHON_RANDOM_H
#define CO_DATA_PYTHON_RANDOM_H

#include <stdint.h>

/* `order` becomes what x = list(range(n)); random.Random(seed).shuffle(x) makes of x (Python 3.2
   and later). */
void co_python_shuffle(uint32_t *order, uint32_t n, uint64_t seed);

#endif
