/* loader_slot.c - the memory of a batch that is read ahead. */
#include "data/loader_slot.h"

#include "core/fs.h"
#include "core/mem.h"
#include "device/device.h"

/* NULL, with the message set, where there is not enough. */
static void *slot_take(co_device *device, uint64_t count, size_t size)
{
    void *block = NULL;
    size_t bytes;

    if (co_mul_size(&bytes, count, size) != 0)
        (void)co_fail(CO_E_NOMEM, "out of memory");
    else
        (void)co_device_alloc(&block, device, bytes, CO_MEMORY_PINNED);
    return block;
}

co_status loader_slot_make(loader_slot *slot, const co_dataset *dataset, uint64_t most,
                           co_device *device)
{
    const co_shape *shape = co_dataset_shape(dataset);
    size_t floats;

    if (co_mul_size(&floats, most, (size_t)co_shape_count(shape)) != 0)
        return co_fail(CO_E_NOMEM, "out of memory");
    slot->input = slot_take(device, floats, sizeof(*slot->input));
    slot->label = slot_take(device, most, sizeof(*slot->label));
    slot->batch.sample = slot->sample = slot_take(device, most, sizeof(*slot->sample));
    if (!slot->input || !slot->label || !slot->sample)
        return CO_E_NOMEM;
    slot->batch.field[0] = (co_field){CO_FIELD_INPUT, CO_F32, *shape, slot->input};
    slot->batch.field[1] = (co_field){CO_FIELD_LABEL, CO_I32, {0}, slot->label};
    return co_fence_create(&slot->fence, device);
}

void loader_slot_free(loader_slot *slot, co_device *device)
{
    co_fence_destroy(slot->fence);
    co_device_free(device, slot->input, CO_MEMORY_PINNED);
    co_device_free(device, slot->label, CO_MEMORY_PINNED);
    co_device_free(device, slot->sample, CO_MEMORY_PINNED);
}
