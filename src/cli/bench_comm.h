/* bench_comm.h - the timing of `cohort bench comm`, for `cohort tune`. */
#ifndef CO_CLI_BENCH_COMM_H
#define CO_CLI_BENCH_COMM_H

#include <stddef.h>

#include <cohort/status.h>

/* Median seconds of a sum over `ranks` started here, in place, of each of n sizes, rising. */
co_status bench_comm_sums(double *seconds, const size_t *bytes, int n, int ranks);

#endif
