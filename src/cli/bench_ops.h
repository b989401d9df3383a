/* bench_ops.h - each step of a network's plan, run alone. */
#ifndef CO_CLI_BENCH_OPS_H
#define CO_CLI_BENCH_OPS_H

#include "cli/cli.h"
#include "telemetry/profile.h"

typedef struct bench_ops_rows {
    size_t n;
    co_profile_row *row; /* owned: co_free */
    double step_seconds; /* all of them in turn */
} bench_ops_rows;

/* Compiles `net` for `batch` samples; at least `ms` milliseconds for each step. */
co_status bench_ops_measure(bench_ops_rows *out, const cli_network *net, int64_t batch, int64_t ms);

#endif
