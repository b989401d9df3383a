/*
 * evaluate.c - the test split: each sample once, whatever the number of ranks.
 */
#include "comm/watch.h"
#include "train/metrics.h"
#include "train/trainer.h"

#include <string.h>

co_status co_trainer_average_buffers(co_comm *comm, co_model *model)
{
    co_store *store = model->store;

    if (store->n_buffer == 0 || co_comm_size(comm) == 1)
        return CO_OK;
    return co_comm_allreduce(comm, store->buffer, store->buffer, store->n_buffer, CO_F32, CO_AVG);
}

co_status co_trainer_evaluate(co_result *out, co_result *own, co_comm *comm, co_model *model,
                              co_loader *loader, const co_sampler *sampler)
{
    const uint64_t steps = co_sampler_steps(sampler);

    memset(out, 0, sizeof(*out));
    co_watch_phase(comm, CO_PHASE_EVALUATING);
    for (uint64_t step = 0; step < steps; step++) {
        co_batch batch;
        co_result part;

        CO_TRY(co_loader_next(&batch, loader));
        CO_TRY(co_model_evaluate(&part, model, &batch));
        co_metrics_add(out, &part);
        co_watch_beat(comm);
    }
    if (own)
        *own = *out;
    return co_metrics_reduce(out, comm);
}
