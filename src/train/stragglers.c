/*
 * stragglers.c - finds ranks that are late in most steps.
 *
 * All ranks synchronize in each step, so a step lasts as long as the slowest rank computes (all
 * time but waiting for others). A rank is late if it computes for a fifth longer than the median of
 * the others. Its cost is the time that all others wait for it alone, which is up to the next
 * slowest. If ranks synchronize only at the end, the run lasts as long as the slowest rank's steps.
 */
#include "train/stragglers.h"

#include <stdio.h>

#include "core/mem.h"
#include "core/sort.h"

#define STRAGGLERS_LIMIT     1.2
#define STRAGGLERS_MIN_STEPS 10

/* Median of all entries of `sorted` but `out`, which is one of them (n >= 2). */
static double stragglers_median_without(const double *sorted, int n, double out)
{
    int without = 0, at = (n - 1) / 2;

    while (sorted[without] != out)
        without++;
    return sorted[at < without ? at : at + 1];
}

static void stragglers_list(co_stragglers *out, const double *busy, const double *sorted, int n,
                            double all)
{
    for (int r = 0; r < n && out->n < CO_MAX_STRAGGLERS; r++) {
        const double median = stragglers_median_without(sorted, n, busy[r]);
        const double next = busy[r] == sorted[n - 1] ? sorted[n - 2] : busy[r];

        if (median <= 0 || busy[r] < STRAGGLERS_LIMIT * median)
            continue;
        out->rank[out->n++] = (co_straggler){r, busy[r] / median - 1, (busy[r] - next) / all};
    }
}

const char *co_straggler_message(char *out, size_t size, const co_straggler *straggler)
{
    snprintf(out, size, "rank %d is late by %.0f%%: the others wait for it %.0f%% of the time",
             straggler->rank, 100 * straggler->late, 100 * straggler->cost);
    return out;
}

co_status co_stragglers_find(co_stragglers *out, co_comm *comm, const co_rank_work *work)
{
    const int n = co_comm_size(comm);
    const bool root = co_comm_rank(comm) == 0;
    const double own = work->seconds - work->waited_seconds;
    double longest, *busy = root ? co_calloc(2 * (size_t)n, sizeof(*busy)) : NULL;
    co_status st;

    out->n = 0;
    if (root && !busy)
        return CO_E_NOMEM;
    st = co_comm_gather(comm, busy, &own, 1, CO_F64, 0);
    if (st == CO_OK)
        st = co_comm_allreduce(comm, &longest, &work->seconds, 1, CO_F64, CO_MAX);
    if (st == CO_OK && root && n > 1 && work->steps >= STRAGGLERS_MIN_STEPS && longest > 0) {
        for (int r = 0; r < n; r++)
            busy[n + r] = busy[r];
        co_sort_doubles(busy + n, (size_t)n);
        stragglers_list(out, busy, busy + n, n, longest);
    }
    co_free(busy);
    return st;
}
