/*
 * explain.h - what a run directory says about a run: where its time went, what cost it, and what is
 * wrong with what it has learned.
 *
 * Evidence is read once (evidence.h). A detector looks at it for one cause and is a pure function
 * of it; the registry lists all of them. Nothing is measured anew, and nothing is written.
 */
#ifndef CO_EXPLAIN_EXPLAIN_H
#define CO_EXPLAIN_EXPLAIN_H

#include "explain/evidence.h"

#define CO_FINDING_TITLE    160
#define CO_FINDING_EVIDENCE 400
#define CO_FINDING_REMEDY   320

/* What a detector has found. */
typedef struct co_finding {
    const char *cause;                  /* the detector's name */
    char title[CO_FINDING_TITLE];       /* "one rank is late" */
    char evidence[CO_FINDING_EVIDENCE]; /* the figures that say so */
    char remedy[CO_FINDING_REMEDY];     /* begins with the key of the config to change */
    double gain; /* fraction of the wall time that the remedy may save; NaN: it is about learning */
} co_finding;

typedef struct co_detector {
    const char *name; /* "late-rank" */
    const char *summary;
    /* Whether the cause is there; fills in all of *out but `cause`. `earlier`: what detectors
       before this one have found, n of them. */
    bool (*find)(co_finding *out, const co_evidence *e, const co_finding *earlier, int n);
} co_detector;

#define CO_EXPLAIN_MAX 32 /* detectors */

/* What would save time in a profiled run, in a line, and how many seconds of the wall time. */
typedef struct co_saving {
    char what[200];
    double seconds;
} co_saving;

#define CO_SAVINGS_MAX 64
/* Largest first; returns their number: 0 without a profile. */
int co_explain_savings(co_saving out[CO_SAVINGS_MAX], const co_evidence *e);

/* NULL-terminated; causes before those that only follow from them. */
extern const co_detector *const co_detectors[];

/* Whether a cause is among `n` findings. */
bool co_finding_has(const co_finding *finding, int n, const char *cause);

/* Run all detectors. Findings are ordered: first those about time, largest gain first. Returns
   their number. */
int co_explain_find(co_finding out[CO_EXPLAIN_MAX], const co_evidence *e);

#endif
