/* evidence_profile.c - evidence from profile.json: what a step's computing consists of. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "core/fs.h"
#include "core/mem.h"
#include "core/open.h"
#include "explain/evidence.h"
#include "plan/stragglers.h"
#include "plan/work.h"

#define PROFILE_MAX_PATH 4096
#define PROFILE_MAX_FILE ((size_t)256 << 20)

static double profile_number(const json_t *object, const char *key)
{
    const double value = json_number_value(json_object_get(object, key));

    return isfinite(value) && value > 0 ? value : 0;
}

static const char *profile_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

/* Rows of the profiler that the times of a rank have elsewhere, or nowhere. */
static bool profile_is_elsewhere(const char *name)
{
    static const char *const other[] = {"wait for data", "post gradients", "wait for ranks",
                                        "checkpoint",    "supervision",    "log",
                                        "compile a plan"};

    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
        if (strcmp(name, other[i]) == 0)
            return true;
    return false;
}

/* Kernels of a layer, forward and backward, add up. */
static void profile_add(co_evidence_profile *out, const json_t *row)
{
    const char *name = profile_text(row, "name"), *op = profile_text(row, "op");
    const double seconds = profile_number(row, "time_us") * 1e-6;
    co_evidence_layer *layer = out->at;

    if (!*op && profile_is_elsewhere(name))
        return;
    while (layer < out->at + out->n &&
           (strcmp(layer->name, name) != 0 || strcmp(layer->op, op) != 0))
        layer++;
    if (layer == out->at + out->n) {
        out->n++;
        snprintf(layer->name, sizeof(layer->name), "%s", name);
        snprintf(layer->op, sizeof(layer->op), "%s", op);
    }
    layer->seconds += seconds;
    layer->limit += seconds * profile_number(row, "roof_share");
    out->step += seconds;
}

static int profile_compare(const void *a, const void *b)
{
    const co_evidence_layer *x = a, *y = b;

    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

/* Of a run that ended before a step was to be watched it has no rows. */
static co_status profile_take(co_evidence_profile *out, const json_t *root)
{
    const json_t *rank = json_array_get(json_object_get(root, "per_rank"), 0);
    const json_t *rows = json_object_get(rank, "rows");
    const size_t n = json_array_size(rows);

    out->at = co_calloc(n + 1, sizeof(*out->at));
    if (!out->at)
        return CO_E_NOMEM;
    for (size_t i = 0; i < n; i++)
        profile_add(out, json_array_get(rows, i));
    out->steps = (uint64_t)profile_number(rank, "steps");
    qsort(out->at, out->n, sizeof(*out->at), profile_compare);
    return CO_OK;
}

/* By `cohort plan`'s model of ranks that wait for the slowest: the part of a step's computing that
   this costs, each step, and when they wait for each other in every 16th alone. */
static co_status profile_stragglers(co_evidence_profile *out, const char *run_dir, int ranks)
{
    co_plan_work work = {.n = 1};
    co_status st = co_work_read(&work, run_dir, &(co_work_names){.n = 0});

    if (st == CO_OK && work.n_draw) {
        const co_stragglers draws = {.count = work.n_draw, .draw = work.draw};

        out->late = co_stragglers_factor(&draws, ranks, 1) - 1;
        out->late_local = co_stragglers_factor(&draws, ranks, CO_EVIDENCE_PERIOD) - 1;
    }
    co_work_fini(&work);
    return st;
}

co_status co_evidence_read_profile(co_evidence_profile *out, const char *run_dir, int ranks)
{
    static const co_open_rule rule = {.status = CO_E_DATA, .own = true, .max = PROFILE_MAX_FILE};
    char path[PROFILE_MAX_PATH];
    uint8_t *text = NULL;
    json_t *root;
    size_t size;
    co_status st;

    out->late = out->late_local = (double)NAN;
    snprintf(path, sizeof(path), "%s/profile.json", run_dir);
    if (!co_fs_exists(path))
        return CO_OK;
    CO_TRY(co_fs_read_as(&text, &size, path, &rule));
    root = json_loadb((const char *)text, size, 0, NULL);
    co_free(text);
    st = json_is_object(root)
             ? profile_take(out, root)
             : co_fail(CO_E_DATA, "%s: not a JSON object; the file is damaged", path);
    json_decref(root);
    if (st == CO_OK && out->step > 0)
        st = profile_stragglers(out, run_dir, ranks);
    out->known = st == CO_OK && out->step > 0;
    return st;
}
