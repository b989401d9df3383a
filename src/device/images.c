/* images.c - batches drawn on a device, and the memory that they are drawn from. */
#include "device/images.h"

#include "core/mem.h"

bool co_device_draws_images(const co_device *device)
{
    return device && device->ops->images;
}

void co_images_draw(const co_images *images, co_queue *queue, const uint32_t *sample,
                    uint64_t count, uint64_t epoch, float *out, int32_t *out_label)
{
    const co_images_batch batch = {.recipe = images->recipe,
                                   .pixels = images->pixels,
                                   .label = images->label,
                                   .table = images->table,
                                   .sample = sample,
                                   .out = out,
                                   .out_label = out_label,
                                   .seed = images->seed,
                                   .epoch = epoch,
                                   .n = (uint32_t)count};

    images->device->ops->images->draw(queue, &batch);
}

void co_images_destroy(co_images *images)
{
    if (!images)
        return;
    co_device_free(images->device, images->recipe, CO_MEMORY_DEVICE);
    co_device_free(images->device, images->pixels, CO_MEMORY_DEVICE);
    co_device_free(images->device, images->label, CO_MEMORY_DEVICE);
    co_device_free(images->device, images->table, CO_MEMORY_DEVICE);
    co_free(images);
}
