/*
 * standard_output.c - flush standard output after a sink has printed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "telemetry/telemetry.h"

co_status co_sink_flush_output(bool *failed)
{
    int cause;

    *failed = fflush(stdout) != 0 || *failed;
    cause = errno;
    if (!*failed)
        return CO_OK;
    clearerr(stdout);
    if (cause == EPIPE) /* the reader has exited; the run directory has everything */
        return CO_OK;
    return co_fail(CO_E_IO, "cannot write to standard output: %s; --quiet trains without it",
                   strerror(cause));
}
