/* reduce.h - combining arrays element by element, in the type of the data. */
#ifndef CO_COMM_REDUCE_H
#define CO_COMM_REDUCE_H

#include <cohort/comm.h>

/* out[i] = a[i] (op) b[i]; CO_AVG adds. `out` may be `a` or `b`, else they do not overlap. Integers
   wrap around. */
void co_reduce_pair(void *out, const void *a, const void *b, size_t n, co_dtype dtype,
                    co_reduce_op op);
/* The same of k sources in their order; in half precision with one rounding at the end. `out` may
   be one of the first two. */
void co_reduce_all(void *out, const void *const *source, int k, size_t n, co_dtype dtype,
                   co_reduce_op op);
/* The second half of CO_AVG: data[i] /= ranks, integers truncated. */
void co_reduce_divide(void *data, size_t n, co_dtype dtype, int ranks);

#endif
