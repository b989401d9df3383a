/* mock_metrics.h - what the mock device counts itself: some of the metrics, not all. */
#ifndef TESTS_DEVICE_MOCK_METRICS_H
#define TESTS_DEVICE_MOCK_METRICS_H

#include <cohort/ext/device.h>

/* Loss and hits; label_accuracy, mae and rmse. Without it the device counts nothing. */
void mock_use_metrics(co_device *device);

#endif
