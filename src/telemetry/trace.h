/*
 * trace.h - spans of time as a file for trace viewers: Chrome's trace event format, which Perfetto
 * and chrome://tracing read.
 *
 * A rank is a process, each of its threads a track.
 */
#ifndef CO_TELEMETRY_TRACE_H
#define CO_TELEMETRY_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include <cohort/status.h>

typedef struct co_trace co_trace;

typedef struct co_trace_span {
    const char *name, *category;
    int process, thread;
    uint64_t begin_ns, end_ns; /* no earlier than the trace's start */
    uint64_t step;             /* of the run; UINT64_MAX: none */
    const char *unit;          /* of `value`, "bytes"; NULL: there is none */
    uint64_t value;
    bool overlaps; /* spans of this track may overlap without being nested */
} co_trace_span;

/* `dir`/trace.json, which appears when the trace is closed. Times count from `start_ns`. */
co_status co_trace_open(co_trace **out, const char *dir, uint64_t start_ns);
co_status co_trace_name_process(co_trace *trace, int process, const char *name);
co_status co_trace_name_thread(co_trace *trace, int process, int thread, const char *name);
co_status co_trace_add(co_trace *trace, const co_trace_span *span);
/* Complete the file; after CO_E_IO there is none. Frees `trace` on failure, too. */
co_status co_trace_close(co_trace *trace);
/* Free `trace` without leaving a file; takes NULL. */
void co_trace_discard(co_trace *trace);

#endif
