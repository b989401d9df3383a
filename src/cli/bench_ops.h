/* bench_ops.h - runs and times each step of a network's plan. */
#ifndef CO_CLI_BENCH_OPS_H
#define CO_CLI_BENCH_OPS_H

#include "cli/cli.h"
#include "telemetry/profile.h"

typedef struct bench_ops_rows {
    size_t n;
    co_profile_row *row; /* owned: co_free */
    double step_seconds; /* all steps in turn */
} bench_ops_rows;

/* Compile `net` for `batch` samples and time each step for at least `ms` milliseconds. */
co_status bench_ops_measure(bench_ops_rows *out, const cli_network *net, int64_t batch, int64_t ms);

#endif
