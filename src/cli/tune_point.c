/*
 * tune_point.c - points of `cohort tune`'s search: which are the same, and as assignments of keys.
 *
 * Does not know where values come from (tune_axes.c).
 */
#include <inttypes.h>

#include "cli/tune.h"

/* With one rank all strategies that do not compress are plain training. With one rank, or a
   strategy without buckets, their size does not matter. */
static void point_normalize(co_tune_point *point, void *arg)
{
    const tune_job *job = arg;
    const tune_axis *axis = job->axis;
    const tune_value *strategy = &axis[TUNE_STRATEGY].value[point->value[TUNE_STRATEGY]];
    const co_choice *own = &axis[TUNE_STRATEGY].value[0].choice;
    const bool alone = axis[TUNE_LAYOUT].value[point->value[TUNE_LAYOUT]].number == 1;

    if (alone || !strategy->buckets)
        point->value[TUNE_BUCKET] = axis[TUNE_BUCKET].usual;
    if (alone && strategy->choice.compress == CO_CHOICE_WHOLE && own->kind == CO_CHOICE_SYNC &&
        own->compress == CO_CHOICE_WHOLE)
        point->value[TUNE_STRATEGY] = 0;
}

void tune_point_problem(co_tune_problem *out, const tune_job *job)
{
    *out = (co_tune_problem){.n_axis = TUNE_AXES,
                             .measure = tune_measure_point,
                             .shortlist = tune_shortlist,
                             .normalize = point_normalize,
                             .arg = (void *)job};
    for (int a = 0; a < TUNE_AXES; a++) {
        out->axis[a].n = job->axis[a].n;
        out->axis[a].usual = job->axis[a].usual;
        for (int v = 0; v < job->axis[a].n; v++)
            out->axis[a].open[v] = job->axis[a].value[v].effect < TUNE_CHANGES;
    }
    out->axis[TUNE_BATCH].ordered = true;
    for (int v = 0; v < job->axis[TUNE_BATCH].n; v++)
        out->axis[TUNE_BATCH].size[v] = (double)job->axis[TUNE_BATCH].value[v].number;
}

/* ---- as assignments ---- */

bool tune_point_set(const char **out, const tune_job *job, const co_tune_point *point)
{
    const co_spec *spec = &job->plan.net.spec;
    const tune_value *value[TUNE_AXES], *now[TUNE_AXES];
    co_arena *arena = tune_arena(job);
    int64_t each = spec->batch_per_rank;
    int n = 0;

    for (int a = 0; a < TUNE_AXES; a++) {
        value[a] = &job->axis[a].value[point->value[a]];
        now[a] = &job->axis[a].value[0];
    }
    if (spec->batch_per_rank) {
        each = value[TUNE_BATCH]->number / value[TUNE_LAYOUT]->number;
        if (each < 1 || each * value[TUNE_LAYOUT]->number != value[TUNE_BATCH]->number)
            return false;
    }
    if (value[TUNE_LAYOUT]->number != now[TUNE_LAYOUT]->number)
        out[n++] = co_arena_printf(arena, "ranks=%" PRId64, value[TUNE_LAYOUT]->number);
    if (value[TUNE_LAYOUT]->threads != now[TUNE_LAYOUT]->threads)
        out[n++] = co_arena_printf(arena, "threads=%" PRId64, value[TUNE_LAYOUT]->threads);
    if (each != spec->batch_per_rank)
        out[n++] = co_arena_printf(arena, "batch_per_rank=%" PRId64, each);
    else if (!spec->batch_per_rank && value[TUNE_BATCH] != now[TUNE_BATCH])
        out[n++] = co_arena_printf(arena, "batch=%" PRId64, value[TUNE_BATCH]->number);
    if (value[TUNE_STRATEGY] != now[TUNE_STRATEGY])
        out[n++] = co_arena_printf(arena, "strategy=%s", value[TUNE_STRATEGY]->value);
    if (value[TUNE_BUCKET] != now[TUNE_BUCKET] && value[TUNE_STRATEGY]->buckets &&
        !(value[TUNE_STRATEGY] != now[TUNE_STRATEGY] && value[TUNE_BUCKET]->mib == 0))
        out[n++] = value[TUNE_STRATEGY] != now[TUNE_STRATEGY] ||
                           (spec->strategy && spec->strategy->kind != CO_VALUE_NULL)
                       ? co_arena_printf(arena, "strategy.bucket_mib=%s", value[TUNE_BUCKET]->value)
                       : co_arena_printf(arena, "strategy={name: sync, bucket_mib: %s}",
                                         value[TUNE_BUCKET]->value);
    if (value[TUNE_LOADER] != now[TUNE_LOADER])
        out[n++] = co_arena_printf(arena, "loader.threads=%s", value[TUNE_LOADER]->value);
    out[n] = NULL;
    return true;
}
