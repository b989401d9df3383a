/*
 * retention.c - chooses which checkpoints to keep, and resolves names such as "best".
 *
 * Nothing about this is stored: the latest and the best are found from the folders each time, so no
 * crash can leave a wrong record.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/fs.h"
#include "core/mem.h"
#include "state/checkpoint.h"

typedef struct retention_entry {
    uint64_t step;
    bool good;               /* its manifest is readable */
    const co_metric *metric; /* metric of `value`; NULL: not evaluated */
    double value;
} retention_entry;

static co_status retention_look(retention_entry **out, size_t *n, const char *dir)
{
    uint64_t *steps = NULL;

    CO_TRY(co_checkpoint_list(&steps, n, dir));
    *out = co_calloc(*n, sizeof(**out));
    if (!*out) {
        co_free(steps);
        return CO_E_NOMEM;
    }
    for (size_t i = 0; i < *n; i++) {
        char folder[CO_CHECKPOINT_MAX_PATH];
        co_manifest manifest = {.best_value = (double)NAN};

        (*out)[i].step = steps[i];
        if (co_checkpoint_path(folder, dir, steps[i]) == CO_OK)
            (*out)[i].good = co_manifest_read(&manifest, folder, &co_checkpoint_layout) == CO_OK;
        if ((*out)[i].good && !isnan(manifest.best_value)) {
            (*out)[i].metric =
                manifest.best_by[0] ? co_metric_find(manifest.best_by) : &co_metric_accuracy;
            (*out)[i].value = manifest.best_value;
        }
        co_manifest_free(&manifest);
    }
    co_free(steps);
    return CO_OK;
}

/* The best by the metric of the latest evaluated checkpoint. Entries are newest first, so of equals
   the last one, the earliest, wins. SIZE_MAX: none was evaluated. */
static size_t retention_best(const retention_entry *entry, size_t n)
{
    size_t best = SIZE_MAX;

    for (size_t i = 0; i < n; i++)
        if (entry[i].metric &&
            (best == SIZE_MAX ||
             (entry[i].metric == entry[best].metric &&
              !co_metric_better(entry[i].metric, entry[best].value, entry[i].value))))
            best = i;
    return best;
}

co_status co_checkpoint_prune(const char *dir, uint64_t keep, bool best)
{
    retention_entry *entry = NULL;
    uint64_t kept = 0;
    co_status st = CO_OK;
    size_t n = 0, spared;

    CO_TRY(retention_look(&entry, &n, dir));
    spared = best ? retention_best(entry, n) : SIZE_MAX;
    for (size_t i = 0; i < n && st == CO_OK; i++) {
        /* Damaged ones do not count towards `keep`, and are removed once there are enough valid
           ones. */
        if (kept >= keep && i != spared)
            st = co_checkpoint_remove(dir, entry[i].step);
        kept += entry[i].good;
    }
    co_free(entry);
    return st;
}

/* There is none: which one is. */
static co_status retention_missing(const retention_entry *entry, size_t n, const char *dir,
                                   const char *which)
{
    const char *why = strcmp(which, "best") == 0 ? ": none was made after an evaluation" : "";

    for (size_t i = 0; i < n; i++)
        if (entry[i].good)
            return co_fail(CO_E_DATA, "%s: has no checkpoint '%s'%s; the latest is of step %llu",
                           dir, which, why, (unsigned long long)entry[i].step);
    return co_fail(CO_E_DATA, "%s: has no checkpoint '%s'", dir, which);
}

static co_status retention_choose(uint64_t *step, const retention_entry *entry, size_t n,
                                  const char *dir, const char *which)
{
    const bool latest = strcmp(which, "latest") == 0, best = strcmp(which, "best") == 0;
    const bool number = which[0] && strspn(which, "0123456789") == strlen(which);
    size_t at = best ? retention_best(entry, n) : SIZE_MAX;

    if (!latest && !best && !number)
        return co_fail(CO_E_USAGE, "%s: has no checkpoint '%s'; say latest, best, or a step", dir,
                       which);
    for (size_t i = 0; i < n && at == SIZE_MAX && !best; i++)
        if (entry[i].good && (latest || entry[i].step == strtoull(which, NULL, 10)))
            at = i;
    if (at == SIZE_MAX)
        return retention_missing(entry, n, dir, which);
    *step = entry[at].step;
    return CO_OK;
}

co_status co_checkpoint_find(char out[CO_CHECKPOINT_MAX_PATH], const char *run_dir,
                             const char *which)
{
    char dir[CO_CHECKPOINT_MAX_PATH];
    retention_entry *entry = NULL;
    uint64_t step = 0;
    size_t n = 0;
    co_status st;

    CO_TRY(co_fs_join(dir, sizeof(dir), run_dir, "checkpoints"));
    CO_TRY(retention_look(&entry, &n, dir));
    st = retention_choose(&step, entry, n, dir, which);
    co_free(entry);
    return st == CO_OK ? co_checkpoint_path(out, dir, step) : st;
}

co_status co_checkpoint_weights(char out[CO_CHECKPOINT_MAX_PATH], const char *folder)
{
    co_manifest manifest;
    const char *name;
    co_status st;

    CO_TRY(co_manifest_read(&manifest, folder, &co_checkpoint_layout));
    name = co_manifest_has_file(&manifest, CO_CHECKPOINT_EMA) ? CO_CHECKPOINT_EMA
                                                              : CO_CHECKPOINT_WEIGHTS;
    st = co_manifest_check_file(&manifest, folder, name);
    co_manifest_free(&manifest);
    return st == CO_OK ? co_fs_join(out, CO_CHECKPOINT_MAX_PATH, folder, name) : st;
}
