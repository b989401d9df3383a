/* mock_metrics.c - a worker counts with the host's loops. */
#include "device/mock_metrics.h"

#include "device/mock_queue.h"
#include "metrics/metrics.h"
#include "model/metrics.h"

typedef struct metrics_job {
    const co_metric *metric; /* NULL: loss and hits */
    void *out;
    co_metric_batch batch;
} metrics_job;

static const void *job_find(mock_memory *memory, const void *at)
{
    return at ? mock_memory_reach(memory, at) : NULL;
}

static co_status job_count(void *what, mock_memory *memory)
{
    metrics_job *job = what;
    co_metric_batch *batch = &job->batch;

    job->out = mock_memory_reach(memory, job->out);
    batch->loss = job_find(memory, batch->loss);
    batch->output = job_find(memory, batch->output);
    batch->target = job_find(memory, batch->target);
    batch->label = job_find(memory, batch->label);
    if (job->metric)
        job->metric->accumulate(job->out, batch);
    else
        co_metrics_count(job->out, batch);
    return CO_OK;
}

static void metrics_count(co_queue *queue, co_result *out, const co_metric_batch *batch)
{
    const metrics_job job = {NULL, out, *batch};

    (void)mock_enqueue(queue, job_count, &job, sizeof(job));
}

#define METRICS_ACCUMULATE(name)                                                                   \
    static void metrics_##name(co_queue *queue, co_sum *sums, const co_metric_batch *batch)        \
    {                                                                                              \
        const metrics_job job = {&co_metric_##name, sums, *batch};                                 \
                                                                                                   \
        (void)mock_enqueue(queue, job_count, &job, sizeof(job));                                   \
    }
METRICS_ACCUMULATE(label_accuracy)
METRICS_ACCUMULATE(mae)
METRICS_ACCUMULATE(rmse)

static const co_device_metric metrics_list[] = {
    {"label_accuracy", metrics_label_accuracy},
    {"mae", metrics_mae},
    {"rmse", metrics_rmse},
    {NULL, NULL},
};

static const co_device_metrics metrics_all = {metrics_count, metrics_list};

void mock_use_metrics(co_device *device)
{
    ((mock_device *)device)->ops.metrics = &metrics_all;
}
