/*
 * draw.c - from a sample's stored bytes to the floats that a network gets.
 *
 * bytes -> decoded or resampled, where the sizes differ -> augmented -> a table normalises them ->
 * augmented as floats. Must not know where bytes come from, nor order, batches or threads.
 */
#include "core/mem.h"
#include "data/dataset_internal.h"

/* The box that is taken of an image of this size. */
static co_status draw_box(co_image_box *out, const co_dataset *data, int64_t height, int64_t width,
                          const co_augment_place *place, const char *name)
{
    if (!place || data->augment.n_box == 0)
        return co_frame_box(out, &data->frame, height, width, name);
    co_augment_box(&data->augment, out, height, width, place);
    return CO_OK;
}

/* The part of the image that is taken, decoded or resampled: (C, H, W) bytes. */
static co_status draw_frame(uint8_t *out, const co_dataset *data, const co_bytes *bytes, uint64_t i,
                            const co_augment_place *place, co_data_scratch *scratch)
{
    const co_shape *shape = &data->shape, *stored = &data->info.shape;
    co_image_want want = {
        .channels = shape->dim[0], .height = shape->dim[1], .width = shape->dim[2]};
    const co_pixels pixels = {
        .at = bytes->at,
        .plane = (size_t)(stored->dim[1] * stored->dim[2]),
        .row = (size_t)stored->dim[2],
        .column = 1,
        .channels = stored->dim[0],
        .height = stored->dim[1],
        .width = stored->dim[2],
    };
    char name[CO_DATASET_NAME];
    co_image_info image;

    co_dataset_sample_name(data, name, sizeof(name), i);
    if (!scratch->image)
        CO_TRY(co_image_scratch_create(&scratch->image));
    if (!data->info.encoded) {
        CO_TRY(draw_box(&want.box, data, stored->dim[1], stored->dim[2], place, name));
        return co_image_resample(out, &want, &pixels, scratch->image);
    }
    CO_TRY(co_image_probe(&image, bytes->at, bytes->n, name));
    CO_TRY(draw_box(&want.box, data, (int64_t)image.height, (int64_t)image.width, place, name));
    return co_image_decode(out, &want, scratch->image, bytes->at, bytes->n, name);
}

co_status co_dataset_draw(const co_dataset *dataset, float *out, uint64_t i,
                          const co_augment_place *place, co_data_scratch *scratch)
{
    const co_shape *shape = dataset->framed ? &dataset->shape : &dataset->info.shape;
    const size_t size = (size_t)co_shape_count(shape);
    const bool augmented = place && dataset->augment.n;
    uint8_t *block[3] = {NULL};
    co_bytes bytes;

    CO_TRY(dataset->ops->read(dataset->self, &bytes, &scratch->stored, i));
    if (dataset->framed || augmented) {
        CO_TRY(co_buffer_reserve(&block[0], &scratch->pixels, 3 * size));
        block[1] = block[0] + size;
        block[2] = block[1] + size;
    }
    if (dataset->framed) {
        CO_TRY(draw_frame(block[2], dataset, &bytes, i, augmented ? place : NULL, scratch));
        bytes.at = block[2];
    }
    if (augmented)
        bytes.at = co_augment_bytes(&dataset->augment, bytes.at, block, shape, place);
    co_resize_apply(out, &dataset->resize, bytes.at, dataset->table);
    if (augmented)
        co_augment_floats(&dataset->augment, out, &dataset->shape, place);
    return CO_OK;
}

co_status co_dataset_read(const co_dataset *dataset, float *out, uint64_t i)
{
    co_data_scratch scratch = {0};
    co_status st = co_dataset_draw(dataset, out, i, NULL, &scratch);

    co_data_scratch_free(&scratch);
    return st;
}

void co_data_scratch_free(co_data_scratch *scratch)
{
    co_image_scratch_destroy(scratch->image);
    co_buffer_free(&scratch->stored);
    co_buffer_free(&scratch->pixels);
    *scratch = (co_data_scratch){0};
}
