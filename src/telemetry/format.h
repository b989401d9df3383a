/* format.h - numbers for people. Each function returns `out`, truncated to `size` bytes. NaN, for
   what was not measured, becomes "-". */
#ifndef CO_TELEMETRY_FORMAT_H
#define CO_TELEMETRY_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "metrics/metrics.h"

/* "24,310" */
char *co_format_count(char *out, size_t size, uint64_t n);
/* "0.8231": `digits` digits after the point */
char *co_format_real(char *out, size_t size, double value, int digits);
/* "24,310", "26.3", "0.84": with decimals for large networks, which are slow */
char *co_format_rate(char *out, size_t size, double rate);
/* "0.84 s", "4.9 s", "34 s", "3 min 20 s", "2 h 05 min" */
char *co_format_seconds(char *out, size_t size, double seconds);
/* "512 B", "83.2 KiB", "1.50 GiB" */
char *co_format_bytes(char *out, size_t size, uint64_t bytes);
/* Append each metric of the set (NULL: none) to `out`, with `before` in front of it: "acc 0.83"
   becomes "acc 0.83 mae 0.301 r2 0.912". */
char *co_format_metrics(char *out, size_t size, const co_metric_set *metrics, const double *value,
                        const char *before, int digits);

#endif
