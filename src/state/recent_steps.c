/*
 * recent_steps.c - loss, accuracy and speed of the last steps.
 *
 * Sums are kept over two spans of steps: since the last event over all ranks, and since an event
 * was last due by `log_every`. If ranks synchronize in every step these are the same. Otherwise a
 * due event has rank 0's own figures, and the next synchronization makes an event over all ranks
 * for all steps since the last one. Does not know strategies by name, or what sinks do with the
 * figures.
 */
#include "state/recent_steps.h"

#include <math.h>

#include "comm/queued.h"
#include "model/metrics.h"

static void recent_begin(co_recent_span *span, double seconds)
{
    *span = (co_recent_span){.begin_seconds = seconds};
}

void co_recent_open(co_recent *recent, const co_recent_options *options, double seconds)
{
    co_recent_spans *spans = &recent->spans;

    recent->options = *options;
    if (spans->all.steps == 0)
        recent_begin(&spans->all, seconds);
    if (spans->last.steps == 0)
        recent_begin(&spans->last, seconds);
}

void co_recent_close(co_recent *recent)
{
    if (recent->request)
        co_comm_abandon(recent->options.comm);
    co_request_destroy(recent->request);
    recent->request = NULL;
}

/* Add what the loader's threads read since the last call. */
static void recent_count_reads(co_recent *recent, const co_loader *loader)
{
    const co_loader_reads now = co_loader_read_so_far(loader);
    co_recent_span *const span[] = {&recent->spans.all, &recent->spans.last};

    for (int i = 0; i < 2; i++) {
        span[i]->reads.samples += now.samples - recent->reads.samples;
        span[i]->reads.bytes += now.bytes - recent->reads.bytes;
    }
    recent->reads = now;
}

static void recent_set_term(double *term, const co_recent_span *span, const co_result *step)
{
    co_result sum = span->sum;

    if (step)
        co_metrics_add(&sum, step);
    term[CO_RECENT_COUNT] = (double)sum.count;
    term[CO_RECENT_LOSS] = sum.loss_sum;
    term[CO_RECENT_CORRECT] = (double)sum.correct;
    term[CO_RECENT_CORRECT5] = (double)sum.correct5;
    term[CO_RECENT_READ_SAMPLES] = (double)span->reads.samples;
    term[CO_RECENT_READ_BYTES] = (double)span->reads.bytes;
}

co_status co_recent_post(co_recent *recent, uint64_t step, bool meet, const co_result *figures)
{
    co_comm *comm = recent->options.comm;
    const co_recent_spans *spans = &recent->spans;
    const bool owed =
        spans->last.steps < spans->all.steps; /* rank 0 has reported only its own figures */

    recent_count_reads(recent, recent->options.loader);
    recent->due = step % recent->options.every == 0;
    recent->exchanged = (recent->due || owed) && (co_comm_size(comm) == 1 || meet);
    if (!recent->exchanged)
        return CO_OK;
    recent_set_term(recent->term, &spans->all, figures);
    if (co_comm_size(comm) == 1)
        return CO_OK;
    return co_comm_iallreduce(&recent->request, comm, recent->term, recent->term, CO_RECENT_TERMS,
                              CO_F64, CO_SUM);
}

static double recent_rate(double n, double seconds)
{
    return seconds > 0 ? n / seconds : (double)NAN;
}

static void recent_set_figures(co_recent *recent, const co_recent_span *span, double seconds)
{
    const double *term = recent->term;
    const double n = term[CO_RECENT_COUNT] > 0 ? term[CO_RECENT_COUNT] : (double)NAN;
    const double span_seconds = seconds - span->begin_seconds;

    recent->figures = (co_recent_figures){
        .steps = span->steps,
        .rank0 = !recent->exchanged,
        .loss = term[CO_RECENT_LOSS] / n,
        .accuracy = recent->options.learns_values ? (double)NAN : term[CO_RECENT_CORRECT] / n,
        .accuracy_top5 = recent->options.top5 ? term[CO_RECENT_CORRECT5] / n : -1,
        .samples_per_second = recent_rate((double)span->samples, span_seconds),
        .read_samples_per_second = recent_rate(term[CO_RECENT_READ_SAMPLES], span_seconds),
        .read_bytes_per_second = recent_rate(term[CO_RECENT_READ_BYTES], span_seconds)};
}

static void recent_add(co_recent_span *span, const co_result *step, uint64_t samples)
{
    if (step)
        co_metrics_add(&span->sum, step);
    span->steps++;
    span->samples += samples;
}

/* Wait for the sums over all ranks. With shards, the figures of the step arrived separately. */
static co_status recent_receive(co_recent *recent, const co_result *figures)
{
    double more[CO_RECENT_TERMS];
    const co_recent_span none = {.steps = 0};

    if (recent->request)
        CO_TRY(co_request_wait(recent->request));
    co_request_destroy(recent->request);
    recent->request = NULL;
    if (!recent->options.whole)
        return CO_OK;
    recent_set_term(more, &none, figures);
    for (int i = 0; i < CO_RECENT_TERMS; i++)
        recent->term[i] += more[i];
    return CO_OK;
}

co_status co_recent_finish(co_recent *recent, const co_result *figures, uint64_t samples,
                           double seconds)
{
    co_recent_spans *spans = &recent->spans;
    const bool mine = !recent->options.whole || co_comm_rank(recent->options.comm) == 0;

    recent_add(&spans->all, mine ? figures : NULL, samples);
    recent_add(&spans->last, mine ? figures : NULL, samples);
    recent->figures.steps = 0;
    if (!recent->due && !recent->exchanged)
        return CO_OK;
    if (recent->exchanged) {
        CO_TRY(recent_receive(recent, figures));
        recent_set_figures(recent, &spans->all, seconds);
        recent_begin(&spans->all, seconds);
    } else {
        recent_set_term(recent->term, &spans->last, NULL);
        recent_set_figures(recent, &spans->last, seconds);
    }
    if (recent->due)
        recent_begin(&spans->last, seconds);
    return CO_OK;
}

static void recent_empty(co_recent_span *span)
{
    span->sum = (co_result){.count = 0};
    span->reads = (co_loader_reads){0, 0};
}

co_recent_spans co_recent_empty(const co_recent_spans *spans)
{
    co_recent_spans out = *spans;

    recent_empty(&out.all);
    recent_empty(&out.last);
    return out;
}

static void recent_join(co_recent_span *sum, const co_recent_span *part)
{
    co_metrics_add(&sum->sum, &part->sum);
    sum->reads.samples += part->reads.samples;
    sum->reads.bytes += part->reads.bytes;
}

void co_recent_add(co_recent_spans *sum, const co_recent_spans *part)
{
    recent_join(&sum->all, &part->all);
    recent_join(&sum->last, &part->last);
}
