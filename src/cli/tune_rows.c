/* tune_rows.c - the keys that a step of `cohort tune` changes, each with its reason and gain. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/tune.h"
#include "core/plural.h"
#include "strategy/bucket.h"
#include "telemetry/format.h"

#define ROWS_FIXED 0.05 /* of forward and backward, worth to be named */

/* One axis of a step. */
typedef struct rows_change {
    const tune_job *job;
    const co_tune_point *from, *to;
    const tune_value *before, *after;
    int effect;
    double gain;
} rows_change;

static co_status rows_add(tune_step *step, const rows_change *c, const char *key, const char *now,
                          const char *proposed, const char *reason)
{
    tune_row *row = &step->row[step->n];
    const bool first = step->n == 0 || row[-1].reason != reason;

    if (!now || !proposed || !reason)
        return CO_E_NOMEM;
    *row = (tune_row){.key = key,
                      .now = now,
                      .proposed = proposed,
                      .effect = c->effect,
                      .gain = first ? c->gain : -1,
                      .reason = reason};
    step->n++;
    return CO_OK;
}

static const char *rows_number(const rows_change *c, int64_t n)
{
    return co_arena_printf(tune_arena(c->job), "%" PRId64, n);
}

/* Share of the exchange in a step at a point. */
static double rows_exchange(const tune_job *job, const co_tune_point *point)
{
    co_prediction p;

    return tune_predict(&p, job, point) ? p.term[CO_TERM_EXCHANGE] / p.step : 0;
}

/* ---- ranks, threads, batch ---- */

static const char *rows_threads(const rows_change *c, const tune_value *value)
{
    return value->threads ? rows_number(c, value->threads) : "auto";
}

static co_status rows_layout(tune_step *step, const rows_change *c)
{
    const int64_t want = c->before->number * (c->before->threads ? c->before->threads : 1);
    const int cores = c->job->cores;
    co_arena *arena = tune_arena(c->job);
    const char *reason;

    if (want > cores)
        reason = co_arena_printf(arena, "%" PRId64 " threads take turns on %d core%s", want, cores,
                                 co_plural((uint64_t)cores));
    else if (c->after->number > 1)
        reason =
            co_arena_printf(arena, "%s (ranks x threads) on %d cores; exchange %.0f%% of a step",
                            c->after->text, cores, 100 * rows_exchange(c->job, c->to));
    else
        reason = co_arena_printf(arena, "%s (ranks x threads): one rank waits for no other",
                                 c->after->text);
    if (c->before->number != c->after->number)
        CO_TRY(rows_add(step, c, "ranks", rows_number(c, c->before->number),
                        rows_number(c, c->after->number), reason));
    if (c->before->threads != c->after->threads)
        CO_TRY(rows_add(step, c, "threads", rows_threads(c, c->before), rows_threads(c, c->after),
                        reason));
    return CO_OK;
}

static int64_t rows_batch_each(const tune_job *job, const co_tune_point *point)
{
    return job->axis[TUNE_BATCH].value[point->value[TUNE_BATCH]].number /
           job->axis[TUNE_LAYOUT].value[point->value[TUNE_LAYOUT]].number;
}

/* With batch_per_rank, ranks change the key, and the batch stays. */
static co_status rows_batch_per_rank(tune_step *step, const rows_change *c)
{
    const int64_t before = rows_batch_each(c->job, c->from), after = rows_batch_each(c->job, c->to);

    if (!c->job->plan.net.spec.batch_per_rank || before == after)
        return CO_OK;
    return rows_add(step, c, "batch_per_rank", rows_number(c, before), rows_number(c, after),
                    step->n ? step->row[step->n - 1].reason : "the batch of all ranks stays");
}

static co_status rows_batch(tune_step *step, const rows_change *c)
{
    const double samples = (double)c->after->number / (double)c->before->number;
    const double fixed = c->job->plan.work.fixed;
    const char *reason =
        co_arena_printf(tune_arena(c->job), "%.3g times the samples in %.2g times the time",
                        samples, samples / (1 + c->gain));

    if (reason && fixed >= ROWS_FIXED)
        reason = co_arena_printf(tune_arena(c->job),
                                 "%s; %.0f%% of forward and backward do not grow with it", reason,
                                 100 * fixed);
    if (c->job->plan.net.spec.batch_per_rank)
        return rows_add(step, c, "batch_per_rank", rows_number(c, rows_batch_each(c->job, c->from)),
                        rows_number(c, rows_batch_each(c->job, c->to)), reason);
    return rows_add(step, c, "batch", c->before->text, c->after->text, reason);
}

/* ---- buckets, strategy, readers ---- */

static size_t rows_buckets(const rows_change *c, const tune_value *value)
{
    return co_bucket_count(c->job->plan.work.n,
                           co_bucket_elements(value->mib > 0 ? value->mib : 4));
}

static co_status rows_bucket(tune_step *step, const rows_change *c)
{
    const size_t before = rows_buckets(c, c->before), after = rows_buckets(c, c->after);
    const char *reason =
        co_arena_printf(tune_arena(c->job),
                        "%zu bucket%s instead of %zu; a sum takes %.2g us before its first byte",
                        after, co_plural(after), before, c->job->seconds[0] * 1e6);

    return rows_add(step, c, "strategy.bucket_mib", c->before->text, c->after->text, reason);
}

static co_status rows_strategy(tune_step *step, const rows_change *c)
{
    co_tune_point without = *c->to;

    without.value[TUNE_STRATEGY] = c->from->value[TUNE_STRATEGY];
    return rows_add(step, c, "strategy", c->before->text, c->after->text,
                    co_arena_printf(tune_arena(c->job),
                                    "without it exchange would be %.0f%% of a step",
                                    100 * rows_exchange(c->job, &without)));
}

static co_status rows_loader(tune_step *step, const rows_change *c)
{
    const double need = tune_readers(c->job, c->to);
    char rate[32];
    const char *reason =
        c->job->plan.work.read > 0
            ? co_arena_printf(tune_arena(c->job),
                              "a reader gives %s samples/s, a rank takes %.2g of one",
                              co_format_rate(rate, sizeof(rate), 1 / c->job->plan.work.read), need)
            : "measured";

    return rows_add(step, c, "loader.threads", c->before->text, c->after->text, reason);
}

/* What ranks do to the result is known of the config's strategy alone; buckets matter where a
   compressor selects in each. */
static int rows_effect(const tune_job *job, const tune_step *step, int axis, int effect)
{
    const int strategy = step->point.value[TUNE_STRATEGY];

    if (axis == TUNE_BUCKET)
        return job->axis[TUNE_STRATEGY].value[strategy].choice.compress > CO_CHOICE_HALF
                   ? TUNE_CHANGES
                   : TUNE_SAME;
    return strategy != 0 && axis != TUNE_LOADER ? TUNE_CHANGES : effect;
}

co_status tune_rows(tune_step *step, const tune_job *job, const co_tune_point *from,
                    const double *gain)
{
    static co_status (*const rows[])(tune_step *, const rows_change *) = {
        [TUNE_LAYOUT] = rows_layout,     [TUNE_BATCH] = rows_batch,   [TUNE_BUCKET] = rows_bucket,
        [TUNE_STRATEGY] = rows_strategy, [TUNE_LOADER] = rows_loader,
    };

    step->n = 0;
    for (int a = 0; a < TUNE_AXES; a++) {
        const tune_value *before = &job->axis[a].value[from->value[a]];
        const tune_value *after = &job->axis[a].value[step->point.value[a]];
        const int effect = before->effect > after->effect ? before->effect : after->effect;
        const rows_change c = {
            job, from, &step->point, before, after, rows_effect(job, step, a, effect), gain[a]};

        if (before == after)
            continue;
        CO_TRY(rows[a](step, &c));
        if (a == TUNE_LAYOUT && from->value[TUNE_BATCH] == step->point.value[TUNE_BATCH])
            CO_TRY(rows_batch_per_rank(step, &c));
    }
    return CO_OK;
}
