/* detect_input.c - causes in reading and writing: a disk that is slow, a reader that computes. */
#include <math.h>
#include <stdio.h>

#include "explain/detectors.h"

#define INPUT_WAIT      0.25 /* of the time of steps, waiting for samples */
#define INPUT_CORE      0.35 /* of the time on cores, in readers */
#define INPUT_BLOCKED   0.5  /* of readers' time neither on a core nor ready for one */
#define DISK_CHECKPOINT 0.2  /* of the wall time, */
#define DISK_SECONDS    0.5 /* and more than one write at the end takes on a disk that others use */

/* Seconds in which readers waited for the disk, or whatever it is that is no core. */
static double input_blocked(const co_rank_times *t)
{
    return fmax(t->read - t->read_core - t->read_delayed, 0);
}

/* The part of steps in which ranks waited for samples: of the rank that waited longest, for which
   others wait in turn. */
static double input_wait(const co_evidence_run *run)
{
    double most = 0;

    for (int r = 0; run->has_times && r < run->ranks; r++)
        most = fmax(most, run->times[r].data / fmax(co_evidence_steps(&run->times[r]), 1e-9));
    return most;
}

/* The part of the time on cores that readers took, from the network where they share its cores. */
static double input_core(const co_evidence_run *run)
{
    const co_rank_times mean = co_evidence_mean(run);

    return mean.read_core / fmax(mean.core, 1e-9);
}

static double input_gain(const co_evidence_run *run)
{
    const co_rank_times mean = co_evidence_mean(run);

    return input_wait(run) * co_evidence_steps(&mean) / fmax(run->wall_seconds, 1e-9);
}

static bool input_is_disk(const co_evidence_run *run)
{
    const co_rank_times mean = co_evidence_mean(run);

    return input_blocked(&mean) >= INPUT_BLOCKED * mean.read;
}

static bool disk_reads(co_finding *out, const co_evidence_run *run)
{
    const co_rank_times mean = co_evidence_mean(run);

    if (input_wait(run) < INPUT_WAIT || !input_is_disk(run))
        return false;
    out->gain = input_gain(run);
    DETECT_TITLE(out, "training waits for a slow disk");
    DETECT_EVIDENCE(out,
                    "%.0f%% of the time of steps was spent waiting for samples, and readers were "
                    "blocked for %.0f%% of theirs, computing for %.0f%%",
                    100 * input_wait(run), 100 * input_blocked(&mean) / mean.read,
                    100 * mean.read_core / mean.read);
    DETECT_REMEDY(out, "data.path: on a faster disk, or one file of all samples by `cohort data "
                       "pack`; loader.threads: more reads at once");
    return true;
}

static bool disk_writes(co_finding *out, const co_evidence_run *run)
{
    const co_rank_times *root = &run->times[0];

    if (root->checkpoint < DISK_CHECKPOINT * root->wall || root->checkpoint < DISK_SECONDS)
        return false;
    out->gain = root->checkpoint / fmax(run->wall_seconds, 1e-9);
    DETECT_TITLE(out, "training waits for checkpoints on a slow disk");
    DETECT_EVIDENCE(out, "%.1f s of %.1f s were spent waiting for checkpoints to be written",
                    root->checkpoint, root->wall);
    DETECT_REMEDY(out, "checkpoint.every: less often; or --run-dir on a faster disk");
    return true;
}

static bool detect_disk(co_finding *out, const co_evidence *e, const co_finding *earlier, int n)
{
    (void)earlier;
    (void)n;
    return e->run.has_times && (disk_reads(out, &e->run) || disk_writes(out, &e->run));
}

const co_detector co_detect_disk = {
    .name = "slow-disk",
    .summary = "waiting for reads of samples, or for checkpoints",
    .find = detect_disk,
};

static bool detect_reader(co_finding *out, const co_evidence *e, const co_finding *earlier, int n)
{
    const co_evidence_run *run = &e->run;
    const co_rank_times mean = co_evidence_mean(run);
    const double wait = input_wait(run), core = input_core(run);

    (void)earlier;
    (void)n;
    if (!run->has_times || (wait < INPUT_WAIT && core < INPUT_CORE) || input_is_disk(run))
        return false;
    out->gain =
        fmax(input_gain(run), core * co_evidence_steps(&mean) / fmax(run->wall_seconds, 1e-9));
    DETECT_TITLE(out, "reading samples is slower than training on them");
    DETECT_EVIDENCE(out,
                    "%.0f%% of the time of steps was spent waiting for samples, and %.0f%% of that "
                    "on cores in readers, who decode, resize and augment",
                    100 * wait, 100 * core);
    DETECT_REMEDY(out, "loader.threads: more, where cores are free; else images decoded once by "
                       "`cohort data pack --decode SIDE`, or fewer of data.augment");
    return true;
}

const co_detector co_detect_reader = {
    .name = "slow-reader",
    .summary = "waiting for samples to be decoded and augmented",
    .find = detect_reader,
};
