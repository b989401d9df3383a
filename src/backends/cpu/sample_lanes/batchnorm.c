/*
 * batchnorm.c - batch norm with samples in lanes.
 *
 * Sums over one plane are floats per lane; sums of these are doubles. With over_ranks they are
 * reduced over all ranks, and plain tensors are accepted too, because no other fast kernel can do
 * that.
 */
#include <math.h>
#include <string.h>

#include "backends/cpu/sample_lanes/kernels.h"

/* Kept for backward, per channel; followed by a double: M, the number of values per channel. */
typedef struct batchnorm_stat {
    float mean, inv_std;
} batchnorm_stat;

/* A channel consists of `spans` of `vectors` vectors or `rest` single values each. In this
   backend's layout a span is a plane of `lanes` samples; in the plain layout it is a plane of one
   sample, as vectors if all planes are aligned. */
typedef struct batchnorm_size {
    int64_t n, c, plane, lanes;
    int64_t spans, vectors, rest;
    bool blocked;
} batchnorm_size;

static batchnorm_size batchnorm_sizes(const co_call *call)
{
    const co_tensor *in = call->in[0];
    batchnorm_size s = {.n = in->shape.dim[0],
                        .c = in->shape.dim[1],
                        .plane = sample_lanes_count(in) / in->shape.dim[1],
                        .lanes = lanes_choose()->lanes,
                        .blocked = sample_lanes_is_blocked(in)};

    s.spans = s.blocked ? sample_lanes_blocks(in) : s.n;
    if (s.blocked)
        s.vectors = s.plane;
    else if (s.plane % s.lanes == 0)
        s.vectors = s.plane / s.lanes;
    else
        s.rest = s.plane;
    return s;
}

/* Offset of a channel's first value in span `b`. */
static inline int64_t batchnorm_at(const batchnorm_size *s, int64_t b, int64_t channel)
{
    return (b * s->c + channel) * (s->vectors * s->lanes + s->rest);
}

/* Sum over the lanes of span `b` that hold samples. */
static double batchnorm_fold(const float *part, const batchnorm_size *s, int64_t b)
{
    double sum = 0;

    for (int64_t l = 0; l < s->lanes && (!s->blocked || b * s->lanes + l < s->n); l++)
        sum += (double)part[l];
    return sum;
}

/* sum (x - shift) (z - shift_z) over single values; z NULL: sum (x - shift) */
static double batchnorm_rest(const float *x, float shift, const float *z, float shift_z, int64_t n)
{
    double part[LANES_MOST] = {0}, sum = 0;

    for (int64_t i = 0; i < n; i++) {
        const double d = (double)(x[i] - shift);

        part[i % LANES_MOST] += z ? d * (double)(z[i] - shift_z) : d;
    }
    for (int l = 0; l < LANES_MOST; l++)
        sum += part[l];
    return sum;
}

static double batchnorm_sum(const float *x, const batchnorm_size *s, int64_t channel)
{
    double sum = 0;

    for (int64_t b = 0; b < s->spans; b++) {
        _Alignas(64) float part[LANES_MOST] = {0};
        const float *span = x + batchnorm_at(s, b, channel);

        lanes_choose()->sum(part, span, s->vectors);
        sum += batchnorm_fold(part, s, b) + batchnorm_rest(span, 0, NULL, 0, s->rest);
    }
    return sum;
}

/* sum (x - mean)^2 */
static double batchnorm_squares(const float *x, float mean, const batchnorm_size *s,
                                int64_t channel)
{
    double sum = 0;

    for (int64_t b = 0; b < s->spans; b++) {
        _Alignas(64) float part[LANES_MOST] = {0};
        const float *span = x + batchnorm_at(s, b, channel);

        lanes_choose()->sum_squares(part, span, mean, s->vectors);
        sum += batchnorm_fold(part, s, b) + batchnorm_rest(span, mean, span, mean, s->rest);
    }
    return sum;
}

/* sum (x - mean) dy; dy is 0 in lanes without a sample */
static double batchnorm_products(const float *x, float mean, const float *dy,
                                 const batchnorm_size *s, int64_t channel)
{
    double sum = 0;

    for (int64_t b = 0; b < s->spans; b++) {
        _Alignas(64) float part[LANES_MOST] = {0};
        const int64_t at = batchnorm_at(s, b, channel);

        lanes_choose()->sum_products(part, x + at, mean, dy + at, s->vectors);
        sum += batchnorm_fold(part, s, b) + batchnorm_rest(x + at, mean, dy + at, 0, s->rest);
    }
    return sum;
}

/* y = a x + b z + c; z may be NULL */
static void batchnorm_combine(float *y, const float *x, float a, const float *z, float b, float c,
                              const batchnorm_size *s, int64_t channel)
{
    for (int64_t k = 0; k < s->spans; k++) {
        const int64_t at = batchnorm_at(s, k, channel);

        lanes_choose()->combine(y + at, x + at, a, z ? z + at : NULL, b, c, s->vectors);
        for (int64_t i = at; i < at + s->rest; i++)
            y[i] = a * x[i] + (z ? b * z[i] : 0) + c;
    }
}

/* Statistics from the sums of a batch of `count` values; updates the running statistics. */
static batchnorm_stat batchnorm_take(const co_call *call, int64_t channel, double mean,
                                     double squares, double count)
{
    const co_batchnorm_attr *a = call->attr;
    float *running_mean = (float *)call->param[2].data + channel;
    float *running_var = (float *)call->param[3].data + channel;
    const double var = squares / count, unbiased = count > 1 ? squares / (count - 1) : var;

    *running_mean = (float)((1 - a->momentum) * (double)*running_mean + a->momentum * mean);
    *running_var = (float)((1 - a->momentum) * (double)*running_var + a->momentum * unbiased);
    return (batchnorm_stat){(float)mean, (float)(1 / sqrt(var + a->eps))};
}

static batchnorm_stat batchnorm_measure(const co_call *call, int64_t channel)
{
    const batchnorm_size s = batchnorm_sizes(call);
    const double count = (double)(s.n * s.plane);
    const float *x = call->in[0]->data;
    const double mean = batchnorm_sum(x, &s, channel) / count;

    return batchnorm_take(call, channel, mean, batchnorm_squares(x, (float)mean, &s, channel),
                          count);
}

static batchnorm_stat batchnorm_recall(const co_call *call, int64_t channel)
{
    const co_batchnorm_attr *a = call->attr;
    const float *mean = call->param[2].data, *var = call->param[3].data;

    return (batchnorm_stat){mean[channel], (float)(1 / sqrt((double)var[channel] + a->eps))};
}

/* Sums of x and x^2. Floats hold only squared differences from this rank's mean; the rest is added
   in double, which has enough digits even if the mean is large. */
static void batchnorm_plain_sums(double *sum, double *squares, const co_call *call, int64_t channel)
{
    const batchnorm_size s = batchnorm_sizes(call);
    const double count = (double)(s.n * s.plane);
    const float *x = call->in[0]->data;
    float mean;

    *sum = batchnorm_sum(x, &s, channel);
    mean = (float)(*sum / count);
    *squares =
        batchnorm_squares(x, mean, &s, channel) + (double)mean * (2 * *sum - count * (double)mean);
}

/* The same for all channels over all ranks. If no rank has samples, running statistics are used and
   not updated. */
static co_status batchnorm_measure_ranks(batchnorm_stat *stat, const co_call *call,
                                         const co_run *run)
{
    const batchnorm_size s = batchnorm_sizes(call);
    double *sum = call->scratch, *squares = sum + s.c, *count = squares + s.c; /* (C), (C), (1) */

    memset(sum, 0, (2 * (size_t)s.c + 1) * sizeof(*sum));
    for (int64_t c = 0; !run->phantom && c < s.c; c++)
        batchnorm_plain_sums(&sum[c], &squares[c], call, c);
    *count = run->phantom ? 0 : (double)(s.n * s.plane);
    CO_TRY(run->reduce(run->reduce_arg, sum, 2 * (size_t)s.c + 1));
    for (int64_t c = 0; c < s.c; c++) {
        const double mean = sum[c] / *count, about = squares[c] - sum[c] * mean;

        stat[c] = *count > 0 ? batchnorm_take(call, c, mean, about > 0 ? about : 0, *count)
                             : batchnorm_recall(call, c);
    }
    *(double *)(stat + s.c) = *count;
    return CO_OK;
}

static bool batchnorm_supports(const co_call *call, const char **why)
{
    return call->over_ranks || sample_lanes_supports_blocked(call, why);
}

static co_status batchnorm_plan(co_call *call)
{
    const size_t channels = (size_t)call->in[0]->shape.dim[1];

    if (call->training)
        call->workspace_bytes = channels * sizeof(batchnorm_stat) + sizeof(double);
    if (call->over_ranks)
        call->scratch_bytes = (2 * channels + 1) * sizeof(double);
    if (sample_lanes_is_blocked(call->in[0]))
        sample_lanes_block(call->out[0]);
    return CO_OK;
}

static void batchnorm_forward_channel(const co_call *call, int64_t c)
{
    const batchnorm_size s = batchnorm_sizes(call);
    const float *w = call->param[0].data, *bias = call->param[1].data;
    batchnorm_stat *kept = call->workspace; /* (C) */
    batchnorm_stat stat;
    float scale;

    if (call->over_ranks)
        stat = kept[c];
    else if (call->training)
        stat = kept[c] = batchnorm_measure(call, c);
    else
        stat = batchnorm_recall(call, c);
    scale = w[c] * stat.inv_std;
    batchnorm_combine(call->out[0]->data, call->in[0]->data, scale, NULL, 0,
                      bias[c] - scale * stat.mean, &s, c);
}

static co_status batchnorm_forward(co_call *call, const co_run *run)
{
    const batchnorm_size s = batchnorm_sizes(call);
    const int threads = sample_lanes_threads(call);
    batchnorm_stat *kept = call->workspace; /* (C) */

    if (call->over_ranks)
        CO_TRY(batchnorm_measure_ranks(kept, call, run));
    else if (call->training)
        *(double *)(kept + s.c) = (double)(s.n * s.plane);
    CO_PARALLEL_FOR(threads)
    for (int64_t c = 0; c < s.c; c++)
        batchnorm_forward_channel(call, c);
    return CO_OK;
}

/* Scratch: the output's gradient if its layout differs; then 2 C sums. */
static size_t batchnorm_room(const co_call *call)
{
    const co_tensor *dy = call->grad_out[0];

    if (sample_lanes_is_blocked(dy) == sample_lanes_is_blocked(call->in[0]))
        return 0;
    return sample_lanes_bytes(dy);
}

static co_status batchnorm_plan_backward(co_call *call)
{
    const size_t sums = 2 * (size_t)call->in[0]->shape.dim[1] * sizeof(double);
    const size_t bytes = batchnorm_room(call) + (call->over_ranks ? sums : 0);

    if (bytes > call->scratch_bytes)
        call->scratch_bytes = bytes;
    if (call->grad_in[0] && sample_lanes_is_blocked(call->in[0]))
        sample_lanes_block(call->grad_in[0]);
    return CO_OK;
}

/* The output's gradient in the input's layout. */
static const float *batchnorm_grad_out(const co_call *call)
{
    const co_tensor *dy = call->grad_out[0];

    if (sample_lanes_is_blocked(call->in[0]))
        return sample_lanes_grad_out(call);
    if (!sample_lanes_is_blocked(dy))
        return dy->data;
    sample_lanes_unpack(call->scratch, dy, sample_lanes_threads(call));
    return call->scratch;
}

static void batchnorm_put(float *to, double value, const co_run *run)
{
    *to = run->accumulate ? *to + (float)value : (float)value;
}

/* sum dy and sum dy z of a channel, z = (x - mean) inv_std, which are also the parameters'
   gradients. */
static void batchnorm_sums(double sum[2], const co_call *call, const co_run *run, const float *dy,
                           int64_t channel)
{
    const batchnorm_size s = batchnorm_sizes(call);
    const batchnorm_stat *stat = (const batchnorm_stat *)call->workspace + channel;
    const float *x = call->in[0]->data;

    sum[0] = batchnorm_sum(dy, &s, channel);
    sum[1] = (double)stat->inv_std * batchnorm_products(x, stat->mean, dy, &s, channel);
    batchnorm_put((float *)call->grad_param[0].data + channel, sum[1], run);
    batchnorm_put((float *)call->grad_param[1].data + channel, sum[0], run);
}

/* dx = scale (dy - sum_dy / M - z sum_dy_z / M), as a linear function of x */
static void batchnorm_grad_in(const co_call *call, const co_run *run, const float *dy,
                              const double sum[2], int64_t channel)
{
    const batchnorm_size s = batchnorm_sizes(call);
    const batchnorm_stat *stat = (const batchnorm_stat *)call->workspace + channel;
    const double count = *((const double *)((const batchnorm_stat *)call->workspace + s.c));
    const float *x = call->in[0]->data, *w = call->param[0].data;
    const double scale = (double)w[channel] * (double)stat->inv_std;
    const double slope = -scale * sum[1] / count * (double)stat->inv_std;
    const double level = -scale * sum[0] / count - slope * (double)stat->mean;

    if (run->phantom)
        batchnorm_combine(call->grad_in[0]->data, dy, 0, NULL, 0, 0, &s, channel);
    else
        batchnorm_combine(call->grad_in[0]->data, dy, (float)scale, x, (float)slope, (float)level,
                          &s, channel);
}

static co_status batchnorm_backward_ranks(co_call *call, const co_run *run, const float *dy)
{
    const size_t channels = (size_t)call->in[0]->shape.dim[1];
    double *sum = (double *)((char *)call->scratch + batchnorm_room(call)); /* (C, 2) */

    for (size_t c = 0; c < channels; c++) {
        batchnorm_sums(sum + 2 * c, call, run, dy, (int64_t)c);
        if (run->phantom)
            sum[2 * c] = sum[2 * c + 1] = 0;
    }
    CO_TRY(run->reduce(run->reduce_arg, sum, 2 * channels));
    for (size_t c = 0; call->grad_in[0] && c < channels; c++)
        batchnorm_grad_in(call, run, dy, sum + 2 * c, (int64_t)c);
    return CO_OK;
}

static void batchnorm_backward_channel(const co_call *call, const co_run *run, const float *dy,
                                       int64_t c)
{
    double sum[2];

    batchnorm_sums(sum, call, run, dy, c);
    if (call->grad_in[0])
        batchnorm_grad_in(call, run, dy, sum, c);
}

static co_status batchnorm_backward(co_call *call, const co_run *run)
{
    const int64_t channels = call->over_ranks ? 0 : call->in[0]->shape.dim[1];
    const int threads = sample_lanes_threads(call);
    const float *dy = batchnorm_grad_out(call);

    if (call->over_ranks)
        CO_TRY(batchnorm_backward_ranks(call, run, dy));
    CO_PARALLEL_FOR(threads)
    for (int64_t c = 0; c < channels; c++)
        batchnorm_backward_channel(call, run, dy, c);
    if (call->grad_in[0] && sample_lanes_is_blocked(call->grad_in[0]))
        sample_lanes_clear_rest(call->grad_in[0]);
    return CO_OK;
}

const co_kernel co_cpu_lanes_batchnorm = {
    .op = "batchnorm",
    .name = "sample-lanes",
    .reads = CO_READS(CO_FORMAT_SAMPLE_LANES),
    .supports = batchnorm_supports,
    .plan = batchnorm_plan,
    .plan_backward = batchnorm_plan_backward,
    .forward = batchnorm_forward,
    .backward = batchnorm_backward,
};
