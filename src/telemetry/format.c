/*
 * format.c - counts, times and sizes for people. Files for programs have plain numbers instead,
 * with the unit in the name.
 */
#include "telemetry/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

char *co_format_count(char *out, size_t size, uint64_t n)
{
    char digits[24], text[32];
    size_t length = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, n), at = 0;

    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
    snprintf(out, size, "%s", text);
    return out;
}

char *co_format_real(char *out, size_t size, double value, int digits)
{
    if (isfinite(value))
        snprintf(out, size, "%.*f", digits, value);
    else
        snprintf(out, size, "-");
    return out;
}

char *co_format_rate(char *out, size_t size, double rate)
{
    if (!isfinite(rate) || rate < 0 || rate >= 1e18)
        snprintf(out, size, "-");
    else if (rate >= 99.95)
        co_format_count(out, size, (uint64_t)(rate + 0.5));
    else
        snprintf(out, size, rate >= 9.995 ? "%.1f" : "%.2f", rate);
    return out;
}

char *co_format_seconds(char *out, size_t size, double seconds)
{
    uint64_t whole;

    if (!isfinite(seconds) || seconds < 0 || seconds > 1e9) {
        snprintf(out, size, "-");
        return out;
    }
    whole = (uint64_t)(seconds + 0.5);
    if (seconds < 0.995)
        snprintf(out, size, "%.2f s", seconds);
    else if (seconds < 9.95)
        snprintf(out, size, "%.1f s", seconds);
    else if (whole < 60)
        snprintf(out, size, "%" PRIu64 " s", whole);
    else if (whole < 3600)
        snprintf(out, size, "%" PRIu64 " min %02" PRIu64 " s", whole / 60, whole % 60);
    else
        snprintf(out, size, "%" PRIu64 " h %02" PRIu64 " min", whole / 3600, whole / 60 % 60);
    return out;
}

char *co_format_bytes(char *out, size_t size, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    int unit = -1;

    while (value >= 1024 && unit < 5) {
        value /= 1024;
        unit++;
    }
    if (unit < 0)
        snprintf(out, size, "%" PRIu64 " B", bytes);
    else
        snprintf(out, size, value < 10 ? "%.2f %s" : "%.1f %s", value, units[unit]);
    return out;
}

char *co_format_metrics(char *out, size_t size, const co_metric_set *metrics, const double *value,
                        const char *before, int digits)
{
    char real[32];

    for (int i = 0; metrics && i < metrics->n; i++) {
        const size_t used = strlen(out);

        snprintf(out + used, size - used, "%s%s %s", before, metrics->metric[i]->name,
                 co_format_real(real, sizeof(real), value[i], digits));
    }
    return out;
}
