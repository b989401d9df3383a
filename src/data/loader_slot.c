/* loader_slot.c - the memory of a batch that is read ahead. */
#include "data/loader_slot.h"

#include "core/fs.h"
#include "core/mem.h"
#include "device/device.h"

/* NULL, with the error message set, if there is not enough memory. */
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

co_status loader_slot_make(loader_slot *slot, const co_dataset *dataset, uint64_t most, bool labels,
                           co_device *device)
{
    const co_field *field = co_dataset_fields(dataset);

    slot->batch.sample = slot->sample = slot_take(device, most, sizeof(*slot->sample));
    if (!slot->sample)
        return CO_E_NOMEM;
    for (int k = 0; k < CO_MAX_FIELDS && field[k].name; k++) {
        const size_t sample =
            (size_t)co_shape_count(&field[k].shape) * co_dtype_size(field[k].dtype);

        slot->batch.field[k] = field[k];
        if (labels && k == 0)
            continue;
        slot->data[k] = slot_take(device, most, sample);
        if (!slot->data[k])
            return CO_E_NOMEM;
        slot->batch.field[k].data = slot->data[k];
    }
    return co_fence_create(&slot->fence, device);
}

void loader_slot_free(loader_slot *slot, co_device *device)
{
    co_fence_destroy(slot->fence);
    for (int k = 0; k < CO_MAX_FIELDS; k++)
        co_device_free(device, slot->data[k], CO_MEMORY_PINNED);
    co_device_free(device, slot->sample, CO_MEMORY_PINNED);
}
