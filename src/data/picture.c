/* picture.c - samples back from normalised floats to bytes, as PNG files. */
#include "data/picture.h"

#include <math.h>

#include "data/dataset_internal.h"
#include "image/encode.h"

/* What lies outside of a byte's range, as after a change of colours, is cut off. */
static void picture_to_bytes(uint8_t *out, const co_dataset *data, const float *sample)
{
    const int64_t *dim = data->shape.dim, plane = dim[1] * dim[2];

    for (int64_t c = 0; c < dim[0]; c++) {
        const float *value = data->table[c].value;
        const float step = (value[UINT8_MAX] - value[0]) / UINT8_MAX;

        for (int64_t i = c * plane; i < (c + 1) * plane; i++)
            out[i] = (uint8_t)(fminf(fmaxf((sample[i] - value[0]) / step, 0), UINT8_MAX) + 0.5f);
    }
}

co_status co_picture_draw(co_picture *out, const co_dataset *data, uint64_t i,
                          const co_augment_place *place)
{
    const int64_t channels = co_dataset_has_images(data) ? data->shape.dim[0] : 0;
    size_t n;
    uint8_t *values;

    out->png = (co_bytes){NULL, 0};
    if (channels != 1 && channels != 3)
        return CO_OK;
    n = (size_t)co_shape_count(&data->shape);
    CO_TRY(co_buffer_reserve(&values, &out->values, n * (sizeof(float) + 1)));
    CO_TRY(co_dataset_draw(data, (float *)(void *)values, i, place, &out->scratch));
    picture_to_bytes(values + n * sizeof(float), data, (float *)(void *)values);
    return co_image_encode_png(&out->png, &out->packed, values + n * sizeof(float), &data->shape);
}

void co_picture_free(co_picture *picture)
{
    co_data_scratch_free(&picture->scratch);
    co_buffer_free(&picture->values);
    co_buffer_free(&picture->packed);
    *picture = (co_picture){.png = {NULL, 0}};
}
