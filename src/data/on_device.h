/* on_device.h - a data set's images brought to a device, which then draws the batches itself. */
#ifndef CO_DATA_ON_DEVICE_H
#define CO_DATA_ON_DEVICE_H

#include "data/data.h"
#include "device/images.h"

#define CO_ON_DEVICE_WHY 512

/* Why the device cannot hold the data set, or cannot do to its samples what the config wants;
   false: it can, with so many bytes. Says nothing of damaged samples. */
bool co_dataset_stays_on_host(char why[CO_ON_DEVICE_WHY], size_t *bytes, const co_dataset *dataset,
                              const co_device *device);
/* Reads all samples. `seed` as in co_loader_options. CO_E_DATA: a sample cannot be read;
 * CO_E_NOMEM.
 */
co_status co_dataset_to_device(co_images **out, const co_dataset *dataset, co_device *device,
                               uint64_t seed);

#endif
