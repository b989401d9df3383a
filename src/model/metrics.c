/* metrics.c - loss and accuracy. Counts are integers, so their sums do not depend on the order. */
#include "model/metrics.h"

#include <math.h>
#include <string.h>

#include "metrics/metrics.h"

#define METRICS_MAX_SHARDS 1024

static size_t metrics_rank_of(const float *score, size_t label, size_t classes)
{
    size_t higher = 0;

    if (isnan(score[label]))
        return classes;
    for (size_t c = 0; c < classes; c++)
        higher += score[c] > score[label] || (c < label && score[c] == score[label]);
    return higher;
}

void co_metrics_count(co_result *out, const float *score, const float *loss, const int32_t *label,
                      uint64_t n, size_t classes)
{
    memset(out, 0, sizeof(*out));
    out->count = n;
    for (uint64_t i = 0; i < n; i++) {
        const size_t place =
            label ? metrics_rank_of(score + i * classes, (size_t)label[i], classes) : classes;

        out->loss_sum += (double)loss[i];
        out->correct += place == 0;
        out->correct5 += place < 5;
    }
}

void co_metrics_count_binary(co_result *out, const float *logit, const float *loss,
                             const float *target, uint64_t n, size_t outputs)
{
    memset(out, 0, sizeof(*out));
    out->count = n;
    for (uint64_t i = 0; i < n; i++, logit += outputs, target += outputs) {
        bool right = true;

        for (size_t k = 0; k < outputs; k++)
            right = right && co_metric_agrees(logit[k], target[k]);
        out->loss_sum += (double)loss[i];
        out->correct += right;
    }
}

void co_metrics_confuse(int64_t *confusion, const float *score, const int32_t *label, uint64_t n,
                        size_t classes)
{
    for (uint64_t i = 0; i < n; i++) {
        const float *row = score + i * classes;
        const size_t best = co_metric_class(row, classes);

        if (best < classes)
            confusion[(size_t)label[i] * classes + best]++;
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
