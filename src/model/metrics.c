/* metrics.c - loss and accuracy. Counts are integers, so their sums do not depend on the order. */
#include "model/metrics.h"

#include <math.h>

#include "metrics/metrics.h"

#define METRICS_MAX_SHARDS 1024

static size_t metrics_rank_of(const float *score, size_t label, size_t classes)
{
    const float own = score[label];
    uint32_t higher = 0; /* as wide as a float, so that the loops run in vectors */

    if (isnan(own))
        return classes;
    for (size_t c = 0; c < label; c++)
        higher += score[c] >= own;
    for (size_t c = label + 1; c < classes; c++)
        higher += score[c] > own;
    return higher;
}

static void metrics_count_labels(co_result *out, const co_metric_batch *batch)
{
    const size_t classes = batch->form.outputs;

    for (uint64_t i = 0; i < batch->n; i++) {
        size_t place;

        if (batch->label[i] < 0) {
            out->count--;
            continue;
        }
        place = metrics_rank_of(batch->output + i * classes, (size_t)batch->label[i], classes);
        out->correct += place == 0;
        out->correct5 += place < 5;
    }
}

void co_metrics_count_places(co_result *out, const co_metric_batch *batch, const int32_t *place)
{
    *out = (co_result){.count = batch->n, .loss_sum = co_metric_sum_loss(batch)};
    for (uint64_t i = 0; i < batch->n; i++) {
        out->count -= place[i] < 0;
        out->correct += place[i] == 0;
        out->correct5 += place[i] >= 0 && place[i] < 5;
    }
}

static void metrics_count_binary(co_result *out, const co_metric_batch *batch)
{
    const size_t outputs = batch->form.outputs;

    for (uint64_t i = 0; i < batch->n; i++) {
        const float *logit = batch->output + i * outputs, *target = batch->target + i * outputs;
        bool right = true;

        for (size_t k = 0; k < outputs; k++)
            right = right && co_metric_agrees(logit[k], target[k]);
        out->correct += right;
    }
}

void co_metrics_count(co_result *out, const co_metric_batch *batch)
{
    *out = (co_result){.count = batch->n, .loss_sum = co_metric_sum_loss(batch)};
    if (batch->form.target == CO_TARGET_BINARY)
        metrics_count_binary(out, batch);
    else if (batch->label)
        metrics_count_labels(out, batch);
}

void co_metrics_confuse(int64_t *confusion, const co_metric_batch *batch)
{
    const size_t classes = batch->form.outputs;

    for (uint64_t i = 0; i < batch->n; i++) {
        const size_t best = co_metric_class(batch->output + i * classes, classes);

        if (best < classes && batch->label[i] >= 0)
            confusion[(size_t)batch->label[i] * classes + best]++;
    }
}

void co_metrics_add(co_result *sum, const co_result *part)
{
    sum->count += part->count;
    sum->loss_sum += part->loss_sum;
    sum->correct += part->correct;
    sum->correct5 += part->correct5;
}

co_status co_metrics_reduce(co_result *inout, co_comm *comm)
{
    int64_t count[3] = {(int64_t)inout->count, (int64_t)inout->correct, (int64_t)inout->correct5};

    CO_TRY(co_comm_allreduce(comm, count, count, 3, CO_I64, CO_SUM));
    CO_TRY(co_comm_allreduce(comm, &inout->loss_sum, &inout->loss_sum, 1, CO_F64, CO_SUM));
    inout->count = (uint64_t)count[0];
    inout->correct = (uint64_t)count[1];
    inout->correct5 = (uint64_t)count[2];
    return CO_OK;
}

co_status co_metrics_reduce_shards(co_result *out, const co_result *shard, int n, co_comm *comm)
{
    double loss[METRICS_MAX_SHARDS] = {0}, sum = 0;

    for (int s = 0; s < n; s++)
        loss[s] = shard[s].loss_sum;
    /* exact, because all but one of the addends are zero */
    CO_TRY(co_comm_allreduce(comm, loss, loss, (size_t)n, CO_F64, CO_SUM));
    for (int s = 0; s < n; s++)
        sum += loss[s];
    CO_TRY(co_metrics_reduce(out, comm));
    out->loss_sum = sum;
    return CO_OK;
}
