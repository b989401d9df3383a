/*
 * batchnorm.c - each channel to mean 0 and variance 1 over the batch, then scale and shift.
 *
 * Sums over one plane are floats in each lane; beyond it they are doubles.
 */
#include <math.h>

#include "backends/native/native.h"

/* Kept from forward to backward for each channel. */
typedef struct batchnorm_stat {
    float mean, inv_std;
} batchnorm_stat;

typedef struct batchnorm_size {
    int64_t n, c, plane, blocks, lanes;
} batchnorm_size;

static batchnorm_size batchnorm_sizes(const co_call *call)
{
    const co_tensor *in = call->in[0];

    return (batchnorm_size){in->shape.dim[0], in->shape.dim[1], native_count(in) / in->shape.dim[1],
                            native_blocks(in), native_choose()->lanes};
}

/* First vector of a channel's plane in block `b`. */
static inline int64_t batchnorm_at(const batchnorm_size *s, int64_t b, int64_t channel)
{
    return (b * s->c + channel) * s->plane * s->lanes;
}

/* Sum over the lanes of block `b` that hold samples. */
static double batchnorm_fold(const float *part, const batchnorm_size *s, int64_t b)
{
    double sum = 0;

    for (int64_t l = 0; l < s->lanes && b * s->lanes + l < s->n; l++)
        sum += (double)part[l];
    return sum;
}

static batchnorm_stat batchnorm_measure(const co_call *call, int64_t channel)
{
    const co_batchnorm_attr *a = call->attr;
    const batchnorm_size s = batchnorm_sizes(call);
    const double count = (double)(s.n * s.plane);
    const float *x = call->in[0]->data;
    float *running_mean = (float *)call->param[2].data + channel;
    float *running_var = (float *)call->param[3].data + channel;
    double sum = 0, squares = 0, var;
    batchnorm_stat stat;

    for (int64_t b = 0; b < s.blocks; b++) {
        _Alignas(64) float part[NATIVE_MAX_LANES] = {0};

        native_choose()->sum(part, x + batchnorm_at(&s, b, channel), s.plane);
        sum += batchnorm_fold(part, &s, b);
    }
    stat.mean = (float)(sum / count);
    for (int64_t b = 0; b < s.blocks; b++) {
        _Alignas(64) float part[NATIVE_MAX_LANES] = {0};

        native_choose()->sum_squares(part, x + batchnorm_at(&s, b, channel), stat.mean, s.plane);
        squares += batchnorm_fold(part, &s, b);
    }
    var = squares / count;
    stat.inv_std = (float)(1 / sqrt(var + a->eps));
    *running_mean = (float)((1 - a->momentum) * (double)*running_mean + a->momentum * sum / count);
    if (count > 1)
        var *= count / (count - 1);
    *running_var = (float)((1 - a->momentum) * (double)*running_var + a->momentum * var);
    return stat;
}

static batchnorm_stat batchnorm_recall(const co_call *call, int64_t channel)
{
    const co_batchnorm_attr *a = call->attr;
    const float *mean = call->param[2].data, *var = call->param[3].data;

    return (batchnorm_stat){mean[channel], (float)(1 / sqrt((double)var[channel] + a->eps))};
}

static co_status batchnorm_plan(co_call *call)
{
    if (call->training)
        call->workspace_bytes = (size_t)call->in[0]->shape.dim[1] * sizeof(batchnorm_stat);
    return native_plan_alike(call);
}

static co_status batchnorm_forward(co_call *call, const co_run *run)
{
    const batchnorm_size s = batchnorm_sizes(call);
    const float *x = call->in[0]->data, *w = call->param[0].data, *bias = call->param[1].data;
    batchnorm_stat *kept = call->workspace; /* (C) */
    float *y = call->out[0]->data;

    (void)run;
    for (int64_t c = 0; c < s.c; c++) {
        const batchnorm_stat stat =
            call->training ? batchnorm_measure(call, c) : batchnorm_recall(call, c);
        const float scale = w[c] * stat.inv_std;

        if (call->training)
            kept[c] = stat;
        for (int64_t b = 0; b < s.blocks; b++) {
            const int64_t at = batchnorm_at(&s, b, c);

            native_choose()->combine(y + at, x + at, scale, NULL, 0, bias[c] - scale * stat.mean,
                                     s.plane);
        }
    }
    return CO_OK;
}

/* sum dy and sum dy z of one channel, z = (x - mean) inv_std. Lanes without a sample have dy 0. */
static void batchnorm_sums(double *sum_dy, double *sum_dy_z, const co_call *call, const float *dy,
                           int64_t channel)
{
    const batchnorm_size s = batchnorm_sizes(call);
    const batchnorm_stat *stat = (const batchnorm_stat *)call->workspace + channel;
    const float *x = call->in[0]->data;

    *sum_dy = *sum_dy_z = 0;
    for (int64_t b = 0; b < s.blocks; b++) {
        _Alignas(64) float part[NATIVE_MAX_LANES] = {0}, product[NATIVE_MAX_LANES] = {0};
        const int64_t at = batchnorm_at(&s, b, channel);

        native_choose()->sum(part, dy + at, s.plane);
        native_choose()->sum_products(product, x + at, stat->mean, dy + at, s.plane);
        *sum_dy += batchnorm_fold(part, &s, b);
        *sum_dy_z += batchnorm_fold(product, &s, b);
    }
    *sum_dy_z *= (double)stat->inv_std;
}

static void batchnorm_put(float *to, double value, const co_run *run)
{
    *to = run->accumulate ? *to + (float)value : (float)value;
}

static co_status batchnorm_backward(co_call *call, const co_run *run)
{
    const batchnorm_size s = batchnorm_sizes(call);
    const double count = (double)(s.n * s.plane);
    const float *x = call->in[0]->data, *w = call->param[0].data, *dy = native_grad_out(call);
    const batchnorm_stat *stat = call->workspace;
    float *dx = call->grad_in[0] ? call->grad_in[0]->data : NULL;

    for (int64_t c = 0; c < s.c; c++, stat++) {
        const double scale = (double)w[c] * (double)stat->inv_std;
        double sum_dy, sum_dy_z, slope;

        batchnorm_sums(&sum_dy, &sum_dy_z, call, dy, c);
        /* dx = scale (dy - sum_dy / M - z sum_dy_z / M), as a line through x */
        slope = -scale * sum_dy_z / count * (double)stat->inv_std;
        for (int64_t b = 0; dx && b < s.blocks; b++) {
            const int64_t at = batchnorm_at(&s, b, c);

            native_choose()->combine(dx + at, dy + at, (float)scale, x + at, (float)slope,
                                     (float)(-scale * sum_dy / count - slope * (double)stat->mean),
                                     s.plane);
        }
        batchnorm_put((float *)call->grad_param[0].data + c, sum_dy_z, run);
        batchnorm_put((float *)call->grad_param[1].data + c, sum_dy, run);
    }
    if (dx)
        native_clear_rest(call->grad_in[0]);
    return CO_OK;
}

const co_kernel co_native_batchnorm = {
    .op = "batchnorm",
    .supports = native_supports_blocked,
    .plan = batchnorm_plan,
    .plan_backward = native_plan_backward_alike,
    .forward = batchnorm_forward,
    .backward = batchnorm_backward,
};
