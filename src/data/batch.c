/* batch.c - find a field of a batch, and take a slice of one. */
#include <string.h>

#include "data/data.h"

const co_field *co_batch_find(const co_batch *batch, const char *name)
{
    for (int i = 0; i < CO_MAX_FIELDS && batch->field[i].name; i++)
        if (strcmp(batch->field[i].name, name) == 0)
            return &batch->field[i];
    return NULL;
}

co_batch co_batch_slice(const co_batch *batch, uint64_t begin, uint64_t count)
{
    co_batch slice = *batch;

    slice.count = count;
    for (int i = 0; i < CO_MAX_FIELDS && slice.field[i].name; i++) {
        co_field *field = &slice.field[i];
        const size_t sample = (size_t)co_shape_count(&field->shape) * co_dtype_size(field->dtype);

        if (field->data)
            field->data = (const char *)field->data + begin * sample;
    }
    slice.sample += begin;
    return slice;
}
