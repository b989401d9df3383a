/* sort.c - numbers in order. */
#include "core/sort.h"

#include <stdlib.h>

static int sort_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void co_sort_doubles(double *value, size_t n)
{
    qsort(value, n, sizeof(*value), sort_compare);
}
