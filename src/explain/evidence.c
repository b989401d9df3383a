/* evidence.c - reads all evidence of a run, and figures that several detectors use. */
#include "explain/evidence.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/fs.h"
#include "core/mem.h"

#define EVIDENCE_MAX_PATH 4096

static void evidence_note(char out[CO_EVIDENCE_TEXT], co_status st)
{
    if (st != CO_OK)
        snprintf(out, CO_EVIDENCE_TEXT, "%s", co_error_message());
}

/* What cannot be read is said; out of memory ends it. */
static co_status evidence_look(co_evidence *out, const char *run_dir)
{
    co_status st = co_evidence_read_data(&out->data, &out->spec);

    evidence_note(out->data.why_not, st);
    if (st == CO_E_NOMEM)
        return st;
    st = co_evidence_read_weights(&out->weights, &out->spec, run_dir, out->run.threads);
    evidence_note(out->weights.why_not, st);
    return st == CO_E_NOMEM ? st : CO_OK;
}

co_status co_evidence_read(co_evidence *out, const char *run_dir, const char *const *set, bool look)
{
    char path[EVIDENCE_MAX_PATH];
    const co_train_options options = {.config_path = path, .set = set};
    const int n = snprintf(path, sizeof(path), "%s/config.yaml", run_dir);

    memset(out, 0, sizeof(*out));
    if (n < 0 || n >= (int)sizeof(path))
        return co_fail(CO_E_USAGE, "the path of the run directory is too long");
    if (!co_fs_exists(path))
        return co_fail(CO_E_USAGE,
                       "%s: holds no run: there is no config.yaml; `cohort runs` lists "
                       "those in a folder",
                       run_dir);
    CO_TRY(co_evidence_read_run(&out->run, run_dir));
    CO_TRY(co_evidence_read_profile(&out->profile, run_dir, out->run.ranks));
    CO_TRY(co_spec_open(&out->spec, &options));
    out->has_spec = true;
    if (look)
        return evidence_look(out, run_dir);
    snprintf(out->data.why_not, CO_EVIDENCE_TEXT, "not asked for");
    snprintf(out->weights.why_not, CO_EVIDENCE_TEXT, "not asked for");
    return CO_OK;
}

void co_evidence_free(co_evidence *e)
{
    for (size_t i = 0; e->weights.at && i < e->weights.n; i++)
        co_free(e->weights.at[i].name);
    co_free(e->weights.at);
    co_free(e->profile.at);
    co_free(e->run.step.at);
    co_free(e->run.epoch.at);
    co_free(e->run.times);
    if (e->has_spec)
        co_spec_unload(&e->spec);
    memset(e, 0, sizeof(*e));
}

double co_evidence_steps(const co_rank_times *t)
{
    return t->data + t->compute + t->exchange + t->wait;
}

co_rank_times co_evidence_mean(const co_evidence_run *run)
{
    co_rank_times mean = {.wall = 0};
    double *sum = (double *)&mean;
    const size_t n = sizeof(mean) / sizeof(*sum);

    for (int r = 0; run->has_times && r < run->ranks; r++)
        for (size_t i = 0; i < n; i++)
            sum[i] += ((const double *)&run->times[r])[i] / run->ranks;
    return mean;
}

double co_evidence_last_loss(const co_evidence_run *run)
{
    const co_evidence_curve *curve = run->step.n ? &run->step : &run->epoch;

    return curve->n ? curve->at[curve->n - 1].train_loss : (double)NAN;
}

double co_evidence_last_accuracy(const co_evidence_run *run, bool test)
{
    const co_evidence_curve *curve = &run->epoch;

    for (size_t i = curve->n; i-- > 0;) {
        const double value = test ? curve->at[i].test_accuracy : curve->at[i].train_accuracy;

        if (!isnan(value))
            return value;
    }
    return (double)NAN;
}

bool co_evidence_learns_classes(const co_evidence *e)
{
    const co_evidence_curve *curve = e->run.step.n ? &e->run.step : &e->run.epoch;

    return e->data.known && e->data.labels && e->data.classes > 1 &&
           !(curve->n && isnan(curve->at[0].train_accuracy));
}
