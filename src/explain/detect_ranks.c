/* detect_ranks.c - causes in ranks: one that others wait for, and more of them than cores. */
#include <math.h>
#include <stdio.h>

#include "core/mem.h"
#include "core/sort.h"
#include "explain/detectors.h"

#define LATE_STEPS   20
#define LATE_RATIO   1.4  /* times the median of the others */
#define LATE_COST    0.15 /* of the time of steps */
#define LATE_DELAYED 3.0  /* times the mean of the others: ready without a core */

/* Working, not waiting for other ranks. */
static double ranks_busy(const co_rank_times *t)
{
    return t->data + t->compute + t->exchange;
}

/* The rank with most work, the next to it, and the median of all but the first. */
static int late_find(double *most, double *next, double *median, const co_evidence_run *run)
{
    double *busy = co_calloc((size_t)run->ranks, sizeof(*busy));
    int late = 0;

    if (!busy)
        return -1;
    for (int r = 0; r < run->ranks; r++) {
        busy[r] = ranks_busy(&run->times[r]);
        if (busy[r] > ranks_busy(&run->times[late]))
            late = r;
    }
    co_sort_doubles(busy, (size_t)run->ranks);
    *most = busy[run->ranks - 1];
    *next = busy[run->ranks - 2];
    *median = busy[(run->ranks - 2) / 2];
    co_free(busy);
    return late;
}

/* Whether a rank did more, and was not only kept from its core: where other programs have all
   cores, which rank they hold up is chance. */
static bool late_is_its_own(const co_evidence_run *run, int late)
{
    const double own = fmax(ranks_busy(&run->times[late]) - run->times[late].delayed, 0);
    double others = 0;

    for (int r = 0; r < run->ranks; r++)
        others += r == late ? 0 : fmax(ranks_busy(&run->times[r]) - run->times[r].delayed, 0);
    return own > LATE_RATIO * others / (run->ranks - 1);
}

/* Why it may be late: its samples, or its cores. */
static void late_say(co_finding *out, const co_evidence_run *run, int late, double most,
                     double median)
{
    const co_rank_times *t = &run->times[late];
    const co_rank_times mean = co_evidence_mean(run);
    const double others = (mean.samples * run->ranks - t->samples) / (run->ranks - 1);
    const double delayed = t->delayed / fmax(t->core + t->delayed, 1e-9);

    DETECT_TITLE(out, "rank %d is late", late);
    if (others > 0 && t->samples > 1.2 * others) {
        DETECT_EVIDENCE(out,
                        "it worked for %.1f s, the others for %.1f s, on %.2g times as many "
                        "samples; they waited for it",
                        most, median, t->samples / others);
        DETECT_REMEDY(out, "partition: give each rank as much as it is fast (ratios), or leave it "
                           "out for equal parts");
        return;
    }
    DETECT_EVIDENCE(out,
                    "it worked for %.1f s, the others for %.1f s, on as many samples; %.0f%% of "
                    "that it was ready without a core; they waited for it",
                    most, median, 100 * delayed);
    DETECT_REMEDY(out, "partition: ratios give it fewer samples; or free its cores, or leave it "
                       "out with fewer ranks (-n)");
}

/* The rank that was ready without a core for longest, where the others were not, and waited for it
   about as long: a program on its core holds it up also when the others' news should wake it, which
   counts as its own waiting. -1: none. */
static int late_find_delayed(double *most, double *others, const co_evidence_run *run)
{
    double sum = 0, wait = INFINITY;
    int late = 0;

    for (int r = 0; r < run->ranks; r++) {
        sum += run->times[r].delayed;
        if (run->times[r].delayed > run->times[late].delayed)
            late = r;
    }
    for (int r = 0; r < run->ranks; r++)
        wait = r == late ? wait : fmin(wait, run->times[r].wait);
    *most = run->times[late].delayed;
    *others = (sum - *most) / (run->ranks - 1);
    return *most > LATE_DELAYED * *others &&
                   fmin(*most - *others, wait) > LATE_COST * co_evidence_steps(&run->times[late])
               ? late
               : -1;
}

static bool late_by_its_core(co_finding *out, const co_evidence_run *run, const co_finding *earlier,
                             int n)
{
    double most, others;
    int late;

    if (co_finding_has(earlier, n, "busy-machine") ||
        co_finding_has(earlier, n, "oversubscribed-cores"))
        return false;
    late = late_find_delayed(&most, &others, run);
    if (late < 0)
        return false;
    DETECT_TITLE(out, "rank %d is late", late);
    DETECT_EVIDENCE(
        out,
        "for %.1f s it was ready without a core, the others for %.1f s, and they waited "
        "for it",
        most, others);
    DETECT_REMEDY(out, "ranks: one fewer, or free its core: another program uses it");
    out->gain = (most - others) * (run->ranks - 1) / run->ranks / fmax(run->wall_seconds, 1e-9);
    return true;
}

static bool detect_late(co_finding *out, const co_evidence *e, const co_finding *earlier, int n)
{
    const co_evidence_run *run = &e->run;
    double most, next, median, cost;
    int late;

    if (!run->has_times || run->ranks < 2 || run->steps < LATE_STEPS)
        return false;
    late = late_find(&most, &next, &median, run);
    if (late < 0 || most < LATE_RATIO * median ||
        ((co_finding_has(earlier, n, "busy-machine") ||
          co_finding_has(earlier, n, "oversubscribed-cores")) &&
         !late_is_its_own(run, late)))
        return late >= 0 && late_by_its_core(out, run, earlier, n);
    cost = (most - next) / fmax(co_evidence_steps(&run->times[late]), 1e-9);
    if (cost < LATE_COST)
        return late_by_its_core(out, run, earlier, n);
    late_say(out, run, late, most, median);
    out->gain = (most - next) * (run->ranks - 1) / run->ranks / fmax(run->wall_seconds, 1e-9);
    return true;
}

const co_detector co_detect_late = {
    .name = "late-rank",
    .summary = "a rank that all others wait for",
    .find = detect_late,
};

#define CORES_DELAYED 0.1  /* of the time in which threads wanted to run */
#define CORES_TAKEN   0.35 /* the same, of every rank: other programs have its cores */
#define CORES_READERS 1.5  /* readers of training samples, with those of evaluations */

static double cores_delayed(const co_rank_times *t)
{
    return t->delayed / fmax(t->core + t->delayed, 1e-9);
}

/* The part of the time in which a rank's threads wanted to run that others than its readers took.
 */
static double cores_taken(const co_rank_times *t)
{
    const double taken = fmax(t->delayed - CORES_READERS * (t->read_core + t->read_delayed), 0);

    return taken / fmax(t->core + taken, 1e-9);
}

static void cores_say(co_finding *out, const co_evidence_run *run)
{
    const co_rank_times mean = co_evidence_mean(run);

    out->gain = cores_delayed(&mean) * co_evidence_steps(&mean) / fmax(run->wall_seconds, 1e-9);
    DETECT_EVIDENCE(out,
                    "%d rank%s of %d thread%s on %d core%s: for %.0f%% of the time in which "
                    "threads could run they had no core",
                    run->ranks, run->ranks == 1 ? "" : "s", run->threads,
                    run->threads == 1 ? "" : "s", run->cores, run->cores == 1 ? "" : "s",
                    100 * cores_delayed(&mean));
}

static bool detect_cores(co_finding *out, const co_evidence *e, const co_finding *earlier, int n)
{
    const co_evidence_run *run = &e->run;
    const co_rank_times mean = co_evidence_mean(run);

    (void)earlier;
    (void)n;
    if (!run->has_times || run->cores == 0 || run->ranks * run->threads <= run->cores ||
        cores_delayed(&mean) < CORES_DELAYED)
        return false;
    DETECT_TITLE(out, "more threads compute than there are cores");
    cores_say(out, run);
    DETECT_REMEDY(out, "ranks, threads: together as many as cores: -n %d with threads: 1",
                  run->cores);
    return true;
}

const co_detector co_detect_cores = {
    .name = "oversubscribed-cores",
    .summary = "more threads than cores",
    .find = detect_cores,
};

static bool detect_busy(co_finding *out, const co_evidence *e, const co_finding *earlier, int n)
{
    const co_evidence_run *run = &e->run;

    (void)earlier;
    (void)n;
    if (!run->has_times || run->cores == 0 || run->ranks * run->threads > run->cores)
        return false;
    for (int r = 0; r < run->ranks; r++)
        if (cores_taken(&run->times[r]) < CORES_TAKEN)
            return false;
    DETECT_TITLE(out, "other programs take the cores");
    cores_say(out, run);
    DETECT_REMEDY(out, "ranks: as many as there are free cores; or end what else runs there");
    return true;
}

const co_detector co_detect_busy = {
    .name = "busy-machine",
    .summary = "cores that other programs use",
    .find = detect_busy,
};
