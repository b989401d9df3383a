/*
 * registry.c - every metric by name.
 */
#include "metrics/metrics.h"

const co_metric *const co_metrics[] = {
#define METRIC(name) &co_metric_##name,
#include "metrics/list.h"
#undef METRIC
    NULL,
};

const co_plugins co_metric_plugins = {"metric", "metrics", co_metrics, 0, NULL};

CO_PLUGIN_CHECK(co_metric, self_size);
