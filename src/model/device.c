/*
 * device.c - models on a device: moving the store there, queueing a step, reading its results
 * later.
 */
#include "model/model.h"

#include "comm/queued.h"
#include "device/device.h"

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

static co_status device_make_room(model_late *late, const co_model *model, size_t bytes)
{
    co_device *device = model->store->device;

    if (bytes <= late->bytes)
        return CO_OK;
    co_device_free(device, late->memory, CO_MEMORY_PINNED);
    *late = (model_late){NULL, 0};
    CO_TRY(co_device_alloc(&late->memory, device, bytes, CO_MEMORY_PINNED));
    late->bytes = bytes;
    return CO_OK;
}

co_status co_model_forward_late(co_model *model, const co_batch *batch, int slot)
{
    if (slot >= CO_MODEL_MAX_LATE)
        return co_fail(CO_E_UNSUPPORTED, "accumulate: at most %d micro-batches on device %s",
                       CO_MODEL_MAX_LATE, co_device_name(model->store->device));
    CO_TRY(co_model_run_forward(NULL, model, batch, true));
    if (batch->count == 0)
        return CO_OK;
    CO_TRY(device_make_room(&model->late[slot], model, co_plan_result_bytes(model->last)));
    return co_plan_queue_results(model->last, model->late[slot].memory);
}

co_status co_model_wait(const co_model *model, co_comm *comm)
{
    co_queue *queue = model->store->queue;

    if (!queue)
        return CO_OK;
    CO_TRY(co_fence_record(queue->end, queue));
    return co_comm_wait_fence(comm, queue->end);
}

void co_model_take_late(co_result *out, co_model *model, const co_batch *batch, int slot)
{
    const float *score = model->late[slot].memory;

    co_model_count(out, model, score,
                   score ? score + batch->count * (uint64_t)model->classes : NULL, batch, true);
}

void co_model_drop_late(co_model *model)
{
    for (int i = 0; model->store && i < CO_MODEL_MAX_LATE; i++) {
        co_device_free(model->store->device, model->late[i].memory, CO_MEMORY_PINNED);
        model->late[i] = (model_late){NULL, 0};
    }
}
