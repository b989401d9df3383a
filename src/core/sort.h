/* sort.h - numbers in order, for medians and the like. */
#ifndef CO_CORE_SORT_H
#define CO_CORE_SORT_H

#include <stddef.h>

/* Ascending; none may be NaN. */
void co_sort_doubles(double *value, size_t n);

#endif
