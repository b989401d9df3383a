/* select.h - the k largest of n numbers by size, without sorting them. */
#ifndef CO_STRATEGY_SELECT_H
#define CO_STRATEGY_SELECT_H

#include <stddef.h>
#include <stdint.h>

/* Candidates that co_select_largest may keep while it looks: room for so many. */
size_t co_select_room(size_t k);

/* Positions of the k largest |x| of x (n), 1 <= k <= n < 2^32, in rising order into `index` (k);
   of equal ones the first. What is not a number is larger than all numbers, infinity next.
   `room`: (co_select_room(k)) for its use. */
void co_select_largest(uint32_t *index, uint32_t *room, const float *x, size_t n, size_t k);

#endif
