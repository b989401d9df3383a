/*
 * log.c - lines on stderr, one write each, so that lines of several ranks do not mix.
 */
#include "core/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* The one global beside the error message. Ranks may be threads. */
static _Thread_local int log_rank = -1;

void co_log_set_rank(int rank)
{
    log_rank = rank;
}

void co_log(co_log_level level, const char *fmt, ...)
{
    static const char *const names[] = {"error: ", "warning: "};
    const int rank = log_rank;
    char line[2304], who[32] = "";
    size_t used;
    va_list args;

    if (rank > 0)
        snprintf(who, sizeof(who), "rank %d: ", rank);
    used = (size_t)snprintf(line, sizeof(line), "cohort: %s%s", who, names[level]);
    va_start(args, fmt);
    vsnprintf(line + used, sizeof(line) - used - 1, fmt, args);
    va_end(args);
    used = 0;
    while (line[used])
        used++;
    line[used++] = '\n';
    if (write(STDERR_FILENO, line, used) < 0)
        return; /* nowhere left to say so */
}
