/* run_kernels.c - kernels that a config or a checkpoint names, and the place for measured ones. */
#include <string.h>
#include <sys/mman.h>

#include "core/mem.h"
#include "train/trainer.h"

#define RUN_KERNELS_HEAD  128 /* bytes of text besides layers */
#define RUN_KERNELS_QUOTE 6   /* bytes for quotes, colon and comma */

co_status co_job_open_kernels(co_job *job)
{
    const co_graph *graph = job->model->graph;
    size_t size = RUN_KERNELS_HEAD;

    if (!co_kernels_are_open(&job->spec.kernels))
        return CO_OK;
    for (int i = 0; i < graph->n_node; i++)
        size += 2 * strlen(graph->node[i].name) + CO_PLAN_PICK_TEXT + RUN_KERNELS_QUOTE;
    job->kernels = co_map(sizeof(*job->kernels) + size, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1);
    if (!job->kernels)
        return co_fail(CO_E_NOMEM, "out of memory");
    job->kernels->size = size;
    return CO_OK;
}

void co_job_close_kernels(co_job *job)
{
    if (job->kernels)
        munmap(job->kernels, sizeof(*job->kernels) + job->kernels->size);
    job->kernels = NULL;
}

co_status co_job_learn_kernels(co_job *job)
{
    if (!co_kernels_are_open(&job->spec.kernels) || !job->kernels ||
        !atomic_load(&job->kernels->known))
        return CO_OK;
    return co_spec_set_kernels(&job->spec, job->kernels->text);
}

co_status co_job_check_kernels(const co_job *job, uint64_t batch)
{
    const co_kernels *kernels = &job->spec.kernels;

    if (!kernels->layers || (!kernels->batch && !batch))
        return CO_OK;
    return co_model_check_kernels(job->model, kernels->batch ? kernels->batch : (int64_t)batch);
}

/* The model's kernels become those of the spec. */
static co_status kernels_use(const co_job *job)
{
    const co_value *layers = job->spec.kernels.layers;

    CO_TRY(co_model_set_kernels(job->model, layers));
    for (int64_t rank = 0; job->replica && rank < job->spec.ranks; rank++)
        CO_TRY(co_model_set_kernels(job->replica[rank], layers));
    return co_job_check_kernels(job, 0);
}

co_status co_spec_take_kernels(bool *taken, co_spec *spec, const char *config)
{
    const co_train_options options = {.config_text = config};
    const char *text = NULL;
    co_spec then;
    co_status st = CO_OK;

    *taken = false;
    if (!co_kernels_are_open(&spec->kernels))
        return CO_OK;
    CO_TRY(co_spec_load(&then, &options));
    if (then.kernels.layers)
        st = co_spec_text(&text, &then, then.kernels_value);
    if (st == CO_OK && text)
        st = co_spec_set_kernels(spec, text);
    *taken = st == CO_OK && text;
    co_spec_unload(&then);
    return st;
}

co_status co_job_take_kernels(co_job *job, const char *config)
{
    bool taken;

    CO_TRY(co_spec_take_kernels(&taken, &job->spec, config));
    return taken ? kernels_use(job) : CO_OK;
}
