/*
 * trainer_kernels.c - before the first step: measures which kernels are fastest, where the config
 * wants that, and says which layers run on reference kernels, whether that will make training slow,
 * and what to do about it.
 */
#include <stdio.h>
#include <string.h>

#include "backends/backends.h"
#include "core/mem.h"
#include "core/plural.h"
#include "data/data.h"
#include "graph/work.h"
#include "train/rundir.h"
#include "train/trainer_internal.h"

/* Their loops are about a hundred times as slow as the others, so that with this fraction of the
   operations, or of the bytes that are read and written, a step takes twice as long. */
#define KERNELS_SLOW_FRACTION 0.01

/* What the reference kernels have to do of a step: fractions of its operations and bytes. */
typedef struct kernels_found {
    double operations, bytes, largest;
    const char *name; /* of the layer with the largest part */
    int layers;
} kernels_found;

/* Ours, or those of a library. */
static bool kernels_is_reference(const co_plan_step *step)
{
    char text[64] = "";

    if (step->backend->describe_call)
        step->backend->describe_call(text, sizeof(text), step->seen, step->backward);
    return step->backend == &co_backend_ref || strncmp(text, "ref:", 4) == 0;
}

static void kernels_count(kernels_found *out, const co_plan *plan)
{
    double operations = 0, bytes = 0;

    memset(out, 0, sizeof(*out));
    for (int s = 0; s < co_plan_step_count(plan); s++) {
        co_plan_step step;
        co_work work;

        co_plan_step_at(&step, plan, s);
        co_work_of(&work, &step);
        operations += work.flops;
        bytes += work.bytes;
        if (!kernels_is_reference(&step))
            continue;
        out->operations += work.flops;
        out->bytes += work.bytes;
        out->layers += !step.backward && work.flops > 0;
        if (work.flops > out->largest) {
            out->largest = work.flops;
            out->name = step.name;
        }
    }
    out->operations /= operations;
    out->bytes /= bytes;
}

static bool kernels_has_onednn(void)
{
    for (const co_backend *const *b = co_backends; *b; b++)
        if (strcmp((*b)->name, "onednn") == 0)
            return true;
    return false;
}

static const char *kernels_remedy(const trainer *t)
{
    if (strcmp(t->job->spec.backend, "auto") != 0)
        return "`backend: auto` chooses among all that this build has";
    if (!kernels_has_onednn())
        return "install oneDNN (Debian: libdnnl-dev) and build again";
    return "`cohort list kernels --config CONFIG --why` has the reasons";
}

/* Samples of the first micro-batch, for which a plan is needed in any case. */
static uint64_t kernels_batch(const trainer *t)
{
    const int part = t->shards.tree ? t->shards.first : co_comm_rank(t->comm);

    if (t->step >= t->info.total_steps || t->epoch_step >= t->info.steps_per_epoch)
        return 0;
    return co_sampler_local(t->train.sampler, t->epoch_step, part) /
           (uint64_t)t->job->spec.accumulate;
}

/* Other ranks wait meanwhile, no longer than they are allowed to. */
static double kernels_seconds(const co_spec *spec)
{
    const double most = (double)spec->timeout_s / 2, wanted = (double)spec->kernels.seconds;

    return wanted < most ? wanted : most;
}

static void kernels_say_times(trainer *t, const co_kernels_times *times)
{
    const double gain = 1 - times->chosen_seconds / times->fixed_seconds;
    char line[256], left[64] = "";

    if (times->left)
        snprintf(left, sizeof(left), "; no time for %d more, for which `kernels.seconds` is",
                 times->left);
    snprintf(line, sizeof(line),
             "kernels: measured %d choice%s in %.1f s: a step's layers take %.3g ms, with the "
             "fixed choice %.3g ms (%.1f%% less)%s",
             times->tried, co_plural((uint64_t)times->tried), times->spent_seconds,
             times->chosen_seconds * 1e3, times->fixed_seconds * 1e3, 100 * gain, left);
    trainer_say(t, line);
}

/* On rank 0. The text is left in job->kernels. */
static co_status kernels_measure(trainer *t, uint64_t batch)
{
    co_job *job = t->job;
    co_kernels kernels = job->spec.kernels;
    co_kernels_times times = {.report = NULL};
    char *text, line[160];
    size_t n;

    snprintf(line, sizeof(line),
             "kernels: measuring which run each layer fastest, %llu samples at once, for up to "
             "%.0f s",
             (unsigned long long)batch, kernels_seconds(&job->spec));
    trainer_say(t, line);
    CO_TRY(
        co_model_measure_kernels(&times, job->model, (int64_t)batch, kernels_seconds(&job->spec)));
    kernels_say_times(t, &times);
    kernels.batch = (int64_t)batch;
    CO_TRY(co_kernels_write(&text, job->model, &kernels));
    n = strlen(text) + 1;
    if (n <= job->kernels->size) {
        memcpy(job->kernels->text, text, n);
        atomic_store(&job->kernels->known, true);
    }
    co_free(text);
    return n <= job->kernels->size ? CO_OK : co_fail(CO_E_USAGE, "kernels: too many layers");
}

/* Ranks of one machine share the text; others get rank 0's. */
static co_status kernels_agree(trainer *t)
{
    co_job_kernels *kernels = t->job->kernels;
    uint64_t n = kernels->size;

    if (!t->job->under_mpi)
        return co_comm_barrier(t->comm);
    CO_TRY(co_comm_bcast(t->comm, &n, 1, CO_I64, 0));
    if (n != kernels->size)
        return co_fail(CO_E_USAGE, "kernels: ranks have networks with other layers");
    return co_comm_bcast(t->comm, kernels->text, (size_t)n, CO_U8, 0);
}

/* What rank 0 has measured, in this rank's model; fails if this CPU cannot run it. */
static co_status kernels_use(trainer *t)
{
    const char *text = t->job->kernels->text;
    co_config *config = NULL;
    co_kernels kernels;
    co_status st;

    CO_TRY(co_config_parse(&config, text, strlen(text), "kernels that rank 0 has measured"));
    st = co_kernels_read(&kernels, co_config_root(config), co_config_arena(config));
    if (st == CO_OK)
        st = co_model_set_kernels(t->job->model, kernels.layers);
    if (st == CO_OK && kernels.batch)
        st = co_model_check_kernels(t->job->model, kernels.batch);
    co_config_destroy(config);
    return st;
}

co_status trainer_choose_kernels(trainer *t)
{
    const uint64_t batch = kernels_batch(t);
    const bool first = co_comm_rank(t->comm) == 0;
    co_job *job = t->job;

    if (!co_kernels_are_open(&job->spec.kernels))
        return job->under_mpi ? co_job_check_kernels(job, batch) : CO_OK;
    if (first && !atomic_load(&job->kernels->known) && batch > 0)
        CO_TRY(kernels_measure(t, batch));
    CO_TRY(kernels_agree(t));
    if (!job->kernels->text[0]) /* there is no step to make */
        return CO_OK;
    CO_TRY(kernels_use(t));
    if (!first)
        return CO_OK;
    CO_TRY(co_spec_set_kernels(&job->spec, job->kernels->text));
    return job->bench_rounds ? CO_OK
                             : co_rundir_write_config(job->result->train.run_dir, &job->spec);
}

co_status trainer_say_kernels(trainer *t)
{
    const uint64_t batch = kernels_batch(t);
    co_plan *plan = NULL;
    kernels_found found;
    char line[320];
    bool slow;

    if (co_comm_rank(t->comm) != 0 || batch == 0 || strcmp(t->job->spec.backend, "ref") == 0)
        return CO_OK;
    CO_TRY(co_model_plan(&plan, t->job->model, batch, true));
    kernels_count(&found, plan);
    if (found.layers == 0)
        return CO_OK;
    slow = found.operations > KERNELS_SLOW_FRACTION || found.bytes > KERNELS_SLOW_FRACTION;
    snprintf(line, sizeof(line),
             "%sreference kernels run %d layer%s, with %.2g%% of a step's operations and %.2g%% of "
             "the bytes that it moves, most of them in %s; %s",
             slow ? "slow: " : "", found.layers, co_plural((uint64_t)found.layers),
             100 * found.operations, 100 * found.bytes, found.name, kernels_remedy(t));
    trainer_say(t, line);
    return CO_OK;
}
