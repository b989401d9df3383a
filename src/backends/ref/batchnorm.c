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
 * The last two terms come from mean and var, which depend on every x of the channel.
 * (Ioffe & Szegedy, arXiv:1502.03167.)
 */
#include <math.h>

#include "backends/ref/ref.h"

/* What backward needs to make z again: mean and 1 / sqrt(var + eps). Kept for each channel. */
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

/* Statistics of the batch, which also move the running ones. */
static batchnorm_stat batchnorm_measure(co_call *call, int64_t channel)
{
    const co_batchnorm_attr *a = call->attr;
    const batchnorm_size s = batchnorm_sizes(call);
    const int64_t count = s.n * s.plane;
    const float *x = call->in[0]->data;
    float *running_mean = (float *)call->param[2].data + channel;
    float *running_var = (float *)call->param[3].data + channel;
    double mean = 0, var = 0, unbiased;

    for (int64_t e = 0; e < count; e++)
        mean += x[batchnorm_at(&s, channel, e)];
    mean /= (double)count;
    for (int64_t e = 0; e < count; e++) {
        double d = x[batchnorm_at(&s, channel, e)] - mean;

        var += d * d;
    }
    var /= (double)count;
    unbiased = count > 1 ? var * (double)count / (double)(count - 1) : var;
    *running_mean = (float)((1 - a->momentum) * *running_mean + a->momentum * mean);
    *running_var = (float)((1 - a->momentum) * *running_var + a->momentum * unbiased);
    return (batchnorm_stat){mean, 1 / sqrt(var + a->eps)};
}

static batchnorm_stat batchnorm_recall(const co_call *call, int64_t channel)
{
    const co_batchnorm_attr *a = call->attr;
    const float *mean = call->param[2].data, *var = call->param[3].data;

    return (batchnorm_stat){mean[channel], 1 / sqrt(var[channel] + a->eps)};
}

static co_status batchnorm_plan(co_call *call)
{
    if (call->training)
        call->workspace_bytes = (size_t)call->in[0]->shape.dim[1] * sizeof(batchnorm_stat);
    return CO_OK;
}

static co_status batchnorm_forward(co_call *call, const co_run *run)
{
    const batchnorm_size s = batchnorm_sizes(call);
    const float *x = call->in[0]->data, *w = call->param[0].data, *b = call->param[1].data;
    batchnorm_stat *kept = call->workspace; /* (C) */
    float *y = call->out[0]->data;

    (void)run;
    for (int64_t c = 0; c < s.c; c++) {
        batchnorm_stat stat;

        if (call->training)
            stat = kept[c] = batchnorm_measure(call, c);
        else
            stat = batchnorm_recall(call, c);
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
    const double count = (double)(s.n * s.plane);
    const float *x = call->in[0]->data, *w = call->param[0].data, *dy = call->grad_out[0]->data;
    const batchnorm_stat *stat = call->workspace;
    float *dx = ref_data(call->grad_in[0]);
    float *dw = call->grad_param[0].data, *db = call->grad_param[1].data;

    for (int64_t c = 0; c < s.c; c++, stat++) {
        double sum_dy = 0, sum_dy_z = 0;

        for (int64_t e = 0; e < s.n * s.plane; e++) {
            int64_t at = batchnorm_at(&s, c, e);

            sum_dy += dy[at];
            sum_dy_z += dy[at] * (x[at] - stat->mean) * stat->inv_std;
        }
        for (int64_t e = 0; dx && e < s.n * s.plane; e++) {
            int64_t at = batchnorm_at(&s, c, e);
            double z = (x[at] - stat->mean) * stat->inv_std;

            dx[at] = (float)(w[c] * stat->inv_std * (dy[at] - (sum_dy + z * sum_dy_z) / count));
        }
        ref_put(&dw[c], sum_dy_z, run);
        ref_put(&db[c], sum_dy, run);
    }
    return CO_OK;
}

const co_kernel co_ref_batchnorm = {
    .op = "batchnorm",
    .plan = batchnorm_plan,
    .forward = batchnorm_forward,
    .backward = batchnorm_backward,
};
