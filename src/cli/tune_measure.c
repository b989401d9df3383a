/*
 * tune_measure.c - what `cohort tune` measures: this machine once, for the model of `cohort plan`,
 * and points of the search in short trainings.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench_comm.h"
#include "cli/machine.h"
#include "cli/tune.h"
#include "core/clock.h"
#include "core/plural.h"
#include "core/process.h"
#include "telemetry/format.h"

#define MEASURE_ROUNDS     3
#define MEASURE_AGAIN      4      /* times the steps: far too few */
#define MEASURE_MOST       100000 /* steps */
#define MEASURE_PROFILE    20     /* steps, unless they take long */
#define MEASURE_STEP_MOST  4      /* times --ms, of a step with a larger batch than the config's */
#define MEASURE_BUCKETS    2      /* sizes that are tried, besides auto */
#define MEASURE_BUCKET_GAP 0.005  /* sizes that are predicted nearer than this are alike */
#define MEASURE_BUSY       0.7    /* of a reader's time */
#define MEASURE_LITTLE     0.2    /* likewise: their number makes no difference */

/* ---- progress ---- */

static void measure_show(const tune_job *job, const char *what)
{
    double done = 0, left = 0, seconds;
    char text[32];

    if (!job->terminal)
        return;
    fprintf(stderr, "\r\033[Ktune: %s", what);
    co_tune_progress(&done, &left, job->search);
    if (job->searching_ns && done > 0 && left > 0) {
        seconds = co_clock_seconds(job->searching_ns, co_clock_ns()) / done * left;
        fprintf(stderr, ": about %s left", co_format_seconds(text, sizeof(text), seconds));
    }
    fflush(stderr);
}

static void measure_show_point(const tune_job *job, const co_tune_point *point)
{
    const tune_value *layout = &job->axis[TUNE_LAYOUT].value[point->value[TUNE_LAYOUT]];
    char what[256];

    snprintf(what, sizeof(what), "ranks x threads %s, batch %s, bucket_mib %s, %s, readers %s",
             layout->text, job->axis[TUNE_BATCH].value[point->value[TUNE_BATCH]].text,
             job->axis[TUNE_BUCKET].value[point->value[TUNE_BUCKET]].text,
             job->axis[TUNE_STRATEGY].value[point->value[TUNE_STRATEGY]].text,
             job->axis[TUNE_LOADER].value[point->value[TUNE_LOADER]].text);
    measure_show(job, what);
}

/* ---- a point ---- */

/* Why it could not run; the same reason once. */
static void measure_note(tune_job *job, const char *why)
{
    for (int i = 0; i < job->n_failed; i++)
        if (strcmp(job->failed[i], why) == 0)
            return;
    if (job->n_failed < TUNE_MAX_FAILED) {
        const char *copy = co_arena_strdup(tune_arena(job), why);

        if (copy)
            job->failed[job->n_failed++] = copy;
    }
}

/* The config as it is, which has to run. */
static bool measure_is_now(const tune_job *job, const co_tune_point *point)
{
    return !(job->now_rate > 0) || memcmp(point, &job->now, sizeof(*point)) == 0;
}

/* Steps by what is known of the point, or of the last one with the same ranks and threads: threads
   that take turns may be hundreds of times slower, so that nothing else is a guide. A step with a
   larger batch takes up to as many times longer; with a smaller one, something between. */
static uint64_t measure_steps(const tune_job *job, const co_tune_point *point, double effort)
{
    const tune_seen *seen = &job->seen[point->value[TUNE_LAYOUT]];
    const double batch = (double)job->axis[TUNE_BATCH].value[point->value[TUNE_BATCH]].number;
    const double known = co_tune_rate(job->search, point);
    const double least = effort < 1 ? 1 : MEASURE_ROUNDS;
    double step = batch / known;

    if (!(known > 0)) {
        if (!(seen->step > 0))
            return (uint64_t)least;
        step = seen->step * (batch > seen->batch ? batch / seen->batch : sqrt(batch / seen->batch));
    }
    return (uint64_t)fmin(fmax(effort * (double)job->options->ms * 1e-3 / step, least),
                          MEASURE_MOST);
}

/* Memory that the model says is not there must not be tried. */
static bool measure_fits(tune_job *job, const co_tune_point *point)
{
    co_prediction p;

    if (!job->plan.work.source || !tune_predict(&p, job, point) || p.fits)
        return true;
    measure_note(job, "more memory than there is");
    return false;
}

/* Once more where the steps were far too few. */
static co_status measure_train(double *rate, tune_job *job, const co_train_options *run,
                               const co_tune_point *point, double effort)
{
    const double batch = (double)job->axis[TUNE_BATCH].value[point->value[TUNE_BATCH]].number;
    uint64_t steps = measure_steps(job, point, effort), before;
    co_bench_summary summary;

    do {
        const int rounds = steps < MEASURE_ROUNDS ? 1 : MEASURE_ROUNDS;
        const uint64_t each = steps / (uint64_t)rounds;

        before = steps;
        CO_TRY(co_bench_train(&summary, run, each / 3 + 1, each, rounds));
        CO_TRY(co_process_asked());
        *rate = summary.samples_per_second[1];
        job->seen[point->value[TUNE_LAYOUT]] = (tune_seen){batch, batch / *rate};
        steps = measure_steps(job, point, effort);
    } while (before <= MEASURE_ROUNDS && steps > MEASURE_AGAIN * before);
    return CO_OK;
}

co_status tune_measure_point(double *rate, void *arg, const co_tune_point *point, double effort)
{
    tune_job *job = arg;
    const cli_list *own = &job->options->set;
    const char *set[CLI_MAX_LIST + TUNE_MAX_ROWS + 2];
    const tune_value *layout = &job->axis[TUNE_LAYOUT].value[point->value[TUNE_LAYOUT]];
    const co_train_options run = {
        .config_path = job->path, .set = set, .ranks = (int)layout->number, .quiet = true};
    co_status st;

    *rate = 0;
    memcpy(set, own->text, (size_t)own->n * sizeof(*set));
    if (!tune_point_set(set + own->n, job, point) || !measure_fits(job, point))
        return CO_OK;
    measure_show_point(job, point);
    st = measure_train(rate, job, &run, point, effort);
    if (st == CO_OK)
        return CO_OK;
    *rate = 0;
    if (st == CO_E_INTERRUPTED || st == CO_E_TERMINATED || measure_is_now(job, point))
        return st;
    measure_note(job, co_error_message());
    return CO_OK;
}

/* ---- the machine ---- */

/* The config as it is: whether it trains, and how long a step takes. */
static co_status measure_now(tune_job *job)
{
    measure_show(job, "the config as it is");
    CO_TRY(co_tune_look(job->search, &job->now));
    job->now_rate = co_tune_rate(job->search, &job->now);
    return CO_OK;
}

/* Sums over as many ranks as there are cores, if any candidate has several. */
static co_status measure_links(tune_job *job)
{
    static const size_t bytes[TUNE_MAX_BYTES] = {1 << 10, 16 << 10, 256 << 10,
                                                 1 << 20, 2 << 20,  4 << 20};
    const tune_axis *layout = &job->axis[TUNE_LAYOUT];
    const int ranks = job->cores > 1 ? job->cores : 2;
    co_cost_link *link = &job->plan.cluster.inside.cost;
    double *seconds = job->seconds;
    bool several = false;

    for (int v = 0; v < layout->n; v++)
        several = several || layout->value[v].number > 1;
    if (!several)
        return CO_OK;
    measure_show(job, "sums between ranks");
    CO_TRY(bench_comm_sums(seconds, bytes, TUNE_MAX_BYTES, ranks));
    memcpy(job->bytes, bytes, sizeof(bytes));
    job->links = TUNE_MAX_BYTES;
    link->latency = seconds[0] / 2;
    link->bandwidth = 2.0 * (ranks - 1) / ranks * (double)(bytes[5] - bytes[4]) /
                      fmax(seconds[5] - seconds[4], 1e-9);
    return CO_OK;
}

/* Kernels by batch, and readers, with as many threads as a rank has cores. */
static co_status measure_work(tune_job *job)
{
    plan_job *plan = &job->plan;
    const int64_t ranks = plan->net.spec.ranks;
    const double batch = (double)job->axis[TUNE_BATCH].value[0].number;
    const double step = batch / fmax(job->now_rate, 1e-9);
    const double steps = (double)job->options->ms * 1e-3 / step;
    static const char *const fixed = "threads=0";
    const int64_t each = ranks < job->cores ? ranks : job->cores;

    plan->work.threads = job->cores / (int)each;
    plan->cluster.ranks_per_node = each;
    job->plan_options.steps = (int64_t)fmin(fmax(steps, MEASURE_ROUNDS), MEASURE_PROFILE);
    job->plan_options.skip = job->plan_options.steps / 2;
    job->plan_options.set = job->options->set;
    if (job->plan_options.set.n < CLI_MAX_LIST) {
        job->plan_options.set.text[job->plan_options.set.n++] = fixed;
        job->plan_options.set.text[job->plan_options.set.n] = NULL;
    }
    plan->options = &job->plan_options;
    plan->batch = co_arena_alloc(tune_arena(job), 2, sizeof(*plan->batch));
    if (!plan->batch)
        return CO_E_NOMEM;
    plan->batch[0] = fmax(floor(batch / (double)each), 1);
    plan->n_batch = 2; /* so that a second, smaller one is measured */
    plan->n_choice = 0;
    measure_show(job, "kernels by batch, and readers");
    return plan_measure(plan);
}

co_status tune_measure_machine(tune_job *job)
{
    co_cluster *c = &job->plan.cluster;

    c->name = "this machine";
    c->nodes = 1;
    c->cores = job->cores;
    c->speed = 1;
    c->memory = (double)machine_memory();
    CO_TRY(measure_now(job));
    CO_TRY(measure_links(job));
    CO_TRY(measure_work(job));
    return CO_OK;
}

/* ---- what the model says ---- */

bool tune_predict(co_prediction *out, const tune_job *job, const co_tune_point *point)
{
    const tune_value *layout = &job->axis[TUNE_LAYOUT].value[point->value[TUNE_LAYOUT]];
    const double batch = (double)job->axis[TUNE_BATCH].value[point->value[TUNE_BATCH]].number;
    co_choice choice = job->axis[TUNE_STRATEGY].value[point->value[TUNE_STRATEGY]].choice;
    co_cluster cluster = job->plan.cluster;

    cluster.ranks_per_node = layout->number;
    choice.bucket_mib = job->axis[TUNE_BUCKET].value[point->value[TUNE_BUCKET]].mib;
    return co_plan_predict(out, &cluster, &job->plan.work, &choice, layout->number,
                           batch / (double)layout->number);
}

double tune_readers(const tune_job *job, const co_tune_point *point)
{
    const tune_value *layout = &job->axis[TUNE_LAYOUT].value[point->value[TUNE_LAYOUT]];

    return co_tune_rate(job->search, point) / (double)layout->number * job->plan.work.read;
}

static co_tune_point measure_with(const co_tune_point *point, int axis, int value)
{
    co_tune_point other = *point;

    other.value[axis] = value;
    return other;
}

/* The default, and a few that are predicted to be fastest and not alike. */
static void shortlist_buckets(bool *take, const tune_job *job, const co_tune_point *point)
{
    const tune_axis *axis = &job->axis[TUNE_BUCKET];
    double step[CO_TUNE_MAX_VALUES] = {0}, own = 0;
    co_prediction p;
    int faster;

    for (int v = 0; v < axis->n; v++) {
        const co_tune_point other = measure_with(point, TUNE_BUCKET, v);

        step[v] = tune_predict(&p, job, &other) ? p.step : INFINITY;
    }
    own = fmin(step[axis->usual], step[point->value[TUNE_BUCKET]]);
    for (int v = 0; v < axis->n; v++) {
        faster = 0;
        for (int k = 0; k < axis->n; k++)
            faster += step[k] < step[v];
        if (v != axis->usual &&
            (faster >= MEASURE_BUCKETS || step[v] > (1 - MEASURE_BUCKET_GAP) * own))
            take[v] = false;
    }
}

/* What the present strategy computes to compress, or waits for shared weights, is not predicted. */
bool tune_strategy_pays(const tune_job *job, const co_tune_point *point, int strategy)
{
    const co_tune_point other = measure_with(point, TUNE_STRATEGY, strategy);
    const co_choice *now = &job->axis[TUNE_STRATEGY].value[point->value[TUNE_STRATEGY]].choice;
    co_prediction before, after;

    if (!now->measured || !tune_predict(&before, job, point))
        return true;
    return tune_predict(&after, job, &other) && after.step <= (1 - CO_TUNE_MARGIN) * before.step;
}

static void shortlist_strategies(bool *take, const tune_job *job, const co_tune_point *point)
{
    for (int v = 0; v < job->axis[TUNE_STRATEGY].n; v++)
        take[v] = take[v] && tune_strategy_pays(job, point, v);
}

/* Steps that would take too long to be measured are not those that need a larger batch. */
static void shortlist_batches(bool *take, const tune_job *job, const co_tune_point *point)
{
    const tune_axis *axis = &job->axis[TUNE_BATCH];
    const double rate = co_tune_rate(job->search, point);
    const double longest = MEASURE_STEP_MOST * (double)job->options->ms * 1e-3;

    for (int v = 1; v < axis->n; v++)
        if ((double)axis->value[v].number / rate > longest &&
            axis->value[v].number > axis->value[0].number)
            take[v] = false;
}

/* The default; the smallest number that keeps up, and where that is nearly busy the next one; no
   other where readers are idle most of the time. */
static void shortlist_readers(bool *take, const tune_job *job, const co_tune_point *point)
{
    const tune_axis *axis = &job->axis[TUNE_LOADER];
    const double need = tune_readers(job, point);

    for (int v = 0; v < axis->n && need > 0; v++) {
        const double n = (double)axis->value[v].number;
        double below = 0; /* the largest smaller number */

        for (int k = 0; k < axis->n; k++)
            if ((double)axis->value[k].number < n)
                below = fmax(below, (double)axis->value[k].number);
        if (need < MEASURE_LITTLE ||
            (v != axis->usual && (n < MEASURE_BUSY * need || MEASURE_BUSY * below > need)))
            take[v] = false;
    }
}

/* No threads that take turns: no other settings make them fast. */
static void shortlist_layouts(bool *take, const tune_job *job)
{
    const tune_axis *axis = &job->axis[TUNE_LAYOUT];

    for (int v = 0; v < axis->n; v++)
        if (axis->value[v].number * axis->value[v].threads > job->cores)
            take[v] = false;
}

void tune_shortlist(bool *take, void *arg, const co_tune_point *point, int axis)
{
    const tune_job *job = arg;

    if (axis == TUNE_LAYOUT)
        shortlist_layouts(take, job);
    else if (axis == TUNE_BUCKET)
        shortlist_buckets(take, job, point);
    else if (axis == TUNE_STRATEGY)
        shortlist_strategies(take, job, point);
    else if (axis == TUNE_BATCH)
        shortlist_batches(take, job, point);
    else if (axis == TUNE_LOADER)
        shortlist_readers(take, job, point);
}
