/* resume.c - chooses the checkpoint to resume from and prepares the run directory. */
#include "train/resume.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/plural.h"
#include "launch/root.h"
#include "state/checkpoint.h"
#include "telemetry/telemetry.h"
#include "train/rundir.h"

static co_status resume_exists(bool *out, const char *run_dir, const char *file)
{
    char path[CO_CHECKPOINT_MAX_PATH];

    CO_TRY(co_fs_join(path, sizeof(path), run_dir, file));
    *out = co_fs_exists(path);
    return CO_OK;
}

static co_status resume_check_model(const co_manifest *manifest, const co_job *job,
                                    const char *folder)
{
    const uint64_t count = co_model_parameter_count(job->model);
    const char *name = co_spec_model_name(&job->spec);

    if (strncmp(manifest->model, name, sizeof(manifest->model) - 1) == 0 &&
        manifest->parameter_count == count)
        return CO_OK;
    return co_fail(CO_E_DATA,
                   "%s: is of the model %s with %llu parameters, and the config makes %s with %llu",
                   folder, manifest->model, (unsigned long long)manifest->parameter_count, name,
                   (unsigned long long)count);
}

/* Check the parts of an epoch's plan that are not in the config. Over MPI the number of ranks is
   not known yet; each rank checks its plan again. */
static co_status resume_check_plan(const co_manifest *manifest, const co_job *job,
                                   const char *folder)
{
    const co_run_point *point = manifest->point;
    const uint64_t samples = co_dataset_count(job->train);
    const uint64_t batch = co_spec_batch(&job->spec, (int)job->spec.ranks);

    if (manifest->train_samples != samples)
        return co_fail(CO_E_DATA,
                       "%s: was made with %llu training samples, and the data has %llu; the run "
                       "can continue with the same data alone",
                       folder, (unsigned long long)manifest->train_samples,
                       (unsigned long long)samples);
    if (point->batch == batch || (job->under_mpi && job->spec.batch_per_rank))
        return CO_OK;
    return co_fail(CO_E_USAGE,
                   "%s: the run so far had %llu samples a step, and would have %llu now; give it "
                   "the batch and the ranks that make as many",
                   folder, (unsigned long long)point->batch, (unsigned long long)batch);
}

static co_status resume_load(co_state **state, const co_manifest *manifest, const char *folder,
                             co_job *job)
{
    co_state_shape shape;

    CO_TRY(co_job_take_kernels(job, manifest->config));
    CO_TRY(co_resume_compare(&job->spec, manifest->config, folder));
    CO_TRY(resume_check_model(manifest, job, folder));
    CO_TRY(resume_check_plan(manifest, job, folder));
    CO_TRY(co_job_state_shape(&shape, job, (int)manifest->ranks));
    return co_checkpoint_load(state, manifest, folder, &shape, job->model->graph);
}

/* Steps of the whole run, with the checkpoint's epoch length. */
static uint64_t resume_total(const co_job *job, const co_run_point *point)
{
    const uint64_t total = point->steps_per_epoch * (uint64_t)job->spec.epochs;
    const uint64_t most = (uint64_t)job->spec.max_steps;

    return most && most < total ? most : total;
}

static bool resume_has_stopped(const co_job *job, const co_run_point *point)
{
    return co_best_find_stop(NULL, &point->best, &job->spec.stop, &point->last) != CO_STOP_NONE;
}

/* Fails if the config would have ended the run before the checkpoint's step. */
static co_status resume_check_end(const co_run_point *point, const char *run_dir, const co_job *job)
{
    const unsigned long long step = point->step, total = resume_total(job, point);
    const bool by_steps = total < point->steps_per_epoch * (uint64_t)job->spec.epochs;

    if (step <= total)
        return CO_OK;
    return co_fail(CO_E_USAGE,
                   "%s: the run has made %llu steps, %llu epochs of them whole, and the config "
                   "ends it after step %llu (%s: %lld); let that be as much at least, or leave it "
                   "as the run was started",
                   run_dir, step, step / (unsigned long long)point->steps_per_epoch, total,
                   by_steps ? "max_steps" : "epochs",
                   (long long)(by_steps ? job->spec.max_steps : job->spec.epochs));
}

/* Log where the run continues. */
static co_status resume_announce(co_resume_kind *kind, const co_state *state, const char *run_dir,
                                 const co_job *job)
{
    const co_run_point *point = &state->point;
    const unsigned long long step = point->step, total = resume_total(job, point);
    bool done;

    CO_TRY(resume_check_end(point, run_dir, job));
    CO_TRY(resume_exists(&done, run_dir, "summary.json"));
    *kind = done && (step >= total || resume_has_stopped(job, point)) ? CO_RESUME_COMPLETE
                                                                      : CO_RESUME_STATE;
    if (!co_launch_is_root())
        return CO_OK;
    if (*kind == CO_RESUME_COMPLETE)
        co_log(CO_LOG_INFO,
               "%s: the run is complete, %llu of %llu steps; to train on, raise epochs, "
               "max_steps or stop_at",
               run_dir, step, total);
    else
        co_log(CO_LOG_INFO, "%s: continues after step %llu of %llu, saved by %d rank%s", run_dir,
               step, total, state->ranks, co_plural((uint64_t)state->ranks));
    return CO_OK;
}

static co_status resume_nothing(co_resume_kind *kind, const char *run_dir)
{
    bool done;

    CO_TRY(resume_exists(&done, run_dir, "summary.json"));
    if (done)
        return co_fail(CO_E_USAGE,
                       "%s holds a finished run without checkpoints, so it cannot continue; give "
                       "another --run-dir",
                       run_dir);
    *kind = CO_RESUME_FRESH;
    if (co_launch_is_root())
        co_log(CO_LOG_INFO, "%s: has no checkpoint; the run starts from the beginning", run_dir);
    return CO_OK;
}

/* Load the newest checkpoint that is intact. */
static co_status resume_search(co_state **state, size_t *tried, const char *dir, co_job *job)
{
    uint64_t *steps = NULL;
    co_status st;

    CO_TRY(co_checkpoint_list(&steps, tried, dir));
    st = CO_OK;
    for (size_t i = 0; i < *tried && !*state && st == CO_OK; i++) {
        char folder[CO_CHECKPOINT_MAX_PATH];
        co_manifest manifest;

        st = co_checkpoint_path(folder, dir, steps[i]);
        if (st != CO_OK)
            break;
        st = co_checkpoint_open(&manifest, folder);
        if (st == CO_OK) {
            st = resume_load(state, &manifest, folder, job);
            co_manifest_free(&manifest);
        } else if (st == CO_E_DATA && !co_manifest_is_newer(folder)) {
            if (co_launch_is_root())
                co_log(CO_LOG_WARN, "%s%s", co_error_message(),
                       i + 1 < *tried ? "; the checkpoint before it is taken" : "");
            st = CO_OK;
        }
    }
    co_free(steps);
    return st;
}

co_status co_resume_find(co_resume_kind *kind, co_state **state, const char *run_dir, co_job *job)
{
    char dir[CO_CHECKPOINT_MAX_PATH];
    size_t tried = 0;

    *state = NULL;
    CO_TRY(co_fs_join(dir, sizeof(dir), run_dir, "checkpoints"));
    CO_TRY(resume_search(state, &tried, dir, job));
    if (*state) {
        CO_TRY(co_rundir_check_data(run_dir, job->train));
        return resume_announce(kind, *state, run_dir, job);
    }
    if (tried)
        return co_fail(CO_E_DATA,
                       "%s: no valid checkpoint among %zu (see above), so the run cannot continue; "
                       "restore one, or start again in another --run-dir",
                       dir, tried);
    return resume_nothing(kind, run_dir);
}

/* Remove what exists only after a complete run. */
static co_status resume_unfinish(const char *run_dir)
{
    char path[CO_CHECKPOINT_MAX_PATH];

    CO_TRY(co_fs_join(path, sizeof(path), run_dir, "summary.json"));
    if (unlink(path) != 0 && errno != ENOENT)
        return co_fail(CO_E_IO, "%s: cannot remove it: %s", path, strerror(errno));
    return CO_OK;
}

co_status co_resume_prepare(const char *run_dir, const co_job *job, const co_state *state)
{
    CO_TRY(resume_unfinish(run_dir));
    CO_TRY(co_sink_jsonl_cut(run_dir, state ? state->point.step : 0,
                             state ? state->point.epoch_step : 0));
    return state ? co_rundir_write_config(run_dir, &job->spec)
                 : co_rundir_begin(run_dir, &job->spec, job->train);
}

co_status co_resume_enter(int *lock, co_job *job)
{
    co_train_summary *train = &job->result->train;

    if (!job->resume)
        return co_rundir_create(lock, train->run_dir, sizeof(train->run_dir), &job->spec,
                                job->train);
    CO_TRY(co_rundir_lock(lock, train->run_dir));
    return co_resume_prepare(train->run_dir, job, job->state);
}
