/*
 * read_sample.c - from a sample's stored bytes to the floats that a network gets.
 *
 * Stored bytes -> decoded, or resampled if the size differs -> augmented as bytes -> normalised by
 * a table -> augmented as floats.
 */
#include <string.h>

#include "core/mem.h"
#include "data/dataset_internal.h"

/* Read the stored bytes; a sample that is not encoded must have the data set's size. */
static co_status read_stored(co_bytes *out, const co_dataset *data, uint64_t i,
                             co_data_scratch *scratch)
{
    const size_t size = (size_t)co_shape_count(&data->info.shape);
    char name[CO_DATASET_NAME];

    CO_TRY(co_dataset_stored_sample(out, data, &scratch->stored, i));
    if (data->info.encoded || (out->at && out->n >= size))
        return CO_OK;
    co_dataset_sample_name(data, name, sizeof(name), i);
    return co_fail(CO_E_DATA, "%s: %zu bytes; a sample has %zu", name, out->at ? out->n : 0, size);
}

/* The box to take from an image of this size. */
static co_status read_box(co_image_box *out, const co_dataset *data, int64_t height, int64_t width,
                          const co_augment_place *place, const char *name)
{
    if (!place || data->augment.n_box == 0)
        return co_frame_box(out, &data->frame, height, width, name);
    co_augment_box(&data->augment, out, height, width, place);
    return CO_OK;
}

/* How to decode an image, without the box. Returns how many augmentations of bytes this includes;
   if all of them, decoding gives floats. */
static size_t read_want(co_image_want *out, const co_dataset *data, const co_augment_place *place,
                        bool stream)
{
    size_t done = 0;

    *out = (co_image_want){.channels = data->shape.dim[0],
                           .height = data->shape.dim[1],
                           .width = data->shape.dim[2],
                           .scaled = data->scaled};
    if (place)
        done = co_augment_mirrors(&out->mirror, &data->augment, place);
    if (!place || done == data->augment.n_bytes)
        out->table = data->table;
    out->stream = stream && (!place || data->augment.n_box + done == data->augment.n);
    return done;
}

/* Decode or resample the box to (C, H, W): to floats if want->table is set, else to bytes. */
static co_status read_frame(void *out, co_image_want *want, const co_dataset *data,
                            const co_bytes *bytes, uint64_t i, const co_augment_place *place,
                            co_data_scratch *scratch)
{
    const co_shape *stored = &data->info.shape;
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
        CO_TRY(read_box(&want->box, data, stored->dim[1], stored->dim[2], place, name));
        return co_image_resample(out, want, &pixels, scratch->image);
    }
    CO_TRY(co_image_probe(&image, bytes->at, bytes->n, name));
    CO_TRY(read_box(&want->box, data, (int64_t)image.height, (int64_t)image.width, place, name));
    return co_image_decode(out, want, scratch->image, bytes->at, bytes->n, name);
}

/* Of field k, if it is the class of the sample; positions of a sequence may have -1. */
static co_status read_check_class(const co_dataset *dataset, const void *out, int k, uint64_t i)
{
    const co_field *field = &dataset->field[k];
    int32_t label;

    if (field->dtype != CO_I32 || field->shape.ndim != 0 ||
        strcmp(field->name, CO_FIELD_LABEL) != 0)
        return CO_OK;
    memcpy(&label, out, sizeof(label));
    return co_dataset_check_label(dataset, label, i);
}

static co_status read_field(const co_dataset *dataset, void *out, int k, uint64_t i)
{
    CO_PLUGIN_TRY(&co_dataset_plugins, dataset->ops, field, (dataset->self, out, k, i));
    return read_check_class(dataset, out, k, i);
}

co_status co_dataset_draw(const co_dataset *dataset, float *out, uint64_t i,
                          const co_augment_place *place, co_data_scratch *scratch)
{
    const co_shape *shape = dataset->framed ? &dataset->shape : &dataset->info.shape;
    const size_t size = (size_t)co_shape_count(shape);
    uint8_t *block[3] = {NULL};
    co_image_want want = {0};
    size_t done = 0;
    co_bytes bytes;

    if (!co_dataset_has_images(dataset)) {
        scratch->bytes += (size_t)co_shape_count(&dataset->shape) * sizeof(float);
        return read_field(dataset, out, 0, i);
    }
    if (dataset->augment.n == 0)
        place = NULL;
    CO_TRY(read_stored(&bytes, dataset, i, scratch));
    scratch->bytes += bytes.n;
    if (dataset->framed)
        done = read_want(&want, dataset, place, scratch->stream);
    if (!want.table && (dataset->framed || place)) {
        CO_TRY(co_buffer_reserve(&block[0], &scratch->pixels, 3 * size));
        block[1] = block[0] + size;
        block[2] = block[1] + size;
    }
    if (dataset->framed) {
        CO_TRY(read_frame(want.table ? (void *)out : block[2], &want, dataset, &bytes, i, place,
                          scratch));
        bytes.at = block[2];
    }
    if (place && !want.table)
        bytes.at = co_augment_bytes(&dataset->augment, bytes.at, block, shape, place, done);
    if (!want.table)
        co_resize_apply(out, &dataset->resize, bytes.at, dataset->table);
    if (place)
        co_augment_floats(&dataset->augment, out, &dataset->shape, place);
    return CO_OK;
}

co_status co_dataset_draw_field(const co_dataset *dataset, void *out, int k,
                                const co_augment_place *place)
{
    if (!dataset->drawn)
        return read_field(dataset, out, k, place->sample);
    CO_PLUGIN_TRY(&co_dataset_plugins, dataset->ops, draw,
                  (dataset->self, out, k, place->sample, place->seed, place->epoch));
    return read_check_class(dataset, out, k, place->sample);
}

static co_status read_check_place(const co_dataset *dataset, uint64_t i)
{
    if (i < co_dataset_count(dataset))
        return CO_OK;
    return co_fail(CO_E_USAGE, "there is no sample %llu; the data set has %llu",
                   (unsigned long long)i, (unsigned long long)co_dataset_count(dataset));
}

co_status co_dataset_read_field(const co_dataset *dataset, void *out, int k, uint64_t i)
{
    int n = 0;

    while (n < CO_MAX_FIELDS && dataset->field[n].name)
        n++;
    if (k < 0 || k >= n)
        return co_fail(CO_E_USAGE, "there is no field %d; the data set has %d", k, n);
    CO_TRY(read_check_place(dataset, i));
    if (!co_dataset_has_images(dataset))
        return read_field(dataset, out, k, i);
    return k == 0 ? co_dataset_read(dataset, out, i) : co_dataset_take_label(out, dataset, i);
}

co_status co_dataset_read(const co_dataset *dataset, float *out, uint64_t i)
{
    co_data_scratch scratch = {0};
    co_status st;

    CO_TRY(read_check_place(dataset, i));
    if (dataset->field[0].dtype != CO_F32)
        return co_fail(CO_E_USAGE, "samples of %s; read them by field",
                       co_dtype_name(dataset->field[0].dtype));
    st = co_dataset_draw(dataset, out, i, NULL, &scratch);
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
