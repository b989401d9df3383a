/*
 * stragglers.c - stragglers: ranks that arrive last, step after step.
 *
 * In a step all ranks meet, so it lasts as long as the slowest rank works: reading, computing,
 * whatever is not waiting for others. A rank that works for longer than the median of the
 * others by a fifth is late, and what it costs is the time that all others spend waiting for it and
 * for no one else: up to the next slowest. Where ranks meet at the end alone, the run lasts as long
 * as the slowest one's steps.
 */
#include "train/stragglers.h"

#include <stdio.h>

#include "core/mem.h"
#include "core/sort.h"
#include "train/trainer_internal.h"

#define LATENESS_LIMIT     1.2
#define LATENESS_MIN_STEPS 10

/* The median of all entries but one, where `sorted` holds all (n >= 2). */
static double lateness_median_without(const double *sorted, int n, double out)
{
    int without = 0, at = (n - 1) / 2;

    while (sorted[without] != out)
        without++;
    return sorted[at < without ? at : at + 1];
}

static void lateness_list(trainer *t, const double *busy, const double *sorted, int n, double all)
{
    for (int r = 0; r < n && t->n_straggler < TRAINER_MAX_STRAGGLERS; r++) {
        const double median = lateness_median_without(sorted, n, busy[r]);
        const double next = busy[r] == sorted[n - 1] ? sorted[n - 2] : busy[r];

        if (median <= 0 || busy[r] < LATENESS_LIMIT * median)
            continue;
        t->straggler[t->n_straggler++] =
            (co_straggler){r, busy[r] / median - 1, (busy[r] - next) / all};
    }
}

static void lateness_tell(trainer *t)
{
    for (int i = 0; i < t->n_straggler; i++) {
        const co_straggler *late = &t->straggler[i];
        char line[128];

        snprintf(line, sizeof(line),
                 "rank %d is late by %.0f%%: the others wait for it %.0f%% of "
                 "the time",
                 late->rank, 100 * late->late, 100 * late->cost);
        for (int s = 0; s < t->n_sink; s++)
            if (t->sink[s]->ops->text)
                t->sink[s]->ops->text(t->sink[s], line);
    }
}

co_status co_lateness_find(trainer *t)
{
    const int n = co_comm_size(t->comm);
    const bool root = co_comm_rank(t->comm) == 0;
    const double data = co_loader_wait_seconds(t->train.loader);
    const double all = (double)t->step_ns * 1e-9 + data;
    const double own = all - (double)t->waited_ns * 1e-9;
    double longest, *busy = root ? co_calloc(2 * (size_t)n, sizeof(*busy)) : NULL;
    co_status st;

    if (root && !busy)
        return CO_E_NOMEM;
    st = co_comm_gather(t->comm, busy, &own, 1, CO_F64, 0);
    if (st == CO_OK)
        st = co_comm_allreduce(t->comm, &longest, &all, 1, CO_F64, CO_MAX);
    if (st == CO_OK && root && n > 1 && t->step - t->first_step >= LATENESS_MIN_STEPS &&
        longest > 0) {
        for (int r = 0; r < n; r++)
            busy[n + r] = busy[r];
        co_sort_doubles(busy + n, (size_t)n);
        lateness_list(t, busy, busy + n, n, longest);
        lateness_tell(t);
    }
    co_free(busy);
    return st;
}
