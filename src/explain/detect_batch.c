/*
 * detect_batch.c - a batch that is too small for the machine.
 *
 * What a step takes beyond the forward and backward passes of its samples in a large batch does not
 * depend on the batch: calls of kernels, the exchange of gradients, the update.
 */
#include <math.h>
#include <stdio.h>

#include "explain/detectors.h"

#define BATCH_SAMPLES 16  /* of a rank in a step; with more it is not the batch */
#define BATCH_RATIO   2.0 /* times the time of a sample in a large batch */

static bool detect_batch(co_finding *out, const co_evidence *e, const co_finding *earlier, int n)
{
    const co_evidence_run *run = &e->run;
    const co_rank_times mean = co_evidence_mean(run);
    const co_evidence_weights *w = &e->weights;
    const double here = (double)run->batch / (run->ranks ? run->ranks : 1);
    const double sample =
        mean.samples > 0 ? (mean.compute + mean.exchange) / mean.samples : (double)NAN;

    (void)earlier;
    (void)n;
    if (!run->has_times || !w->known || here > BATCH_SAMPLES ||
        (double)w->sample_batch < 2 * here || !(sample > BATCH_RATIO * w->sample_seconds))
        return false;
    out->gain = (mean.compute + mean.exchange) * (1 - w->sample_seconds / sample) /
                fmax(run->wall_seconds, 1e-9);
    DETECT_TITLE(out, "the batch is too small for the machine");
    DETECT_EVIDENCE(
        out,
        "with %.3g samples of a rank in a step each took %.3g us, of which forward and "
        "backward take %.3g in a batch of %llu here; update and exchange took %.0f%% of "
        "the steps",
        here, 1e6 * sample, 1e6 * w->sample_seconds, (unsigned long long)w->sample_batch,
        100 * (mean.update + mean.exchange) / fmax(co_evidence_steps(&mean), 1e-9));
    DETECT_REMEDY(out, "batch: %llu or more, with optimizer.lr raised by the same factor",
                  (unsigned long long)(32 * (uint64_t)run->ranks));
    return true;
}

const co_detector co_detect_batch = {
    .name = "small-batch",
    .summary = "steps so small that their fixed costs prevail",
    .find = detect_batch,
};
