/*
 * trace.c - trace events, one per line, written as they are added.
 *
 * "X" is a span of a track whose spans are nested; "b" and "e" begin and end one that may overlap
 * others, and have an id in common. "M" gives names.
 */
#include "telemetry/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "core/fs.h"
#include "core/mem.h"

struct co_trace {
    co_atomic_file *file; /* owned */
    FILE *out;
    uint64_t start_ns, id;
    bool any;
};

co_status co_trace_open(co_trace **out, const char *dir, uint64_t start_ns)
{
    const size_t size = strlen(dir) + sizeof("/trace.json");
    co_trace *trace = co_calloc(1, sizeof(*trace));
    char *path = co_calloc(size, 1);
    co_status st = trace && path ? CO_OK : CO_E_NOMEM;

    if (st == CO_OK) {
        snprintf(path, size, "%s/trace.json", dir);
        st = co_atomic_open(&trace->file, path);
    }
    co_free(path);
    if (st != CO_OK) {
        co_free(trace);
        return st;
    }
    trace->out = co_atomic_stream(trace->file);
    trace->start_ns = start_ns;
    fputs("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [", trace->out);
    *out = trace;
    return CO_OK;
}

/* `text` as a JSON string; free with free. NULL if out of memory. */
static char *trace_quote(const char *text)
{
    json_t *string = json_string(text);
    char *quoted = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;

    json_decref(string);
    return quoted;
}

/* Begin an event, up to the members of its kind. The close reports failed writes. */
static co_status trace_begin(co_trace *trace, const char *kind, const char *name, int process,
                             int thread)
{
    char *quoted = trace_quote(name);

    if (!quoted)
        return co_fail(CO_E_NOMEM, "out of memory");
    fprintf(trace->out, "%s\n{\"ph\": \"%s\", \"pid\": %d, \"tid\": %d, \"name\": %s",
            trace->any ? "," : "", kind, process, thread, quoted);
    trace->any = true;
    free(quoted);
    return CO_OK;
}

static co_status trace_name(co_trace *trace, const char *what, int process, int thread,
                            const char *name)
{
    char *quoted = trace_quote(name);
    co_status st = quoted ? trace_begin(trace, "M", what, process, thread)
                          : co_fail(CO_E_NOMEM, "out of memory");

    if (st == CO_OK)
        fprintf(trace->out, ", \"ts\": 0, \"args\": {\"name\": %s}}", quoted);
    free(quoted);
    return st;
}

co_status co_trace_name_process(co_trace *trace, int process, const char *name)
{
    CO_TRY(trace_name(trace, "process_name", process, 0, name));
    CO_TRY(trace_begin(trace, "M", "process_sort_index", process, 0));
    fprintf(trace->out, ", \"ts\": 0, \"args\": {\"sort_index\": %d}}", process);
    return CO_OK;
}

co_status co_trace_name_thread(co_trace *trace, int process, int thread, const char *name)
{
    CO_TRY(trace_name(trace, "thread_name", process, thread, name));
    CO_TRY(trace_begin(trace, "M", "thread_sort_index", process, thread));
    fprintf(trace->out, ", \"ts\": 0, \"args\": {\"sort_index\": %d}}", thread);
    return CO_OK;
}

/* Microseconds since the start, to the nanosecond. */
static void trace_time(const co_trace *trace, const char *key, uint64_t ns)
{
    fprintf(trace->out, ", \"%s\": %" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

static void trace_args(const co_trace *trace, const co_trace_span *span)
{
    const bool step = span->step != UINT64_MAX;

    fprintf(trace->out, ", \"cat\": \"%s\", \"args\": {", span->category);
    if (step)
        fprintf(trace->out, "\"step\": %" PRIu64, span->step);
    if (span->unit)
        fprintf(trace->out, "%s\"%s\": %" PRIu64, step ? ", " : "", span->unit, span->value);
    fputs("}}", trace->out);
}

static uint64_t trace_since(const co_trace *trace, uint64_t ns)
{
    return ns > trace->start_ns ? ns - trace->start_ns : 0;
}

co_status co_trace_add(co_trace *trace, const co_trace_span *span)
{
    const uint64_t begin = trace_since(trace, span->begin_ns);
    const uint64_t end = trace_since(trace, span->end_ns);

    CO_TRY(trace_begin(trace, span->overlaps ? "b" : "X", span->name, span->process, span->thread));
    trace_time(trace, "ts", begin);
    if (!span->overlaps) {
        trace_time(trace, "dur", end - begin);
        trace_args(trace, span);
        return CO_OK;
    }
    fprintf(trace->out, ", \"id\": %" PRIu64, trace->id);
    trace_args(trace, span);
    CO_TRY(trace_begin(trace, "e", span->name, span->process, span->thread));
    trace_time(trace, "ts", end);
    fprintf(trace->out, ", \"id\": %" PRIu64 ", \"cat\": \"%s\"}", trace->id++, span->category);
    return CO_OK;
}

co_status co_trace_close(co_trace *trace)
{
    co_atomic_file *file = trace->file;

    fputs("\n]}\n", trace->out);
    co_free(trace);
    return co_atomic_commit(file);
}

void co_trace_discard(co_trace *trace)
{
    if (!trace)
        return;
    co_atomic_discard(trace->file);
    co_free(trace);
}
