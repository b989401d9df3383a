/*
 * write.c - what all ranks' profilers saw, into the run directory: profile.json, trace.json
 * and a table.
 *
 * Ranks send rows and spans to rank 0 one after another, so that it holds those of one at a time.
 */
#include "profile/write.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "comm/watch.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/text.h"
#include "telemetry/trace.h"

#define WRITE_ROWS     24 /* kernels in the table */
#define WRITE_HOST     64
#define WRITE_TITLE    160
#define WRITE_EARLY_NS 10000000u /* readers and other ranks may have begun before */

/* What a rank says before its rows and spans. */
typedef struct write_head {
    char host[WRITE_HOST];
    uint64_t now_ns; /* after a barrier: the same moment on all hosts, nearly */
    uint64_t first_step, steps, n_row;
    double step_seconds;
    int32_t n_track, rank;
    co_roof roof;
} write_head;

/* A rank's track as it goes over. */
typedef struct write_track {
    uint64_t n, lost;
} write_track;

typedef struct writer {
    const co_profile_job *job;
    co_profile_file *file;
    co_trace *trace; /* NULL: it cannot be written */
    write_head own;
    uint64_t lost;
    bool lacks; /* a file */
} writer;

static co_status write_describe(write_head *out, const co_profile_job *job)
{
    const co_profiler *p = job->profiler;

    *out = (write_head){.first_step = co_profiler_first_step(p),
                        .steps = co_profiler_steps(p),
                        .n_row = co_profiler_row_count(p),
                        .step_seconds = co_profiler_step_seconds(p),
                        .n_track = co_profiler_track_count(p),
                        .rank = co_comm_rank(job->comm),
                        .roof = *job->roof};
    (void)gethostname(out->host, sizeof(out->host) - 1);
    CO_TRY(co_comm_barrier(job->comm));
    CO_TRY(co_comm_barrier(job->comm)); /* the first one waited for ranks that were late */
    out->now_ns = co_clock_ns();
    return CO_OK;
}

/* What to add to a rank's times to have them on rank 0's clock. */
static uint64_t write_offset(const writer *w, const write_head *head)
{
    return strcmp(head->host, w->own.host) == 0 ? 0 : w->own.now_ns - head->now_ns;
}

static co_status write_rows(writer *w, const write_head *head, const co_profile_row *row)
{
    char title[WRITE_TITLE];
    const co_profile profile = {.title = title,
                                .rank = head->rank,
                                .first_step = head->first_step + 1,
                                .steps = head->steps,
                                .step_seconds = head->step_seconds,
                                .roof = head->roof,
                                .n_row = head->n_row,
                                .row = row};

    snprintf(title, sizeof(title), "%s, batch %llu, rank %d of %d, steps %llu to %llu",
             w->job->info->model, (unsigned long long)w->job->info->batch, (int)head->rank,
             co_comm_size(w->job->comm), (unsigned long long)head->first_step + 1,
             (unsigned long long)head->first_step + head->steps);
    if (w->job->table && head->rank == 0 && head->steps) {
        fputc('\n', w->job->table);
        CO_TRY(co_profile_print(w->job->table, &profile, WRITE_ROWS));
        fputc('\n', w->job->table);
    }
    if (w->job->table && head->steps && co_comm_size(w->job->comm) > 1)
        CO_TRY(co_profile_print_rank(w->job->table, &profile));
    return co_profile_file_add(w->file, &profile);
}

/* What a span of the compute track is called. */
static void write_name(char *out, size_t size, const co_profile_row *row, uint32_t what)
{
    static const char *const whole[] = {[CO_PROFILE_STEP] = "step",
                                        [CO_PROFILE_IN_FORWARD] = "forward",
                                        [CO_PROFILE_IN_BACKWARD] = "backward"};
    const bool named = what < sizeof(whole) / sizeof(whole[0]) && whole[what];

    if (row->kind == CO_PROFILE_OTHER)
        snprintf(out, size, "%s", named ? whole[what] : row->name);
    else
        snprintf(out, size, "%s %s", row->name, row->op);
}

static co_status write_span(const writer *w, const write_head *head, const co_profile_row *row,
                            int track, const co_span *span)
{
    static const char *const category[] = {"forward", "backward", "loop"};
    const uint64_t offset = write_offset(w, head);
    char name[96] = "read samples";
    co_trace_span event = {.name = name,
                           .category = "reader",
                           .process = head->rank,
                           .thread = track,
                           .begin_ns = span->begin_ns + offset,
                           .end_ns = span->end_ns + offset,
                           .step = UINT64_MAX,
                           .value = span->value,
                           .unit = track == 0   ? NULL
                                   : track == 1 ? "bytes"
                                                : "samples",
                           .overlaps = track == 1};

    if (track == 0 && span->what < head->n_row)
        write_name(name, sizeof(name), &row[span->what], span->what);
    if (track == 0 && span->what < head->n_row)
        event.category = category[row[span->what].kind];
    if (track == 1) {
        snprintf(name, sizeof(name), "%s", co_comm_coll_name((co_coll)span->what));
        event.category = "communication";
    }
    if (track < 2)
        event.step = span->step + (uint64_t)1;
    return co_trace_add(w->trace, &event);
}

static co_status write_process(const writer *w, const write_head *head)
{
    char name[WRITE_HOST + 32];

    if (!w->trace)
        return CO_OK;
    snprintf(name, sizeof(name), "rank %d on %s", (int)head->rank, head->host);
    CO_TRY(co_trace_name_process(w->trace, head->rank, name));
    for (int i = 0; i < head->n_track; i++) {
        snprintf(name, sizeof(name), "reader %d", i - 2);
        CO_TRY(co_trace_name_thread(w->trace, head->rank, i,
                                    i == 0   ? "compute"
                                    : i == 1 ? "communication"
                                             : name));
    }
    return CO_OK;
}

static co_status write_track_of(writer *w, const write_head *head, const co_profile_row *row,
                                int track, const co_span_list *list)
{
    w->lost += list->lost;
    for (size_t i = 0; w->trace && i < list->n; i++)
        CO_TRY(write_span(w, head, row, track, &list->span[i]));
    return CO_OK;
}

/* ---- this rank's, on rank 0 ---- */

static co_status write_own(writer *w)
{
    const co_profiler *p = w->job->profiler;
    co_profile_row *row = co_calloc(w->own.n_row, sizeof(*row));
    co_status st;

    if (!row)
        return CO_E_NOMEM;
    co_profiler_rows(row, p);
    st = write_rows(w, &w->own, row);
    if (st == CO_OK)
        st = write_process(w, &w->own);
    for (int i = 0; i < w->own.n_track && st == CO_OK; i++) {
        const co_span_list list = co_profiler_track(p, i);

        st = write_track_of(w, &w->own, row, i, &list);
    }
    co_free(row);
    return st;
}

/* ---- another's: what write_send sends, write_receive takes ---- */

static co_status write_send(const co_profile_job *job, const write_head *head)
{
    co_profile_row *row = co_calloc(head->n_row, sizeof(*row));
    co_status st = row ? CO_OK : CO_E_NOMEM;

    if (st == CO_OK) {
        co_profiler_rows(row, job->profiler);
        st = co_comm_send(job->comm, head, sizeof(*head), CO_U8, 0);
    }
    if (st == CO_OK)
        st = co_comm_send(job->comm, row, head->n_row * sizeof(*row), CO_U8, 0);
    for (int i = 0; i < head->n_track && st == CO_OK; i++) {
        const co_span_list list = co_profiler_track(job->profiler, i);
        const write_track size = {list.n, list.lost};

        st = co_comm_send(job->comm, &size, sizeof(size), CO_U8, 0);
        if (st == CO_OK && list.n)
            st = co_comm_send(job->comm, list.span, list.n * sizeof(co_span), CO_U8, 0);
    }
    co_free(row);
    return st;
}

static co_status write_receive_track(writer *w, const write_head *head, const co_profile_row *row,
                                     int track)
{
    co_comm *comm = w->job->comm;
    write_track size;
    co_span *span;
    co_status st;

    CO_TRY(co_comm_recv(comm, &size, sizeof(size), CO_U8, head->rank));
    span = co_calloc(size.n + 1, sizeof(*span));
    if (!span)
        return CO_E_NOMEM;
    st = size.n ? co_comm_recv(comm, span, size.n * sizeof(*span), CO_U8, head->rank) : CO_OK;
    if (st == CO_OK)
        st = write_track_of(w, head, row, track, &(co_span_list){span, size.n, size.lost});
    co_free(span);
    return st;
}

static co_status write_receive(writer *w, int rank)
{
    co_comm *comm = w->job->comm;
    co_profile_row *row;
    write_head head;
    co_status st;

    CO_TRY(co_comm_recv(comm, &head, sizeof(head), CO_U8, rank));
    row = co_calloc(head.n_row, sizeof(*row));
    if (!row)
        return CO_E_NOMEM;
    st = co_comm_recv(comm, row, head.n_row * sizeof(*row), CO_U8, rank);
    if (st == CO_OK)
        st = write_rows(w, &head, row);
    if (st == CO_OK)
        st = write_process(w, &head);
    for (int i = 0; i < head.n_track && st == CO_OK; i++)
        st = write_receive_track(w, &head, row, i);
    co_free(row);
    return st;
}

/* The first thing that happened, of rank 0: later ones of others are never earlier by much. */
static uint64_t write_start(const co_profiler *p)
{
    const co_span_list list = co_profiler_track(p, 0);
    uint64_t start = UINT64_MAX;

    for (size_t i = 0; i < list.n; i++)
        start = list.span[i].begin_ns < start ? list.span[i].begin_ns : start;
    return list.n ? start - (start > WRITE_EARLY_NS ? WRITE_EARLY_NS : start) : 0;
}

/* The run is complete without a file of the profile, and other ranks wait for theirs to be taken:
   what a full disk prevents is a warning. */
static co_status write_file(writer *w, co_status st)
{
    if (st == CO_OK || st == CO_E_NOMEM)
        return st;
    w->lacks = true;
    co_log(CO_LOG_WARN, "--profile: %s; the results of the run are complete without it",
           co_error_message());
    return CO_OK;
}

/* The trace first: one that does not fit leaves its room to the profile. */
static co_status write_files(writer *w)
{
    co_trace *trace = w->trace;

    w->trace = NULL;
    if (trace)
        CO_TRY(write_file(w, co_trace_close(trace)));
    return write_file(w, co_profile_file_write(w->file, w->job->run_dir));
}

static co_status write_all(writer *w)
{
    const co_profile_job *job = w->job;
    const int ranks = co_comm_size(job->comm);

    CO_TRY(co_profile_file_create(&w->file, job->info->model, job->info->batch, ranks));
    CO_TRY(write_file(w, co_trace_open(&w->trace, job->run_dir, write_start(job->profiler))));
    if (!w->own.steps && !job->cut)
        co_log(
            CO_LOG_WARN,
            "--profile: the run ended before the step %llu, with which the profile was to begin; "
            "give a smaller --profile-skip",
            (unsigned long long)w->own.first_step + 1);
    CO_TRY(write_own(w));
    for (int rank = 1; rank < ranks; rank++)
        CO_TRY(write_receive(w, rank));
    return write_files(w);
}

co_status co_profile_write(const co_profile_job *job)
{
    writer w = {.job = job};
    co_status st;

    CO_TRY(co_profiler_settle(job->profiler));
    CO_TRY(write_describe(&w.own, job));
    if (w.own.rank != 0)
        return write_send(job, &w.own);
    st = write_all(&w);
    if (st == CO_OK && job->table && !w.lacks)
        fprintf(job->table,
                "profile: %s/profile.json; trace.json beside it is for "
                "https://ui.perfetto.dev%s\n",
                CO_SHOW(job->run_dir), w.lost ? " (not all of it fitted)" : "");
    co_trace_discard(w.trace);
    co_profile_file_destroy(w.file);
    return st;
}
