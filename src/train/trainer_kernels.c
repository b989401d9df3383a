/*
 * trainer_kernels.c - says before the first step where reference kernels will make training slow,
 * and what to do about it.
 */
#include <stdio.h>
#include <string.h>

#include "backends/backends.h"
#include "core/plural.h"
#include "data/data.h"
#include "graph/work.h"
#include "train/trainer_internal.h"

/* Their loops are about a hundred times as slow as the others, so that with this fraction of the
   operations a step takes twice as long. */
#define KERNELS_SLOW_FRACTION 0.01

/* What the reference kernels have to do of a step. */
typedef struct kernels_found {
    double operations, all, largest;
    const char *name; /* of the layer with the largest part */
    int layers;
} kernels_found;

static void kernels_count(kernels_found *out, const co_plan *plan)
{
    memset(out, 0, sizeof(*out));
    for (int s = 0; s < co_plan_step_count(plan); s++) {
        co_plan_step step;
        co_work work;

        co_plan_step_at(&step, plan, s);
        co_work_of(&work, &step);
        out->all += work.flops;
        if (step.backend != &co_backend_ref)
            continue;
        out->operations += work.flops;
        out->layers += !step.backward && work.flops > 0;
        if (work.flops > out->largest) {
            out->largest = work.flops;
            out->name = step.name;
        }
    }
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

co_status trainer_say_kernels(trainer *t)
{
    const uint64_t batch = kernels_batch(t);
    const co_plan *plan;
    kernels_found found;
    char line[256];

    if (co_comm_rank(t->comm) != 0 || batch == 0 || strcmp(t->job->spec.backend, "ref") == 0)
        return CO_OK;
    CO_TRY(co_model_training_plan(&plan, t->job->model, batch));
    kernels_count(&found, plan);
    if (found.operations <= KERNELS_SLOW_FRACTION * found.all)
        return CO_OK;
    snprintf(line, sizeof(line),
             "slow: reference kernels run %d layer%s, with %.0f%% of a step's operations, most of "
             "them in %s; %s",
             found.layers, co_plural((uint64_t)found.layers), 100 * found.operations / found.all,
             found.name, kernels_remedy(t));
    trainer_say(t, line);
    return CO_OK;
}
