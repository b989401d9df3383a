/*
 * dry_run.c - checks a run and times a few of its steps; writes nothing.
 *
 * Config, data, network and ranks are checked by what trains; here, samples all over the data, the
 * run directory and its disk. Ranks then start as in training.
 */
#include "train/dry_run.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "backends/backends.h"
#include "core/fs.h"
#include "core/mem.h"
#include "core/open.h"
#include "data/data.h"
#include "device/cuda/cuda.h"
#include "device/device.h"
#include "optim/optim.h"
#include "train/run_internal.h"
#include "train/run_mpi.h"
#include "train/run_session.h"
#include "train/rundir.h"

#define DRY_SAMPLES 32                  /* to read of each split, evenly spaced */
#define DRY_SPARE   ((uint64_t)1 << 20) /* bytes for metrics, config and summary */

/* Samples that are spread over the split, all fields of each. */
static co_status dry_read(uint64_t *n, const co_dataset *data)
{
    const co_field *field = co_dataset_fields(data);
    const uint64_t count = co_dataset_count(data), step = count / DRY_SAMPLES + 1;
    co_status st = CO_OK;

    for (int k = 0; st == CO_OK && k < CO_MAX_FIELDS && field[k].name; k++) {
        const size_t bytes =
            (size_t)co_shape_count(&field[k].shape) * co_dtype_size(field[k].dtype);
        void *out = co_calloc(bytes ? bytes : 1, 1);

        st = out ? CO_OK : CO_E_NOMEM;
        for (uint64_t i = 0; st == CO_OK && i < count; i += step) {
            st = co_dataset_read_field(data, out, k, i);
            *n += k == 0;
        }
        co_free(out);
    }
    return st;
}

/* The folder, or the nearest one above it that exists. */
static void dry_above(char *path)
{
    while (path[0] && !co_fs_exists(path)) {
        char *slash = strrchr(path, '/');

        if (!slash)
            break;
        *(slash == path ? slash + 1 : slash) = '\0';
        if (slash == path)
            return;
    }
    if (!path[0] || !co_fs_exists(path))
        memcpy(path, ".", sizeof("."));
}

/* Whether another job trains there. */
static co_status dry_check_lock(const char *run_dir)
{
    static const co_open_rule rule = {.status = CO_E_IO, .own = true};
    char path[sizeof(((co_dry_run *)NULL)->run_dir) + sizeof("/.lock")];
    FILE *file;
    bool locked;

    snprintf(path, sizeof(path), "%s/.lock", run_dir);
    if (!co_fs_exists(path))
        return CO_OK;
    CO_TRY(co_open_stream(&file, NULL, path, &rule));
    locked = flock(fileno(file), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    fclose(file);
    return locked ? co_fail(CO_E_USAGE,
                            "%s: another job is running in this run directory; wait for it, or "
                            "give another --run-dir",
                            run_dir)
                  : CO_OK;
}

/* Whether the run can continue without a rank as `on_failure` says. */
static co_status dry_check_failure(co_job *job, const co_train_options *options)
{
    co_session *session;

    if (job->under_mpi)
        return co_run_check_mpi(job, options);
    CO_TRY(co_job_open_session(&session, job));
    co_job_close_session(session, job);
    return CO_OK;
}

static co_status dry_check_dir(co_dry_run *out, co_job *job, const co_train_options *options)
{
    char above[sizeof(out->run_dir)] = "runs";
    struct statvfs disk;

    if (options->run_dir) {
        snprintf(out->run_dir, sizeof(out->run_dir), "%s", options->run_dir);
        snprintf(above, sizeof(above), "%s", options->run_dir);
        CO_TRY(dry_check_lock(out->run_dir));
        if (!options->resume)
            CO_TRY(co_rundir_check(out->run_dir, sizeof(out->run_dir), &job->spec));
    }
    dry_above(above);
    if (access(above, W_OK | X_OK) != 0)
        return co_fail(CO_E_IO,
                       "%s: the run directory cannot be written there: %s; give another "
                       "--run-dir",
                       above, strerror(errno));
    if (statvfs(above, &disk) == 0)
        out->free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    return CO_OK;
}

/* Checkpoints that are there at once: one is written before the oldest is removed, and the best may
   be kept besides. */
static uint64_t dry_kept(const co_dry_run *run, const co_saver_policy *saver)
{
    const co_dry_times *t = &run->times;
    const double made[] = {[CO_SAVER_OFF] = 0,
                           [CO_SAVER_EPOCHS] = (double)t->total_steps / (double)t->steps_per_epoch,
                           [CO_SAVER_STEPS] = (double)t->total_steps,
                           [CO_SAVER_SECONDS] = run->run_seconds};
    const double most = ceil(made[saver->unit] / (double)(saver->every ? saver->every : 1));

    if (saver->unit == CO_SAVER_OFF)
        return 0;
    return (uint64_t)fmin(most, (double)saver->keep + (saver->best ? 2 : 1));
}

/* Weights at the end, and checkpoints. */
static co_status dry_need(co_dry_run *out, const co_job *job)
{
    const co_saver_policy *saver = &job->spec.saver;
    const uint64_t weights =
        (uint64_t)(job->model->store->n + job->model->store->n_buffer) * sizeof(float);
    const uint64_t kept = dry_kept(out, saver);
    co_state_shape shape;
    uint64_t state = 0;

    CO_TRY(co_job_state_shape(&shape, job, out->times.ranks));
    for (int i = 0; i < shape.n_array; i++)
        state += (uint64_t)shape.array[i].n * sizeof(float) *
                 (shape.array[i].own ? (uint64_t)out->times.ranks : 1);
    out->needed_bytes =
        weights * (job->spec.ema ? 2 : 1) + DRY_SPARE + state * (kept + (saver->best ? 1 : 0));
    if (out->free_bytes == 0 || out->needed_bytes <= out->free_bytes)
        return CO_OK;
    return co_fail(CO_E_IO,
                   "%s: the disk has room for %llu MiB, and the run directory needs up to %llu: "
                   "free some, give another --run-dir, or keep fewer checkpoints "
                   "(checkpoint.keep)",
                   out->run_dir[0] ? out->run_dir : "runs",
                   (unsigned long long)(out->free_bytes >> 20),
                   (unsigned long long)(out->needed_bytes >> 20));
}

static co_status dry_find_resume(co_dry_run *out, co_job *job)
{
    co_state *state = NULL;

    if (!job->resume)
        return CO_OK;
    CO_TRY(co_resume_find(&out->resume, &state, out->run_dir, job));
    if (state)
        out->first_step = state->point.step;
    co_state_destroy(state);
    return out->resume == CO_RESUME_FRESH ? co_run_init(job) : CO_OK;
}

static co_status dry_fill_layers(co_dry_run *out, const co_model *model, const co_plan *plan)
{
    const co_graph *graph = model->graph;

    out->layer = co_calloc((size_t)graph->n_node + 1, sizeof(*out->layer));
    if (!out->layer)
        return CO_E_NOMEM;
    for (; out->n_layer < graph->n_node; out->n_layer++) {
        co_dry_layer *layer = &out->layer[out->n_layer];

        layer->name = co_strdup(graph->node[out->n_layer].name);
        if (!layer->name)
            return CO_E_NOMEM;
        layer->op = graph->node[out->n_layer].op->name;
        layer->backend = co_plan_backend(plan, out->n_layer, NULL);
        co_plan_describe(layer->kernel, sizeof(layer->kernel), plan, out->n_layer);
    }
    return CO_OK;
}

/* The network as ranks have it, compiled here once they have ended: for names and sizes. */
static co_status dry_fill_network(co_dry_run *out, co_job *job)
{
    co_model *model = job->model;
    co_optim *optim = NULL;
    co_plan *plan = NULL;
    size_t used, unshared;
    co_status st;

    CO_TRY(co_job_learn_kernels(job));
    CO_TRY(co_model_set_kernels(model, job->spec.kernels.layers));
    CO_TRY(co_run_device_open(&job->device, &job->spec.device));
    if (job->device)
        CO_TRY(co_model_move(model, job->device, co_backends_on(co_device_name(job->device))));
    co_model_setup(model, co_spec_threads(&job->spec));
    /* its state arrays are part of the store */
    CO_TRY(co_optim_create(&optim, job->spec.optimizer, job->spec.config, model->store));
    st = co_model_plan(&plan, model, co_spec_part(&job->spec), true);
    if (st == CO_OK) {
        co_plan_memory(plan, &used, &unshared);
        out->activation_bytes = used;
        out->store_bytes =
            ((uint64_t)(2 + model->store->n_state) * model->store->n + model->store->n_buffer) *
            sizeof(float);
        st = dry_fill_layers(out, model, plan);
    }
    co_optim_destroy(optim);
    return st;
}

static co_status dry_fill(co_dry_run *out, const co_job *job)
{
    const co_spec *spec = &job->spec;

    out->model = co_strdup(co_spec_model_name(spec));
    out->dataset = co_strdup(co_spec_plugin_name(spec->data, ""));
    out->strategy = co_strdup(co_spec_strategy_name(spec));
    out->parameters = co_model_parameter_count(job->model);
    out->train_samples = co_dataset_count(job->train);
    out->test_samples = job->test ? co_dataset_count(job->test) : 0;
    out->classes = co_dataset_classes(job->train);
    out->sample = *co_dataset_shape(job->train);
    return out->model && out->dataset && out->strategy ? CO_OK : CO_E_NOMEM;
}

/* An evaluation every `evaluate_every` epochs, and after the last. */
static void dry_estimate(co_dry_run *out, const co_spec *spec)
{
    const co_dry_times *t = &out->times;
    const uint64_t every = (uint64_t)spec->evaluate_every, first = out->first_step;
    const uint64_t left = t->total_steps > first ? t->total_steps - first : 0;
    const uint64_t epochs = (left + t->steps_per_epoch - 1) / t->steps_per_epoch;
    const uint64_t evaluations = (epochs + every - 1) / every;

    out->epoch_seconds = t->step_seconds * (double)t->steps_per_epoch + t->evaluation_seconds;
    out->run_seconds = t->start_seconds + t->step_seconds * (double)left +
                       t->evaluation_seconds * (double)evaluations;
}

static co_status dry_rank(co_comm *comm, void *arg)
{
    co_job job;

    CO_TRY(co_job_enter_device(arg, comm));
    job = co_run_rank_job(arg, comm);
    CO_TRY(co_trainer_dry(comm, &job));
    return co_run_share_result(comm, &job);
}

static co_status dry_make(co_dry_run *out, co_job *job, const co_train_options *options)
{
    CO_TRY(co_rundir_check_named(options->run_dir, options->resume));
    CO_TRY(co_run_open(job, options, true));
    CO_TRY(dry_fill(out, job));
    CO_TRY(dry_read(&out->read_samples, job->train));
    if (job->test)
        CO_TRY(dry_read(&out->read_samples, job->test));
    CO_TRY(dry_check_failure(job, options));
    CO_TRY(dry_check_dir(out, job, options));
    CO_TRY(dry_find_resume(out, job));
    job->bench_rounds = 1; /* measured kernels go into no config */
    CO_TRY(co_run_launch(job, options, NULL, dry_rank));
    out->times = job->result->dry;
    dry_estimate(out, &job->spec);
    CO_TRY(dry_need(out, job));
    return dry_fill_network(out, job);
}

co_status co_dry_run_make(co_dry_run *out, const co_train_options *options)
{
    co_job job = {.quiet = true, .resume = options->resume, .lock = -1};
    co_status st;

    *out = (co_dry_run){.resume = CO_RESUME_FRESH};
    st = dry_make(out, &job, options);
    co_run_close(&job);
    return st;
}

void co_dry_run_free(co_dry_run *run)
{
    for (int i = 0; run->layer && i <= run->n_layer; i++)
        co_free(run->layer[i].name);
    co_free(run->layer);
    co_free(run->model);
    co_free(run->dataset);
    co_free(run->strategy);
}
