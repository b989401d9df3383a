/*
 * on_device.c - bytes and labels of all samples copied to a device, and what it has to do to them.
 *
 * What is on the device are the stored bytes: images of one size, as formats of pixels have them.
 */
#include "data/on_device.h"

#include <stdio.h>
#include <string.h>

#include "core/fs.h"
#include "core/mem.h"
#include "data/dataset_internal.h"

#define ON_DEVICE_CHUNK ((size_t)4 << 20) /* bytes that are copied at once */

static size_t on_device_sample(const co_dataset *dataset)
{
    return (size_t)co_shape_count(&dataset->info.shape);
}

/* ---- what the device has to do ---- */

static void on_device_take_box(co_images_recipe *out, const co_dataset *dataset)
{
    char name[CO_DATASET_NAME];
    co_image_box box = {0};

    out->boxed = 1;
    out->frame[0] = (int32_t)dataset->shape.dim[1];
    out->frame[1] = (int32_t)dataset->shape.dim[2];
    if (dataset->augment.n_box)
        return;
    co_dataset_sample_name(dataset, name, sizeof(name), 0);
    /* It fits: dataset_setup_frame has checked the one size that images have. */
    (void)co_frame_box(&box, &dataset->frame, out->stored[0], out->stored[1], name);
    out->box[0] = box.x;
    out->box[1] = box.y;
    out->box[2] = box.width;
    out->box[3] = box.height;
}

/* NULL: *out is complete. Else what is of the host alone. */
static const char *on_device_describe(co_images_recipe *out, const co_dataset *dataset)
{
    const co_shape *stored = &dataset->info.shape;
    const char *name = NULL;

    *out = (co_images_recipe){.channels = (int32_t)stored->dim[0]};
    for (int i = 0; i < 2; i++) {
        out->stored[i] = out->frame[i] = (int32_t)stored->dim[i + 1];
        out->to[i] = (int32_t)dataset->shape.dim[i + 1];
    }
    if (!co_augment_describe(out, &name, &dataset->augment))
        return name;
    if (dataset->framed)
        on_device_take_box(out, dataset);
    else if (dataset->resize.size.n && dataset->resize.mode != CO_RESIZE_PAD)
        return "resize without an augmentation";
    for (int i = 0; i < 2; i++)
        out->at[i] = (out->to[i] - out->frame[i]) / 2;
    return NULL;
}

bool co_dataset_stays_on_host(char why[CO_ON_DEVICE_WHY], size_t *bytes, const co_dataset *dataset,
                              const co_device *device)
{
    const char *what = NULL;
    co_images_recipe recipe;

    if (!co_device_draws_images(device))
        snprintf(why, CO_ON_DEVICE_WHY, "the device %s draws no batches", co_device_name(device));
    else if (!co_dataset_has_images(dataset))
        snprintf(why, CO_ON_DEVICE_WHY, "samples of %s are no images with a label",
                 co_dataset_name(dataset));
    else if (dataset->info.encoded)
        snprintf(why, CO_ON_DEVICE_WHY, "the host decodes JPEG and PNG files");
    else if ((what = on_device_describe(&recipe, dataset)) != NULL)
        snprintf(why, CO_ON_DEVICE_WHY, "the device has no %s", what);
    else if (co_mul_size(bytes, dataset->info.count, on_device_sample(dataset) + sizeof(int32_t)))
        snprintf(why, CO_ON_DEVICE_WHY, "the samples are more than any memory");
    else
        return false;
    return true;
}

/* ---- bringing it there ---- */

/* A block of the device with a copy of `bytes` of the host. */
static co_status on_device_put(void *out, co_device *device, co_queue *queue, const void *from,
                               size_t bytes)
{
    void *block = NULL;

    CO_TRY(co_device_alloc(&block, device, bytes, CO_MEMORY_DEVICE));
    memcpy(out, &block, sizeof(block));
    return co_queue_copy_now(queue, block, from, bytes);
}

static co_status on_device_put_tables(co_images *images, co_queue *queue, const co_dataset *dataset)
{
    const size_t channels = (size_t)dataset->info.shape.dim[0];
    float *table = co_calloc(channels, CO_LOOKUP_LEVELS * sizeof(*table));
    co_images_recipe recipe;
    co_status st;

    if (!table)
        return CO_E_NOMEM;
    for (size_t c = 0; c < channels; c++)
        memcpy(table + c * CO_LOOKUP_LEVELS, dataset->table[c].value,
               CO_LOOKUP_LEVELS * sizeof(*table));
    (void)on_device_describe(&recipe, dataset);
    st = on_device_put(&images->table, images->device, queue, table,
                       channels * CO_LOOKUP_LEVELS * sizeof(*table));
    if (st == CO_OK)
        st = on_device_put(&images->recipe, images->device, queue, &recipe, sizeof(recipe));
    co_free(table);
    return st;
}

static co_status on_device_put_labels(co_images *images, co_queue *queue, const co_dataset *dataset)
{
    const size_t count = (size_t)dataset->info.count;
    int32_t *label = co_calloc(count + 1, sizeof(*label));
    co_status st = label ? CO_OK : CO_E_NOMEM;

    for (size_t i = 0; i < count && st == CO_OK; i++)
        st = co_dataset_take_label(&label[i], dataset, i);
    if (st == CO_OK)
        st = on_device_put(&images->label, images->device, queue, label, count * sizeof(*label));
    co_free(label);
    return st;
}

static co_status on_device_read(uint8_t *to, const co_dataset *dataset, co_buffer *buffer,
                                uint64_t i)
{
    const size_t size = on_device_sample(dataset);
    char name[CO_DATASET_NAME];
    co_bytes bytes;

    CO_TRY(co_dataset_stored_sample(&bytes, dataset, buffer, i));
    if (bytes.at && bytes.n >= size) {
        memcpy(to, bytes.at, size);
        return CO_OK;
    }
    co_dataset_sample_name(dataset, name, sizeof(name), i);
    return co_fail(CO_E_DATA, "%s: %zu bytes; a sample has %zu", name, bytes.at ? bytes.n : 0,
                   size);
}

/* `chunk` has room for `room` samples. */
static co_status on_device_copy_pixels(const co_images *images, co_queue *queue,
                                       const co_dataset *dataset, uint8_t *chunk, uint64_t room)
{
    const size_t size = on_device_sample(dataset);
    const uint64_t count = dataset->info.count;
    co_buffer buffer = {0};
    co_status st = CO_OK;

    for (uint64_t i = 0; i < count && st == CO_OK; i += room) {
        const uint64_t n = count - i < room ? count - i : room;

        for (uint64_t k = 0; k < n && st == CO_OK; k++)
            st = on_device_read(chunk + k * size, dataset, &buffer, i + k);
        if (st == CO_OK)
            st = co_queue_copy_now(queue, images->pixels + i * size, chunk, (size_t)n * size);
    }
    co_buffer_free(&buffer);
    return st;
}

static co_status on_device_put_pixels(co_images *images, co_queue *queue, const co_dataset *dataset)
{
    const size_t size = on_device_sample(dataset);
    const uint64_t room = ON_DEVICE_CHUNK / size + 1;
    void *chunk = NULL, *pixels = NULL;
    co_status st;

    CO_TRY(co_device_alloc(&pixels, images->device, (size_t)dataset->info.count * size,
                           CO_MEMORY_DEVICE));
    images->pixels = pixels;
    CO_TRY(co_device_alloc(&chunk, images->device, (size_t)room * size, CO_MEMORY_PINNED));
    st = on_device_copy_pixels(images, queue, dataset, chunk, room);
    co_device_free(images->device, chunk, CO_MEMORY_PINNED);
    return st;
}

co_status co_dataset_to_device(co_images **out, const co_dataset *dataset, co_device *device,
                               uint64_t seed)
{
    co_images *images = co_calloc(1, sizeof(*images));
    co_queue *queue = NULL;
    co_status st;

    if (!images)
        return CO_E_NOMEM;
    images->device = device;
    images->seed = seed;
    st = co_queue_create(&queue, device);
    if (st == CO_OK)
        st = on_device_put_tables(images, queue, dataset);
    if (st == CO_OK)
        st = on_device_put_labels(images, queue, dataset);
    if (st == CO_OK)
        st = on_device_put_pixels(images, queue, dataset);
    co_queue_destroy(queue);
    if (st != CO_OK) {
        co_images_destroy(images);
        return st;
    }
    *out = images;
    return CO_OK;
}
