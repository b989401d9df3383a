/*
 * conv2d.c - convolution of stride 1 with few channels.
 *
 * Forward is a correlation. So is the input's gradient: of the output's gradient with the mirrored
 * weight, padded to the input's size. A layer with a plain input converts it to this backend's
 * layout and keeps it for backward.
 */
#include <string.h>

#include "backends/cpu/sample_lanes/kernels.h"

/* more channels do not stay in a cache */
#define CONV2D_MAX_CHANNELS 64
/* Lanes of samples win if lanes of channels would need this many times the useful work. */
#define CONV2D_MIN_WASTE 1.25

typedef struct conv2d {
    lanes_window forward, data;
    /* Offsets in scratch during backward; 0 bytes if not needed. */
    size_t dy_pad, x_pad, mirrored, sum, bias_sum;
    lanes_sparse sparse;
    size_t sparse_room; /* 0: the sparse path cannot be used */
    /* With a fused max pooling: places of the maxima are in the workspace. */
    bool pooled, relu;
    lanes_pool pool;
    size_t place;      /* in the workspace */
    size_t rows, full; /* in scratch: rows of a band; during backward, dy of a block */
    int64_t band;      /* rows of windows per pass */
    /* Use Winograd's algorithm; in scratch: transformed weight, then wino_room. */
    bool wino, wino_data;
    size_t form, data_form;
} conv2d;

/* A first layer with so few channels is always faster here. */
#define CONV2D_FIRST_IN  3
#define CONV2D_FIRST_OUT 32

/* The factor by which padding to whole vectors of channels would increase the work. Kernels for a
   network's first layer pad only the output's channels. */
static double conv2d_waste(int64_t in, int64_t out)
{
    const int64_t lanes = lanes_choose()->lanes;
    const int64_t whole_in = (in + lanes - 1) / lanes * lanes;
    const int64_t whole_out = (out + lanes - 1) / lanes * lanes;
    const double waste = (double)whole_out / (double)out;

    return in > 3 ? waste * (double)whole_in / (double)in : waste;
}

/* After another layer of this backend, changing the layout would cost more than it gains. */
static bool conv2d_suits(const co_tensor *in, int64_t out)
{
    const int64_t channels = in->shape.dim[1];

    if (channels <= CONV2D_FIRST_IN && out <= CONV2D_FIRST_OUT)
        return true;
    return sample_lanes_is_blocked(in) || conv2d_waste(channels, out) >= CONV2D_MIN_WASTE;
}

static bool conv2d_supports(const co_call *call, const char **why)
{
    const co_conv2d_attr *a = call->attr;
    const co_tensor *in = call->in[0];

    *why = "it has groups or a stride";
    if (a->groups != 1 || a->s[0] != 1 || a->s[1] != 1)
        return false;
    *why = "its padding is larger than its kernel's reach";
    if (a->p[0] > a->d[0] * (a->k[0] - 1) || a->p[1] > a->d[1] * (a->k[1] - 1))
        return false;
    *why = "it has many channels";
    if (a->out > CONV2D_MAX_CHANNELS || in->shape.dim[1] > CONV2D_MAX_CHANNELS)
        return false;
    *why = "its channels fill vectors";
    if (!conv2d_suits(in, a->out))
        return false;
    *why = "the batch leaves too many lanes empty";
    if (4 * in->shape.dim[0] < 3 * sample_lanes_blocks(in) * lanes_choose()->lanes)
        return false;
    *why = "its input has another layout than rows or samples in lanes";
    return in->layout.format == CO_FORMAT_PLAIN || sample_lanes_is_blocked(in);
}

static void conv2d_describe(conv2d *self, const co_call *call)
{
    const co_conv2d_attr *a = call->attr;
    const int64_t *in = call->in[0]->shape.dim, *out = call->unfused_shape.dim;

    self->forward = (lanes_window){
        .c = in[1],
        .h = in[2],
        .w = in[3],
        .o = out[1],
        .oh = out[2],
        .ow = out[3],
        .kh = a->k[0],
        .kw = a->k[1],
        .step_h = a->d[0],
        .step_w = a->d[1],
        .pad_h = a->p[0],
        .pad_w = a->p[1],
    };
    self->data = self->forward;
    self->data.c = out[1];
    self->data.h = out[2];
    self->data.w = out[3];
    self->data.o = in[1];
    self->data.oh = in[2];
    self->data.ow = in[3];
    self->data.pad_h = a->d[0] * (a->k[0] - 1) - a->p[0];
    self->data.pad_w = a->d[1] * (a->k[1] - 1) - a->p[1];
}

/* Bytes of a block with padding columns; 0 without padding. */
static size_t conv2d_pad_bytes(const lanes_window *s)
{
    const int64_t lanes = lanes_choose()->lanes;

    return s->pad_w ? (size_t)(s->c * s->h * (s->w + 2 * s->pad_w) * lanes) * sizeof(float) : 0;
}

static size_t conv2d_aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Bytes of a transformed weight; and including the scratch. */
static size_t conv2d_form_bytes(const lanes_window *s)
{
    return (size_t)(LANES_WINOGRAD_PLACES * lanes_winograd_stride(s)) * sizeof(float);
}

static size_t conv2d_wino_bytes(const lanes_window *s)
{
    return conv2d_form_bytes(s) + (size_t)lanes_choose()->wino_room(s) * sizeof(float);
}

/* Fuses maxpool, with a relu before or after it. */
static bool conv2d_fuses(const co_call *call)
{
    const bool first = call->fused[0] == &co_op_maxpool;
    const co_op *other = call->fused[first ? 1 : 0];
    const co_pool_attr *pool = call->fused_attr[first ? 0 : 1];

    if ((!first && call->fused[1] != &co_op_maxpool) || (other && other != &co_op_relu))
        return false;
    return pool->p[0] == 0 && pool->p[1] == 0 && pool->k[0] <= pool->s[0] &&
           pool->k[1] <= pool->s[1] && pool->k[0] < LANES_NOWHERE && pool->k[1] < LANES_NOWHERE &&
           pool->k[0] * pool->k[1] < LANES_NOWHERE;
}

/* Rows of windows that fill whole tiles of Winograd's algorithm. */
static int64_t conv2d_band(const conv2d *self)
{
    int64_t band = 1;

    while (self->wino && band * self->pool.sh % LANES_WINOGRAD_ROWS != 0)
        band++;
    return band < self->pool.oh ? band : self->pool.oh;
}

static size_t conv2d_block_bytes(const lanes_window *s, int64_t rows)
{
    return (size_t)(s->o * rows * s->ow * lanes_choose()->lanes) * sizeof(float);
}

static co_status conv2d_plan(co_call *call)
{
    conv2d *self = call->self;

    conv2d_describe(self, call);
    sample_lanes_block(call->out[0]);
    call->workspace_bytes = self->place = conv2d_aligned(sample_lanes_room(call->in[0]));
    self->wino = !call->direct_convolution && lanes_winograd_pays(&self->forward);
    self->form = conv2d_aligned(conv2d_pad_bytes(&self->forward));
    self->rows = self->form + (self->wino ? conv2d_wino_bytes(&self->forward) : 0);
    call->scratch_bytes = self->rows;
    self->pooled = call->fused[0] != NULL;
    if (!self->pooled)
        return CO_OK;
    self->relu = call->fused[1] != NULL;
    self->pool =
        sample_lanes_describe_pool(call->fused_attr[call->fused[0] == &co_op_maxpool ? 0 : 1],
                                   call->unfused_shape.dim, call->out[0]->shape.dim);
    self->band = conv2d_band(self);
    call->scratch_bytes +=
        conv2d_block_bytes(&self->forward, (self->band - 1) * self->pool.sh + self->pool.kh);
    if (call->training)
        call->workspace_bytes += call->out[0]->bytes / sizeof(float);
    return CO_OK;
}

static co_status conv2d_plan_backward(co_call *call)
{
    conv2d *self = call->self;
    const size_t lane_bytes = (size_t)lanes_choose()->lanes * sizeof(float);
    const size_t count = (size_t)co_shape_count(&call->param[0].shape);
    size_t end;

    self->dy_pad = conv2d_aligned(sample_lanes_room(call->grad_out[0]));
    self->x_pad = self->dy_pad + conv2d_aligned(conv2d_pad_bytes(&self->data));
    self->mirrored = self->x_pad + conv2d_aligned(conv2d_pad_bytes(&self->forward));
    self->sum = self->mirrored + conv2d_aligned(count * sizeof(float));
    self->bias_sum = self->sum + conv2d_aligned(count * lane_bytes);
    self->full = self->bias_sum + conv2d_aligned((size_t)self->forward.o * lane_bytes);
    end = self->full;
    if (self->pooled)
        end += conv2d_block_bytes(&self->forward, self->forward.oh);
    self->wino_data =
        call->grad_in[0] && !call->direct_convolution && lanes_winograd_pays(&self->data);
    self->data_form = conv2d_aligned(end);
    if (self->wino_data)
        end = self->data_form + conv2d_wino_bytes(&self->data);
    if (end > call->scratch_bytes)
        call->scratch_bytes = end;
    sample_lanes_sparse_describe(&self->sparse, call, self->pooled ? &self->pool : NULL);
    self->sparse_room = sample_lanes_sparse_room(&self->sparse, call);
    if (self->dy_pad + self->sparse_room > call->scratch_bytes)
        call->scratch_bytes = self->dy_pad + self->sparse_room;
    if (call->grad_in[0])
        sample_lanes_block(call->grad_in[0]);
    return CO_OK;
}

/* A block with padding columns: x itself if there are none, else a copy in `room`. */
static const float *conv2d_pad(float *room, const float *x, const lanes_window *s)
{
    const int64_t lanes = lanes_choose()->lanes;
    const size_t edge = (size_t)(s->pad_w * lanes), row = (size_t)(s->w * lanes);
    float *to = room;

    if (!s->pad_w)
        return x;
    for (int64_t r = 0; r < s->c * s->h; r++, x += row) {
        memset(to, 0, edge * sizeof(float));
        memcpy(to + edge, x, row * sizeof(float));
        memset(to + edge + row, 0, edge * sizeof(float));
        to += 2 * edge + row;
    }
    return room;
}

/* The output rows of window `s`, for one block. */
static void conv2d_correlate(float *y, const co_call *call, const float *x, const lanes_window *s)
{
    const conv2d *self = call->self;
    const lanes_loops *lanes = lanes_choose();
    const float *bias = call->n_param > 1 ? call->param[1].data : NULL;
    char *form = (char *)call->scratch + self->form;
    float *room = (float *)(void *)(form + conv2d_form_bytes(s));

    if (self->wino)
        lanes->wino(y, room, x, (float *)(void *)form, bias, s);
    else
        lanes->correlate(y, x, call->param[0].data, bias, s);
}

/* One block: computes the rows that a band of windows needs, and pools them at once. */
static void conv2d_forward_pooled(float *y, uint8_t *place, const co_call *call, const float *x)
{
    const conv2d *self = call->self;
    const lanes_loops *lanes = lanes_choose();
    float *rows = (float *)(void *)((char *)call->scratch + self->rows);
    const int64_t wide = self->pool.ow * lanes->lanes;
    lanes_window s = self->forward;
    lanes_pool pool = self->pool;

    for (int64_t u = 0; u < self->pool.oh; u += self->band) {
        pool.oh = self->pool.oh - u < self->band ? self->pool.oh - u : self->band;
        s.oh = pool.h = (pool.oh - 1) * pool.sh + pool.kh;
        s.pad_h = self->forward.pad_h - u * pool.sh;
        conv2d_correlate(rows, call, x, &s);
        for (int64_t o = 0; o < s.o; o++) {
            const int64_t at = (o * self->pool.oh + u) * wide;
            uint8_t *to = place ? place + at : NULL;

            lanes->maxpool(y + at, to, rows + o * s.oh * s.ow * lanes->lanes, &pool);
            if (self->relu)
                lanes->relu_place(y + at, to, pool.oh * pool.ow);
        }
    }
}

static co_status conv2d_forward(co_call *call, const co_run *run)
{
    const conv2d *self = call->self;
    const lanes_window *s = &self->forward;
    const lanes_loops *lanes = lanes_choose();
    const float *x = sample_lanes_read(call->in[0], call->workspace);
    const int64_t step = sample_lanes_count(call->out[0]) * lanes->lanes;
    float *y = call->out[0]->data;
    uint8_t *place = call->training ? (uint8_t *)call->workspace + self->place : NULL;

    (void)run;
    if (self->wino)
        lanes->wino_weight((float *)(void *)((char *)call->scratch + self->form),
                           call->param[0].data, s);
    for (int64_t b = 0; b < sample_lanes_blocks(call->in[0]); b++) {
        const float *from = conv2d_pad(call->scratch, x, s);

        if (self->pooled)
            conv2d_forward_pooled(y + b * step, place ? place + b * step : NULL, call, from);
        else
            conv2d_correlate(y + b * step, call, from, s);
        x += s->c * s->h * s->w * lanes->lanes;
    }
    return CO_OK;
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

static void conv2d_backward_data(float *dx, const co_call *call, const float *dy)
{
    const conv2d *self = call->self;
    char *scratch = call->scratch;
    const float *from = conv2d_pad((float *)(void *)(scratch + self->dy_pad), dy, &self->data);
    char *form = scratch + self->data_form;
    float *room = (float *)(void *)(form + conv2d_form_bytes(&self->data));

    if (self->wino_data)
        lanes_choose()->wino(dx, room, from, (float *)(void *)form, NULL, &self->data);
    else
        lanes_choose()->correlate(dx, from, (float *)(void *)(scratch + self->mirrored), NULL,
                                  &self->data);
}

static void conv2d_backward_weight(const co_call *call, const float *x, const float *dy)
{
    const conv2d *self = call->self;
    char *scratch = call->scratch;
    const float *from = conv2d_pad((float *)(void *)(scratch + self->x_pad), x, &self->forward);

    lanes_choose()->correlate_weight((float *)(void *)(scratch + self->sum),
                                     (float *)(void *)(scratch + self->bias_sum), dy, from,
                                     &self->forward);
}

/* Block `b` of the gradient of the convolution's own output, before pooling. */
static const float *conv2d_unpool(const co_call *call, const sample_lanes_grad *dy, int64_t b)
{
    const conv2d *self = call->self;
    const lanes_loops *lanes = lanes_choose();
    const int64_t plane = self->forward.oh * self->forward.ow * lanes->lanes;
    const int64_t pooled = self->pool.oh * self->pool.ow * lanes->lanes;
    float *full = (float *)(void *)((char *)call->scratch + self->full);

    if (!self->pooled)
        return dy->value + b * self->forward.o * plane;
    for (int64_t o = 0; o < self->forward.o; o++) {
        const int64_t at = (b * self->forward.o + o) * pooled;

        lanes->maxpool_gradient(full + o * plane, dy->place + at, dy->value + at, &self->pool);
    }
    return full;
}

/* Uses all of dy, block by block. Sums over the batch stay in lanes until the end. */
static void conv2d_backward_full(const co_call *call, const float *x, const sample_lanes_grad *dy,
                                 const co_run *run)
{
    const conv2d *self = call->self;
    const lanes_window *s = &self->forward;
    const lanes_loops *lanes = lanes_choose();
    const int64_t count = co_shape_count(&call->param[0].shape);
    const int64_t step = s->c * s->h * s->w * lanes->lanes;
    char *scratch = call->scratch;
    float *sum = (float *)(void *)(scratch + self->sum);
    float *bias_sum = (float *)(void *)(scratch + self->bias_sum);

    memset(sum, 0, (size_t)(count * lanes->lanes) * sizeof(float));
    memset(bias_sum, 0, (size_t)(s->o * lanes->lanes) * sizeof(float));
    if (call->grad_in[0])
        conv2d_mirror((float *)(void *)(scratch + self->mirrored), call->param[0].data, s);
    if (self->wino_data)
        lanes->wino_weight((float *)(void *)(scratch + self->data_form),
                           (float *)(void *)(scratch + self->mirrored), &self->data);
    for (int64_t b = 0; b < sample_lanes_blocks(call->in[0]); b++) {
        const float *block = conv2d_unpool(call, dy, b);

        if (call->grad_in[0])
            conv2d_backward_data((float *)call->grad_in[0]->data + b * step, call, block);
        conv2d_backward_weight(call, x + b * step, block);
    }
    lanes->reduce(call->grad_param[0].data, sum, count, run->accumulate);
    if (call->n_param > 1)
        lanes->reduce(call->grad_param[1].data, bias_sum, s->o, run->accumulate);
}

static co_status conv2d_backward(co_call *call, const co_run *run)
{
    const conv2d *self = call->self;
    const sample_lanes_grad dy = {sample_lanes_grad_out(call),
                                  self->pooled ? (uint8_t *)call->workspace + self->place : NULL};
    const float *x = sample_lanes_is_blocked(call->in[0]) ? call->in[0]->data : call->workspace;
    char *scratch = call->scratch;

    if (self->sparse_room && sample_lanes_sparse_pays(&self->sparse, call, &dy))
        sample_lanes_sparse_backward(&self->sparse, call, x, &dy, scratch + self->dy_pad, run);
    else
        conv2d_backward_full(call, x, &dy, run);
    return CO_OK;
}

const co_kernel co_cpu_lanes_conv2d = {
    .op = "conv2d",
    .name = "sample-lanes",
    .reads = CO_READS(CO_FORMAT_SAMPLE_LANES),
    .self_size = sizeof(conv2d),
    .supports = conv2d_supports,
    .fuses = conv2d_fuses,
    .plan = conv2d_plan,
    .plan_backward = conv2d_plan_backward,
    .forward = conv2d_forward,
    .backward = conv2d_backward,
};
