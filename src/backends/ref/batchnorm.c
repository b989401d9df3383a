/*
 * batchnorm.c - each channel to mean 0 and variance 1 over the batch, then scale and shift.
 *
 *   z[e]  = (x[e] - mean) / sqrt(var + eps)        e over the M = N H W elements of one channel
 *   y[e]  = w z[e] + b
 *
 * Training takes mean = sum_e x[e] / M and var = sum_e (x[e] - mean)^2 / M, and moves the running
 * statistics towards mean and var M / (M - 1). Evaluation takes the running statistics.
 *
 *   db    = sum_e dy[e]
 *   dw    = sum_e dy[e] z[e]
 *   dx[e] = w / sqrt(var + eps) (dy[e] - db / M - z[e] dw / M)
 *
 * The last two terms come from mean and var, which depend on every x of the channel. With
 * over_ranks (SyncBatchNorm) M and the sums in mean, var and dx are those of all ranks; dw and db
 * are this rank's part, as every gradient is.
 * (Ioffe & Szegedy, arXiv:1502.03167.)
 */
#include <math.h>

#include "backends/ref/ref.h"

/* What backward needs to recompute z: mean and 1 / sqrt(var + eps), kept for each channel. */
typedef struct batchnorm_stat {
    double mean, inv_std;
} batchnorm_stat;

typedef struct batchnorm_size {
    int64_t n, c, plane; /* plane: H W, or 1 for (N, F) */
} batchnorm_size;

static batchnorm_size batchnorm_sizes(const co_call *call)
{
    const co_shape *s = &call->in[0]->shape;

    return (batchnorm_size){s->dim[0], s->dim[1], s->ndim == 4 ? s->dim[2] * s->dim[3] : 1};
}

/* Index of element e of a channel in a tensor (N, C, H, W). */
static inline int64_t batchnorm_at(const batchnorm_size *s, int64_t channel, int64_t e)
{
    return (e / s->plane * s->c + channel) * s->plane + e % s->plane;
}

/* Sums over the batch become those over the batches of all ranks. */
static co_status batchnorm_add_ranks(double *v, size_t n, const co_call *call, const co_run *run)
{
    for (size_t i = 0; run->phantom && i < n; i++)
        v[i] = 0;
    return call->over_ranks ? run->reduce(run->reduce_arg, v, n) : CO_OK;
}

/* *count = M, mean[c] and var[c] (C each) of the batch. */
static co_status batchnorm_measure(double *count, double *mean, double *var, const co_call *call,
                                   const co_run *run)
{
    const batchnorm_size s = batchnorm_sizes(call);
    const float *x = call->in[0]->data;

    *count = (double)(s.n * s.plane);
    CO_TRY(batchnorm_add_ranks(count, 1, call, run));
    for (int64_t c = 0; c < s.c; c++) {
        mean[c] = 0;
        for (int64_t e = 0; e < s.n * s.plane; e++)
            mean[c] += x[batchnorm_at(&s, c, e)];
    }
    CO_TRY(batchnorm_add_ranks(mean, (size_t)s.c, call, run));
    for (int64_t c = 0; c < s.c; c++) {
        mean[c] /= *count;
        var[c] = 0;
        for (int64_t e = 0; e < s.n * s.plane; e++) {
            double d = x[batchnorm_at(&s, c, e)] - mean[c];

            var[c] += d * d;
        }
    }
    CO_TRY(batchnorm_add_ranks(var, (size_t)s.c, call, run));
    for (int64_t c = 0; c < s.c; c++)
        var[c] /= *count;
    return CO_OK;
}

static batchnorm_stat batchnorm_recall(const co_call *call, int64_t channel)
{
    const co_batchnorm_attr *a = call->attr;
    const float *mean = call->param[2].data, *var = call->param[3].data;

    return (batchnorm_stat){mean[channel], 1 / sqrt(var[channel] + a->eps)};
}

/* The statistics for forward and backward, from the batch; updates the running ones. Where no rank
   has samples for this part of a step they stay as they are. */
static co_status batchnorm_take(batchnorm_stat *stat, co_call *call, const co_run *run)
{
    const co_batchnorm_attr *a = call->attr;
    const batchnorm_size s = batchnorm_sizes(call);
    float *running_mean = call->param[2].data, *running_var = call->param[3].data;
    double *mean = call->scratch, *var = mean + s.c, count;

    CO_TRY(batchnorm_measure(&count, mean, var, call, run));
    for (int64_t c = 0; c < s.c; c++) {
        const double unbiased = count > 1 ? var[c] * count / (count - 1) : var[c];

        stat[c] = batchnorm_recall(call, c);
        if (count == 0)
            continue;
        running_mean[c] = (float)((1 - a->momentum) * running_mean[c] + a->momentum * mean[c]);
        running_var[c] = (float)((1 - a->momentum) * running_var[c] + a->momentum * unbiased);
        stat[c] = (batchnorm_stat){mean[c], 1 / sqrt(var[c] + a->eps)};
    }
    *(double *)(stat + s.c) = count;
    return CO_OK;
}

static co_status batchnorm_plan(co_call *call)
{
    const size_t channels = (size_t)call->in[0]->shape.dim[1];

    if (call->training) {
        call->workspace_bytes = channels * sizeof(batchnorm_stat) + sizeof(double); /* M behind */
        call->scratch_bytes = 2 * channels * sizeof(double);
    }
    return CO_OK;
}

static co_status batchnorm_forward(co_call *call, const co_run *run)
{
    const batchnorm_size s = batchnorm_sizes(call);
    const float *x = call->in[0]->data, *w = call->param[0].data, *b = call->param[1].data;
    float *y = call->out[0]->data;

    if (call->training)
        CO_TRY(batchnorm_take(call->workspace, call, run));
    for (int64_t c = 0; c < s.c; c++) {
        const batchnorm_stat stat =
            call->training ? ((batchnorm_stat *)call->workspace)[c] : batchnorm_recall(call, c);

        for (int64_t e = 0; e < s.n * s.plane; e++) {
            int64_t at = batchnorm_at(&s, c, e);

            y[at] = (float)(w[c] * (x[at] - stat.mean) * stat.inv_std + b[c]);
        }
    }
    return CO_OK;
}

static co_status batchnorm_backward(co_call *call, const co_run *run)
{
    const batchnorm_size s = batchnorm_sizes(call);
    const float *x = call->in[0]->data, *w = call->param[0].data, *dy = call->grad_out[0]->data;
    const batchnorm_stat *stat = call->workspace;
    const double count = *(const double *)(stat + s.c);
    float *dx = ref_data(call->grad_in[0]);
    float *dw = call->grad_param[0].data, *db = call->grad_param[1].data;
    double *sum_dy = call->scratch, *sum_dy_z = sum_dy + s.c; /* (C) each */

    for (int64_t c = 0; c < s.c; c++) {
        sum_dy[c] = sum_dy_z[c] = 0;
        for (int64_t e = 0; e < s.n * s.plane; e++) {
            int64_t at = batchnorm_at(&s, c, e);

            sum_dy[c] += dy[at];
            sum_dy_z[c] += dy[at] * (x[at] - stat[c].mean) * stat[c].inv_std;
        }
        ref_put(&dw[c], sum_dy_z[c], run);
        ref_put(&db[c], sum_dy[c], run);
    }
    CO_TRY(batchnorm_add_ranks(sum_dy, 2 * (size_t)s.c, call, run));
    for (int64_t c = 0; dx && c < s.c; c++)
        for (int64_t e = 0; e < s.n * s.plane; e++) {
            int64_t at = batchnorm_at(&s, c, e);
            double z = (x[at] - stat[c].mean) * stat[c].inv_std;
            double slope = dy[at] - (sum_dy[c] + z * sum_dy_z[c]) / count;

            dx[at] = run->phantom ? 0 : (float)(w[c] * stat[c].inv_std * slope);
        }
    return CO_OK;
}

const co_kernel co_ref_batchnorm = {
    .op = "batchnorm",
    .plan = batchnorm_plan,
    .forward = batchnorm_forward,
    .backward = batchnorm_backward,
};
