/* images.h - the images of a data set in the memory of a device that draws batches of them itself.
 */
#ifndef CO_DEVICE_IMAGES_H
#define CO_DEVICE_IMAGES_H

#include <cohort/ext/images.h>

#include "device/device.h"

/* Memory of the device is owned. */
typedef struct co_images {
    co_device *device; /* borrowed */
    uint64_t seed;     /* of what is drawn */
    co_images_recipe *recipe;
    uint8_t *pixels;
    int32_t *label;
    float *table;
} co_images;

bool co_device_draws_images(const co_device *device);
/* `count` samples, whose indices are at `sample`, to `out`, and their labels to `out_label`, unless
   that is NULL; all of the device. */
void co_images_draw(const co_images *images, co_queue *queue, const uint32_t *sample,
                    uint64_t count, uint64_t epoch, float *out, int32_t *out_label);
/* No draw is under way. Takes NULL. */
void co_images_destroy(co_images *images);

#endif
