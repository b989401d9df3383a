/*
 * conv2d_backward.c - gradients of a convolution of stride 1 with few channels: sums over all
 * outputs, or over the nonzero ones (sparse.c), or with inputs that are picked by where a pooling
 * has found its maxima; the one that is fastest for what comes.
 */
#include <string.h>

#include "backends/cpu/cpu.h"
#include "backends/cpu/sample_lanes/conv2d.h"

/* Cost of picking what a gradient after pooling multiplies, in products with all places. */
#define CONV2D_PICKED 0.4

/* For correlate_picked. */
static bool conv2d_picks(const co_call *call, const lanes_window *s, const lanes_pool *pool)
{
    return lanes_choose()->correlate_picked && s->c == 1 && s->step_h == 1 && s->step_w == 1 &&
           pool->kh == 2 && pool->kw == 2 && pool->sh == 2 && pool->sw == 2 && !call->grad_in[0];
}

co_status lanes_conv2d_plan_backward(co_call *call)
{
    lanes_conv2d *self = call->self;
    const size_t lane_bytes = (size_t)lanes_choose()->lanes * sizeof(float);
    const size_t count = (size_t)co_shape_count(&call->param[0].shape);

    self->wino_data =
        call->grad_in[0] && !call->direct_convolution && lanes_winograd_pays(&self->data);
    self->mirrored = lanes_conv2d_aligned(sample_lanes_room(call->grad_out[0]));
    self->sum = self->mirrored + lanes_conv2d_aligned(count * sizeof(float));
    self->bias_sum = self->sum + lanes_conv2d_aligned(count * lane_bytes);
    self->data_form = self->bias_sum + lanes_conv2d_aligned((size_t)self->forward.o * lane_bytes);
    self->x_pad = lanes_conv2d_aligned(lanes_conv2d_pad_bytes(&self->data));
    self->picks = self->pooled && conv2d_picks(call, &self->forward, &self->pool);
    self->zeros = self->x_pad + lanes_conv2d_aligned(lanes_conv2d_pad_bytes(&self->forward));
    self->full = self->zeros;
    if (self->picks)
        self->full += (size_t)(self->forward.w + 2 * self->forward.pad_w) * lane_bytes;
    self->data_work = self->full;
    if (self->pooled)
        self->data_work +=
            lanes_conv2d_aligned(lanes_conv2d_block_bytes(&self->forward, self->forward.oh));
    cpu_need_scratch(
        call, self->data_form + (self->wino_data ? lanes_conv2d_form_bytes(&self->data) : 0),
        self->data_work + (self->wino_data ? lanes_conv2d_work_bytes(&self->data) : 0));
    if (call->grad_in[0])
        sample_lanes_block(call->grad_in[0]);
    return sample_lanes_sparse_plan(&self->sparse, call, self->pooled ? &self->pool : NULL,
                                    self->mirrored);
}

/* to[c][o][i][j] = weight[o][c][kh - 1 - i][kw - 1 - j] */
static void conv2d_mirror(float *to, const float *weight, const lanes_window *s)
{
    const int64_t taps = s->kh * s->kw;

    for (int64_t o = 0; o < s->o; o++)
        for (int64_t c = 0; c < s->c; c++)
            for (int64_t t = 0; t < taps; t++)
                to[(c * s->o + o) * taps + taps - 1 - t] = *weight++;
}

static void conv2d_backward_data(float *dx, const co_call *call, char *own, const float *dy)
{
    const lanes_conv2d *self = call->self;
    char *scratch = call->scratch;
    const float *from = lanes_conv2d_pad((float *)(void *)own, dy, &self->data);

    if (self->wino_data)
        lanes_choose()->wino(dx, (float *)(void *)(own + self->data_work), from,
                             (float *)(void *)(scratch + self->data_form), NULL, &self->data);
    else
        lanes_choose()->correlate(dx, from, (float *)(void *)(scratch + self->mirrored), NULL,
                                  &self->data);
}

static void conv2d_backward_weight(const co_call *call, char *own, const float *x, const float *dy,
                                   const co_range *part)
{
    const lanes_conv2d *self = call->self;
    char *scratch = call->scratch;
    const float *from = lanes_conv2d_pad((float *)(void *)(own + self->x_pad), x, &self->forward);

    lanes_choose()->correlate_weight((float *)(void *)(scratch + self->sum),
                                     (float *)(void *)(scratch + self->bias_sum), dy, from,
                                     &self->forward, part->begin, part->end);
}

/* The same from block `b` of the gradient after pooling. */
static void conv2d_backward_picked(const co_call *call, char *own, const float *x,
                                   const sample_lanes_grad *dy, int64_t b, const co_range *part)
{
    const lanes_conv2d *self = call->self;
    const lanes_window *s = &self->forward;
    const int64_t lanes = lanes_choose()->lanes;
    const int64_t at = b * s->o * self->pool.oh * self->pool.ow * lanes;
    const lanes_pooled pooled = {.value = dy->value + at,
                                 .place = dy->place + at,
                                 .oh = self->pool.oh,
                                 .ow = self->pool.ow,
                                 .rows = self->read.rows,
                                 .columns = self->read.columns,
                                 .zeros = (float *)(void *)(own + self->zeros)};
    char *scratch = call->scratch;

    lanes_choose()->correlate_picked((float *)(void *)(scratch + self->sum),
                                     (float *)(void *)(scratch + self->bias_sum), &pooled,
                                     lanes_conv2d_pad((float *)(void *)(own + self->x_pad), x, s),
                                     s, part->begin, part->end);
}

/* Block `b` of the gradient of the convolution's own output, before pooling; at least the channels
   in `part`. */
static const float *conv2d_unpool(const co_call *call, char *own, const sample_lanes_grad *dy,
                                  int64_t b, const co_range *part)
{
    const lanes_conv2d *self = call->self;
    const lanes_loops *lanes = lanes_choose();
    const int64_t plane = self->forward.oh * self->forward.ow * lanes->lanes;
    const int64_t pooled = self->pool.oh * self->pool.ow * lanes->lanes;
    float *full = (float *)(void *)(own + self->full);

    if (!self->pooled)
        return dy->value + b * self->forward.o * plane;
    for (int64_t o = part->begin; o < part->end; o++) {
        const int64_t at = (b * self->forward.o + o) * pooled;

        lanes->maxpool_gradient(full + o * plane, dy->place + at, dy->value + at, &self->pool);
    }
    return full;
}

/* Output channels whose weights are thread `t`'s: whole tiles. */
static co_range conv2d_channels(const lanes_conv2d *self, int t)
{
    const int64_t n = self->forward.o, tile = lanes_choose()->weight_channels(&self->forward);
    const co_range part = co_parallel_part((n + tile - 1) / tile, t, self->threads);

    return (co_range){part.begin * tile < n ? part.begin * tile : n,
                      part.end * tile < n ? part.end * tile : n};
}

/* Uses all of dy, block by block: dx for the thread's blocks, and dw over all blocks for its
   channels. Sums over the batch stay in lanes until the end. */
static void conv2d_backward_part(const co_call *call, const float *x, const sample_lanes_grad *dy,
                                 const co_run *run, int t)
{
    const lanes_conv2d *self = call->self;
    const lanes_window *s = &self->forward;
    const lanes_loops *lanes = lanes_choose();
    const int64_t blocks = sample_lanes_blocks(call->in[0]);
    const int64_t step = s->c * s->h * s->w * lanes->lanes;
    const int64_t taps = s->c * s->kh * s->kw;
    const co_range mine = co_parallel_part(blocks, t, self->threads);
    const co_range all = {0, s->o}, part = conv2d_channels(self, t);
    const int64_t n = part.end - part.begin;
    char *scratch = call->scratch, *own = cpu_own_scratch(call, t);
    float *sum = (float *)(void *)(scratch + self->sum) + part.begin * taps * lanes->lanes;
    float *bias_sum = (float *)(void *)(scratch + self->bias_sum) + part.begin * lanes->lanes;

    memset(sum, 0, (size_t)(n * taps * lanes->lanes) * sizeof(float));
    memset(bias_sum, 0, (size_t)(n * lanes->lanes) * sizeof(float));
    memset(own + self->zeros, 0, self->full - self->zeros);
    for (int64_t b = 0; b < blocks; b++) {
        const bool data = call->grad_in[0] && b >= mine.begin && b < mine.end;
        const float *block =
            self->picks ? NULL : conv2d_unpool(call, own, dy, b, data ? &all : &part);

        if (data)
            conv2d_backward_data((float *)call->grad_in[0]->data + b * step, call, own, block);
        if (n > 0 && self->picks)
            conv2d_backward_picked(call, own, x + b * step, dy, b, &part);
        else if (n > 0)
            conv2d_backward_weight(call, own, x + b * step, block, &part);
    }
    lanes->reduce((float *)call->grad_param[0].data + part.begin * taps, sum, n * taps,
                  run->accumulate);
    if (call->n_param > 1)
        lanes->reduce((float *)call->grad_param[1].data + part.begin, bias_sum, n, run->accumulate);
}

static void conv2d_backward_full(const co_call *call, const float *x, const sample_lanes_grad *dy,
                                 const co_run *run)
{
    const lanes_conv2d *self = call->self;
    float *mirrored = (float *)(void *)((char *)call->scratch + self->mirrored);

    if (call->grad_in[0])
        conv2d_mirror(mirrored, call->param[0].data, &self->forward);
    if (self->wino_data)
        lanes_choose()->wino_weight((float *)(void *)((char *)call->scratch + self->data_form),
                                    mirrored, &self->data);
    CO_PARALLEL_FOR(self->threads)
    for (int t = 0; t < self->threads; t++)
        conv2d_backward_part(call, x, dy, run, t);
}

co_status lanes_conv2d_backward(co_call *call, const co_run *run)
{
    const lanes_conv2d *self = call->self;
    const sample_lanes_grad dy = {sample_lanes_grad_out(call),
                                  self->pooled ? (uint8_t *)call->workspace + self->place : NULL};
    const float *x = sample_lanes_is_blocked(call->in[0]) ? call->in[0]->data : call->workspace;
    char *scratch = call->scratch;

    if (sample_lanes_sparse_pays(&self->sparse, call, &dy, self->picks ? CONV2D_PICKED : 1))
        sample_lanes_sparse_backward(&self->sparse, call, x, &dy, scratch + self->mirrored,
                                     self->threads, run);
    else
        conv2d_backward_full(call, x, &dy, run);
    return CO_OK;
}
