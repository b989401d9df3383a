/* tune_print.c - what `cohort tune` has found, for people and as JSON. */
#include <math.h>
#include <string.h>

#include <jansson.h>

#include "cli/tune.h"
#include "core/clock.h"
#include "core/plural.h"
#include "core/text.h"
#include "telemetry/format.h"

static const char *const print_effects[] = {
    [TUNE_SAME] = "same bits", [TUNE_ROUNDING] = "rounding", [TUNE_CHANGES] = "CHANGES"};

bool tune_is_applied(const tune_job *job, const tune_step *step)
{
    return job->options->apply && (step == &job->kept || job->options->change_result);
}

/* "+35%"; "" where another row has it. */
static const char *print_gain(char *out, size_t size, double gain)
{
    if (gain < 0)
        snprintf(out, size, " ");
    else if (!isfinite(gain))
        snprintf(out, size, "-");
    else
        snprintf(out, size, gain < 9.995 ? "%+.0f%%" : "x %.1f",
                 gain < 9.995 ? 100 * gain : gain + 1);
    return out;
}

static int print_width(const tune_step *step, bool proposed, int least)
{
    for (int i = 0; i < step->n; i++) {
        const int n = (int)strlen(proposed ? step->row[i].proposed : step->row[i].now);

        least = n > least ? n : least;
    }
    return least;
}

/* Rows that change the result, or those that do not. */
static void print_rows(const tune_step *step, bool changing)
{
    const int now = print_width(step, false, 6), proposed = print_width(step, true, 8);
    char gain[16];

    printf("  %-19s  %-*s  %-*s  %-7s  %-9s  %s\n", "key", now, "now", proposed, "proposed", "gain",
           "result", "reason");
    for (int i = 0; i < step->n; i++) {
        const tune_row *row = &step->row[i];

        if ((row->effect == TUNE_CHANGES) == changing)
            printf("  %-19s  %-*s  %-*s  %-7s  %-9s  %s\n", row->key, now, CO_SHOW(row->now),
                   proposed, CO_SHOW(row->proposed), print_gain(gain, sizeof(gain), row->gain),
                   print_effects[row->effect], row->gain < 0 ? " \"" : CO_SHOW(row->reason));
    }
}

static bool print_has(const tune_step *step, bool changing)
{
    for (int i = 0; i < step->n; i++)
        if ((step->row[i].effect == TUNE_CHANGES) == changing)
            return true;
    return false;
}

static void print_tables(const tune_job *job)
{
    if (job->kept.n) {
        printf("\nthe same result:\n");
        print_rows(&job->kept, false);
    }
    if (job->changed.n) {
        printf("\non top, what changes what is learnt%s:\n",
               job->kept.n ? "" : " (nothing else gains 2%)");
        print_rows(&job->changed, true);
    }
    if (print_has(&job->changed, false)) {
        printf("\nand with that, what keeps the result and gains only then:\n");
        print_rows(&job->changed, false);
    }
    if (!job->kept.n && !job->changed.n)
        printf("\nnothing that was tried gains 2%%\n");
}

static void print_measured(const tune_job *job)
{
    const co_plan_work *w = &job->plan.work;
    char a[32], b[32], c[32];

    printf("%s: %d core%s", CO_SHOW(job->path), job->cores, co_plural((uint64_t)job->cores));
    if (job->links)
        printf("; a sum between ranks takes %.3g us of 1 KiB, %.3g ms of 4 MiB",
               job->seconds[0] * 1e6, job->seconds[TUNE_MAX_BYTES - 1] * 1e3);
    if (w->read > 0)
        printf("; a reader gives %s samples/s", co_format_rate(a, sizeof(a), 1 / w->read));
    printf("\n\n");
    printf("now:                       %s samples/s\n",
           co_format_rate(a, sizeof(a), job->now_rate));
    if (job->kept.n)
        printf("with the same result:      %s samples/s, x %.2f\n",
               co_format_rate(b, sizeof(b), job->kept.rate), job->kept.rate / job->now_rate);
    if (job->changed.n)
        printf("with what CHANGES it, too: %s samples/s, x %.2f\n",
               co_format_rate(c, sizeof(c), job->changed.rate), job->changed.rate / job->now_rate);
}

/* What to type. */
static void print_remedy(const tune_job *job)
{
    const bool open = job->changed.n && !job->options->change_result;

    if (job->written)
        printf("\n%s is written%s\n", CO_SHOW(job->written),
               open ? "; what changes the result is not in it" : "");
    else if (!job->options->apply && (job->kept.n || job->changed.n))
        printf("\n--apply writes a config with %s%s\n",
               job->kept.n ? "the first table" : "them, given --change-result",
               job->kept.n && job->changed.n ? "; with --change-result, with the rest, too" : "");
    else if (job->options->apply)
        printf("\nnothing is written: %s\n",
               open ? "all that gains changes the result; give --change-result" : "nothing gains");
}

void tune_print(const tune_job *job)
{
    size_t n = 0;
    co_tune_point point;
    double rate;
    char text[32];

    print_measured(job);
    print_tables(job);
    for (int i = 0; i < job->n_failed; i++)
        printf("%scannot run, and left out: %s\n", i ? "" : "\n", CO_SHOW(job->failed[i]));
    while (co_tune_at(&point, &rate, job->search, n))
        n++;
    printf("\n%zu combinations were measured, in %s\n", n,
           co_format_seconds(text, sizeof(text), co_clock_seconds(job->start_ns, co_clock_ns())));
    print_remedy(job);
}

/* ---- JSON ---- */

static json_t *print_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *print_json_set(const tune_job *job, const co_tune_point *point)
{
    const char *set[TUNE_MAX_ROWS + 2];
    json_t *list = json_array();

    if (tune_point_set(set, job, point))
        for (int i = 0; set[i]; i++)
            (void)json_array_append_new(list, json_string(CO_UTF8(set[i])));
    return list;
}

static json_t *print_json_step(const tune_job *job, const tune_step *step)
{
    json_t *rows = json_array();

    for (int i = 0; i < step->n; i++) {
        const tune_row *row = &step->row[i];

        (void)json_array_append_new(
            rows, json_pack("{s:s, s:s, s:s, s:s, s:b, s:o, s:s}", "key", row->key, "now",
                            CO_UTF8(row->now), "proposed", CO_UTF8(row->proposed), "result",
                            row->effect == TUNE_CHANGES ? "changes" : print_effects[row->effect],
                            "applied", job->written && tune_is_applied(job, step), "gain",
                            row->gain < 0 ? json_null() : print_json_real(row->gain), "reason",
                            CO_UTF8(row->reason)));
    }
    return json_pack("{s:f, s:o, s:o}", "samples_per_second", step->rate, "set",
                     print_json_set(job, &step->point), "proposals", rows);
}

static json_t *print_json_points(const tune_job *job)
{
    json_t *list = json_array();
    co_tune_point p;
    double rate;

    for (size_t i = 0; co_tune_at(&p, &rate, job->search, i); i++)
        (void)json_array_append_new(
            list,
            json_pack(
                "{s:I, s:I, s:I, s:s, s:s, s:s, s:f}", "ranks",
                (json_int_t)job->axis[TUNE_LAYOUT].value[p.value[TUNE_LAYOUT]].number, "threads",
                (json_int_t)job->axis[TUNE_LAYOUT].value[p.value[TUNE_LAYOUT]].threads, "batch",
                (json_int_t)job->axis[TUNE_BATCH].value[p.value[TUNE_BATCH]].number, "bucket_mib",
                job->axis[TUNE_BUCKET].value[p.value[TUNE_BUCKET]].text, "strategy",
                CO_UTF8(job->axis[TUNE_STRATEGY].value[p.value[TUNE_STRATEGY]].text),
                "loader_threads", job->axis[TUNE_LOADER].value[p.value[TUNE_LOADER]].text,
                "samples_per_second", rate));
    return list;
}

static json_t *print_json_machine(const tune_job *job)
{
    const co_plan_work *w = &job->plan.work;
    json_t *sums = json_array();

    for (int i = 0; i < job->links; i++)
        (void)json_array_append_new(sums,
                                    json_pack("{s:I, s:f}", "bytes", (json_int_t)job->bytes[i],
                                              "seconds", job->seconds[i]));
    return json_pack("{s:i, s:o, s:f, s:f, s:f}", "cores", job->cores, "sums", sums,
                     "reader_seconds_per_sample", w->read, "kernel_seconds",
                     w->forward + w->backward, "kernel_share_fixed", w->fixed);
}

co_status tune_print_json(const tune_job *job)
{
    json_t *failed = json_array(), *object;
    int bad;

    for (int i = 0; i < job->n_failed; i++)
        (void)json_array_append_new(failed, json_string(CO_UTF8(job->failed[i])));
    object = json_pack(
        "{s:s, s:f, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:s?}", "config", CO_UTF8(job->path),
        "total_seconds", co_clock_seconds(job->start_ns, co_clock_ns()), "search_seconds",
        job->search_seconds, "now_samples_per_second", job->now_rate, "machine",
        print_json_machine(job), "same_result", print_json_step(job, &job->kept), "changed_result",
        print_json_step(job, &job->changed), "measured", print_json_points(job), "cannot_run",
        failed, "written", job->written ? CO_UTF8(job->written) : NULL);
    bad = !object || json_dumpf(object, stdout, CLI_JSON_STYLE);
    json_decref(object);
    if (bad)
        return co_fail(CO_E_NOMEM, "out of memory");
    putchar('\n');
    return CO_OK;
}
