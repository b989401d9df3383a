/* count.c - what a GPU counts of a step: the table of ext/metric.h. */
#include <cohort/train.h>

#include "device/cuda/internal.h"
#include "device/cuda/lanes.h"
#include "kernels/cuda/count.h"

static void count_batch(co_queue *queue, struct co_result *out, const co_metric_batch *batch)
{
    cuda_count args = {.output = batch->output,
                       .target = batch->target,
                       .loss = batch->loss,
                       .label = batch->label,
                       .count = &out->count,
                       .correct = &out->correct,
                       .correct5 = &out->correct5,
                       .loss_sum = &out->loss_sum,
                       .rows = (uint32_t)batch->n,
                       .positions = batch->form.positions ? (uint32_t)batch->form.positions : 1,
                       .width = (uint32_t)batch->form.outputs};

    args.lanes = cuda_lanes(args.width);
    cuda_launch_blocks(queue, CUDA_count_loss, 1, &args);
    if (batch->label || batch->form.target == CO_TARGET_BINARY)
        cuda_launch_blocks(queue, CUDA_count_right, cuda_row_blocks(args.rows, args.lanes), &args);
}

static void count_metric(co_queue *queue, co_sum *sums, const co_metric_batch *batch,
                         cuda_metric metric)
{
    cuda_launch_blocks(queue, CUDA_count_metrics, 1,
                       &(cuda_metric_sums){.sums = sums,
                                           .output = batch->output,
                                           .target = batch->target,
                                           .n = (size_t)batch->n * batch->form.outputs,
                                           .metric = metric});
}

static void count_label_accuracy(co_queue *queue, co_sum *sums, const co_metric_batch *batch)
{
    count_metric(queue, sums, batch, CUDA_AGREES);
}

static void count_mae(co_queue *queue, co_sum *sums, const co_metric_batch *batch)
{
    count_metric(queue, sums, batch, CUDA_MAE);
}

static void count_rmse(co_queue *queue, co_sum *sums, const co_metric_batch *batch)
{
    count_metric(queue, sums, batch, CUDA_RMSE);
}

static const co_device_metric count_list[] = {
    {"label_accuracy", count_label_accuracy},
    {"mae", count_mae},
    {"rmse", count_rmse},
    {NULL, NULL},
};

const co_device_metrics cuda_metrics = {count_batch, count_list};
