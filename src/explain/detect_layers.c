/* detect_layers.c - causes in the network: layers that are not trained, units that are dead. */
#include <inttypes.h>
#include <stdio.h>

#include "core/text.h"
#include "explain/detectors.h"

/* Frozen weights from a file are meant to be; drawn ones are noise. */
static bool detect_frozen(co_finding *out, const co_evidence *e, const co_finding *earlier, int n)
{
    const co_evidence_weights *w = &e->weights;
    const co_evidence_weight *first = NULL;
    int many = 0;

    (void)earlier;
    (void)n;
    if (!w->known || !w->drawn || e->run.steps == 0 || !(w->change > 0))
        return false;
    for (size_t i = 0; i < w->n; i++)
        if (w->at[i].same && w->at[i].frozen) {
            first = first ? first : &w->at[i];
            many++;
        }
    if (!first)
        return false;
    DETECT_TITLE(out, "%d weight%s of drawn values %s never trained", many, many == 1 ? "" : "s",
                 many == 1 ? "was" : "were");
    DETECT_EVIDENCE(out,
                    "%.100s is to the bit as it was drawn after %" PRIu64
                    " steps, in which all weights together moved by %.2g of their length",
                    CO_SHOW(first->name), e->run.steps, w->change);
    DETECT_REMEDY(out, "freeze: leave it out, or name by `init` the trained weights that it is to "
                       "keep");
    return true;
}

const co_detector co_detect_frozen = {
    .name = "frozen-layer",
    .summary = "a layer that `freeze` keeps as it was drawn",
    .find = detect_frozen,
};

#define DEAD_SHARE   0.5 /* of the units before a ReLU */
#define DEAD_SAMPLES 8   /* of fewer any unit may miss all */

static bool detect_dead(co_finding *out, const co_evidence *e, const co_finding *earlier, int n)
{
    const co_evidence_weights *w = &e->weights;

    if (co_finding_has(earlier, n, "high-rate") || !w->known || w->units == 0 ||
        w->sample_batch < DEAD_SAMPLES || (double)w->dead < DEAD_SHARE * (double)w->units)
        return false;
    DETECT_TITLE(out, "units before a ReLU are dead");
    DETECT_EVIDENCE(out,
                    "%" PRIu64 " of %" PRIu64 " get no gradient from any of %" PRIu64
                    " training samples, most of them in %.60s",
                    w->dead, w->units, w->sample_batch, CO_SHOW(w->most_dead));
    DETECT_REMEDY(out, "optimizer.lr: a lower one, or a `schedule` with warmup, keeps them alive");
    return true;
}

const co_detector co_detect_dead = {
    .name = "dead-units",
    .summary = "units that no sample activates",
    .find = detect_dead,
};
