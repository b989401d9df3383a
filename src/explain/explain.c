/* explain.c - runs the detectors and orders what they have found. */
#include "explain/explain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

int co_explain_find(co_finding out[CO_EXPLAIN_MAX], const co_evidence *e)
{
    int n = 0;

    for (const co_detector *const *d = co_detectors; *d && n < CO_EXPLAIN_MAX; d++) {
        out[n] = (co_finding){.cause = (*d)->name, .gain = (double)NAN};
        n += (*d)->find(&out[n], e, out, n);
    }
    qsort(out, (size_t)n, sizeof(*out), explain_compare);
    return n;
}
