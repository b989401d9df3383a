/* reduce.h - elementwise reduction of arrays in the type of the data. */
#ifndef CO_COMM_REDUCE_H
#define CO_COMM_REDUCE_H

#include <cohort/comm.h>

/* out[i] = a[i] (op) b[i]; CO_AVG adds. `out` may be `a` or `b`, but must not overlap otherwise.
   Integers wrap. */
void co_reduce_pair(void *out, const void *a, const void *b, size_t n, co_dtype dtype,
                    co_reduce_op op);
/* The same for k sources in order; half precision is rounded once, at the end. `out` may be one of
   the first two. */
void co_reduce_all(void *out, const void *const *source, int k, size_t n, co_dtype dtype,
                   co_reduce_op op);
/* The last part of CO_AVG: data[i] /= ranks; integers are truncated. */
void co_reduce_divide(void *data, size_t n, co_dtype dtype, int ranks);

#endif
