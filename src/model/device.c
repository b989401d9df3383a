/*
 * device.c - models on a device: moving the store there, checks that the device itself makes, and
 * sums over ranks.
 */
#include <cohort/ext/comm.h>

#include "comm/queued.h"
#include "device/device.h"
#include "model/model.h"

co_status co_model_move(co_model *model, co_device *device, const co_backend *const *backends)
{
    co_model_drop_plans(model);
    co_plan_block_free(&model->block);
    CO_TRY(co_store_move(model->store, device));
    model->backends = backends;
    return CO_OK;
}

void co_model_check_loss(const co_model *model, const co_plan *plan, uint64_t count)
{
    const co_store *store = model->store;
    co_step_values *values = store->values;

    if (!store->ring)
        return;
    store->vector->max_abs(store->queue, &values->max_abs, co_plan_loss(plan), count);
    store->vector->step(store->queue, values, CO_STEP_LOSS, NULL);
}

co_status co_model_reduce(void *model, double *v, size_t n)
{
    const co_model *m = model;
    const co_coll_args args = {.coll = CO_COLL_ALLREDUCE,
                               .in = v,
                               .out = v,
                               .count = n,
                               .dtype = CO_F64,
                               .op = CO_SUM,
                               .queue = m->store->queue};

    return co_comm_enqueue_run(m->norm_comm, &args);
}
