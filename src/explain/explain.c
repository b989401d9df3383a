/* explain.c - runs the detectors and orders what they have found. */
#include "explain/explain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EXPLAIN_LEAST 0.1 /* seconds: what costs less in a whole run is nobody's concern */

bool co_finding_has(const co_finding *finding, int n, const char *cause)
{
    for (int i = 0; i < n; i++)
        if (strcmp(finding[i].cause, cause) == 0)
            return true;
    return false;
}

/* Those about learning come first: a fast run that learns nothing is worth nothing. Then the
   largest gain. */
static int explain_compare(const void *a, const void *b)
{
    const co_finding *x = a, *y = b;

    if (isnan(x->gain) || isnan(y->gain))
        return (int)isnan(y->gain) - (int)isnan(x->gain);
    return (x->gain < y->gain) - (x->gain > y->gain);
}

/* Leave out those about time that gain less than a fraction of it. */
static int explain_drop(co_finding *finding, int n, double least)
{
    int kept = 0;

    for (int i = 0; i < n; i++)
        if (isnan(finding[i].gain) || finding[i].gain >= least)
            finding[kept++] = finding[i];
    return kept;
}

int co_explain_find(co_finding out[CO_EXPLAIN_MAX], const co_evidence *e)
{
    int n = 0;

    for (const co_detector *const *d = co_detectors; *d && n < CO_EXPLAIN_MAX; d++) {
        out[n] = (co_finding){.cause = (*d)->name, .gain = (double)NAN};
        n += (*d)->find(&out[n], e, out, n);
    }
    /* Only now: others follow from what is left out here. */
    n = explain_drop(out, n, EXPLAIN_LEAST / fmax(e->run.wall_seconds, EXPLAIN_LEAST));
    qsort(out, (size_t)n, sizeof(*out), explain_compare);
    return n;
}
