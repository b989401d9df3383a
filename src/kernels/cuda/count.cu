/*
 * count.cu - loss, samples that are right, and metrics of a batch, as src/model/metrics.c and
 * src/metrics have them. Counts are integers, so their sums do not depend on the order.
 */
#include "kernels/cuda/count.h"

#include <math.h>

#include "kernels/cuda/block_sums.h"
#include "kernels/cuda/grid.h"

#define COUNT_LAST 5 /* a place after all that are counted */

static inline bool count_agrees(float logit, float target)
{
    return logit == logit && (logit > 0) == (target >= 0.5F);
}

/* How many of a lane's classes come before the label, whose own logit comes last if it is NaN; many
   where the row does not count. */
static inline float count_higher(const float *x, int32_t right, uint32_t lane,
                                 const cuda_count *arg)
{
    const uint32_t label = right < 0 ? 0 : (uint32_t)right;
    uint32_t higher = x[label] != x[label] && lane == 0 ? arg->width : 0;

    if (right < 0)
        return COUNT_LAST;
    for (uint32_t c = lane; c < arg->width; c += arg->lanes)
        higher += x[c] > x[label] || (c < label && x[c] == x[label]);
    return (float)higher;
}

static inline float count_wrong(const float *x, const float *target, uint32_t lane,
                                const cuda_count *arg)
{
    uint32_t wrong = 0;

    for (uint32_t c = lane; c < arg->width; c += arg->lanes)
        wrong += !count_agrees(x[c], target[c]);
    return (float)wrong;
}

/* Labels of classes: by the place of the right one; labels that are there or not: if all agree. */
KERNEL(count_right, cuda_count)
{
    SHARED float place[CUDA_BLOCK];
    const uint32_t rows = CUDA_BLOCK / arg.lanes;

    for (uint32_t first = BLOCK * rows; first < arg.rows; first += BLOCKS * rows) {
        PHASE {
            const uint32_t row = first + THREAD / arg.lanes, lane = THREAD % arg.lanes;
            const size_t at = (size_t)row * arg.width;

            place[THREAD] = 0;
            if (row < arg.rows)
                place[THREAD] = arg.label
                                    ? count_higher(arg.output + at, arg.label[row], lane, &arg)
                                    : count_wrong(arg.output + at, arg.target + at, lane, &arg);
        }
        block_sum(place, arg.lanes);
        PHASE {
            if (THREAD % arg.lanes > 0 || first + THREAD / arg.lanes >= arg.rows)
                continue;
            if (place[THREAD] == 0)
                ATOMIC_ADD_64(arg.correct, 1);
            if (place[THREAD] < COUNT_LAST && arg.label)
                ATOMIC_ADD_64(arg.correct5, 1);
        }
    }
}

/* One block. */
KERNEL(count_loss, cuda_count)
{
    SHARED double sum[CUDA_BLOCK], counted[CUDA_BLOCK];

    PHASE {
        sum[THREAD] = counted[THREAD] = 0;
        for (uint32_t i = THREAD; i < arg.rows / arg.positions; i += THREADS)
            sum[THREAD] += (double)arg.loss[i];
        for (uint32_t row = THREAD; row < arg.rows; row += THREADS)
            counted[THREAD] += arg.label && arg.label[row] < 0 ? 0 : 1;
    }
    block_sum_pairs(sum, counted, 1);
    PHASE {
        if (THREAD > 0)
            continue;
        *arg.loss_sum = sum[0] * (double)arg.positions;
        *arg.count = (uint64_t)counted[0];
    }
}

static inline double count_metric(cuda_metric metric, float output, float target)
{
    const double error = (double)output - (double)target;

    if (metric == CUDA_AGREES)
        return count_agrees(output, target) ? 1 : 0;
    return metric == CUDA_MAE ? fabs(error) : error * error;
}

/* One block. */
KERNEL(count_metrics, cuda_metric_sums)
{
    SHARED co_sum part[CUDA_BLOCK];

    PHASE {
        co_sum sum = {0, 0};

        for (size_t i = THREAD; i < arg.n; i += THREADS)
            co_sum_add(&sum, count_metric(arg.metric, arg.output[i], arg.target[i]));
        part[THREAD] = sum;
    }
    for (uint32_t half = CUDA_BLOCK / 2; half > 0; half /= 2)
        PHASE
            if (THREAD < half)
                co_sum_join(&part[THREAD], &part[THREAD + half]);
    PHASE {
        if (THREAD > 0)
            continue;
        co_sum_add(&arg.sums[0], (double)arg.n);
        co_sum_join(&arg.sums[1], &part[0]);
    }
}
