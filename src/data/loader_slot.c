/* loader_slot.c - the memory of a batch that is read ahead. */
#include "data/loader_slot.h"

#include "core/fs.h"
#include "core/mem.h"

co_status loader_slot_make(loader_slot *slot, const co_dataset *dataset, uint64_t most)
{
    const co_shape *shape = co_dataset_shape(dataset);
    size_t floats;

    if (co_mul_size(&floats, most, (size_t)co_shape_count(shape)) != 0)
        return co_fail(CO_E_NOMEM, "out of memory");
    slot->input = co_calloc_aligned(floats, sizeof(*slot->input));
    slot->label = co_calloc(most, sizeof(*slot->label));
    slot->batch.sample = slot->sample = co_calloc(most, sizeof(*slot->sample));
    if (!slot->input || !slot->label || !slot->sample)
        return CO_E_NOMEM;
    slot->batch.field[0] = (co_field){CO_FIELD_INPUT, CO_F32, *shape, slot->input};
    slot->batch.field[1] = (co_field){CO_FIELD_LABEL, CO_I32, {0}, slot->label};
    return CO_OK;
}

void loader_slot_free(loader_slot *slot)
{
    co_free(slot->input);
    co_free(slot->label);
    co_free(slot->sample);
}
