/* bench_comm_tune.h - `cohort bench comm --tune`: finds a good bucket size for these ranks. */
#ifndef CO_CLI_BENCH_COMM_TUNE_H
#define CO_CLI_BENCH_COMM_TUNE_H

#include <cohort/comm.h>

#define BENCH_TUNE_MIN_BYTES ((size_t)1 << 20)

/* Call on all ranks. `data` has `count` floats, at least BENCH_TUNE_MIN_BYTES in bytes. Rank 0
   prints. */
co_status bench_comm_tune(co_comm *comm, float *data, size_t count);

#endif
