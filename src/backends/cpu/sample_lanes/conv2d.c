/*
 * conv2d.c - convolution of stride 1 with few channels.
 *
 * Forward is a correlation. So is the input's gradient: of the output's gradient with the mirrored
 * weight, padded to the input's size. A layer with a plain input converts it to this backend's
 * layout and keeps it for backward.
 */
#include <string.h>

#include "backends/cpu/cpu.h"
#include "backends/cpu/sample_lanes/conv2d.h"

/* more channels do not stay in a cache */
#define CONV2D_MAX_CHANNELS 64
/* Lanes of samples win if lanes of channels would need this many times the useful work. */
#define CONV2D_MIN_WASTE 1.25

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

static void conv2d_describe(lanes_conv2d *self, const co_call *call)
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

size_t lanes_conv2d_pad_bytes(const lanes_window *s)
{
    const int64_t lanes = lanes_choose()->lanes;

    return s->pad_w ? (size_t)(s->c * s->h * (s->w + 2 * s->pad_w) * lanes) * sizeof(float) : 0;
}

size_t lanes_conv2d_aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

size_t lanes_conv2d_form_bytes(const lanes_window *s)
{
    return lanes_conv2d_aligned((size_t)(LANES_WINOGRAD_PLACES * lanes_winograd_stride(s)) *
                                sizeof(float));
}

size_t lanes_conv2d_work_bytes(const lanes_window *s)
{
    return lanes_conv2d_aligned((size_t)lanes_choose()->wino_room(s) * sizeof(float));
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
static int64_t conv2d_band(const lanes_conv2d *self)
{
    int64_t band = 1;

    while (self->wino && band * self->pool.sh % LANES_WINOGRAD_ROWS != 0)
        band++;
    return band < self->read.rows ? band : self->read.rows;
}

size_t lanes_conv2d_block_bytes(const lanes_window *s, int64_t rows)
{
    return (size_t)(s->o * rows * s->ow * lanes_choose()->lanes) * sizeof(float);
}

/* The max pooling that is fused, and what it needs of the convolution. */
static void conv2d_describe_pool(lanes_conv2d *self, const co_call *call)
{
    lanes_pool *pool = &self->pool;
    const co_extent needed = sample_lanes_needed(call);

    *pool = sample_lanes_describe_pool(call->fused_attr[call->fused[0] == &co_op_maxpool ? 0 : 1],
                                       call->unfused_shape.dim, call->out[0]->shape.dim);
    pool->relu = call->fused[1] != NULL;
    self->read = co_tensor_part_read(call->out[0]);
    self->needed.oh = needed.rows;
    self->needed.ow = needed.columns;
}

static co_status conv2d_plan(co_call *call)
{
    lanes_conv2d *self = call->self;
    size_t own;

    conv2d_describe(self, call);
    self->needed = self->forward;
    self->pooled = call->fused[0] != NULL;
    if (self->pooled)
        conv2d_describe_pool(self, call);
    sample_lanes_block(call->out[0]);
    self->threads = sample_lanes_threads(call);
    call->workspace_bytes = self->place = lanes_conv2d_aligned(sample_lanes_room(call->in[0]));
    self->wino = !call->direct_convolution && lanes_winograd_pays(&self->needed);
    self->work = lanes_conv2d_aligned(lanes_conv2d_pad_bytes(&self->needed));
    self->rows = own = self->work + (self->wino ? lanes_conv2d_work_bytes(&self->needed) : 0);
    if (self->pooled) {
        self->band = conv2d_band(self);
        own += lanes_conv2d_block_bytes(&self->needed,
                                        (self->band - 1) * self->pool.sh + self->pool.kh);
    }
    cpu_need_scratch(call, self->wino ? lanes_conv2d_form_bytes(&self->forward) : 0, own);
    if (self->pooled && call->training)
        call->workspace_bytes += call->out[0]->bytes / sizeof(float);
    return CO_OK;
}

const float *lanes_conv2d_pad(float *room, const float *x, const lanes_window *s)
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

/* The output rows of window `s`, for one block; `own` is the thread's scratch. */
static void conv2d_correlate(float *y, const co_call *call, char *own, const float *x,
                             const lanes_window *s)
{
    const lanes_conv2d *self = call->self;
    const lanes_loops *lanes = lanes_choose();
    const float *bias = call->n_param > 1 ? call->param[1].data : NULL;

    if (self->wino)
        lanes->wino(y, (float *)(void *)(own + self->work), x, call->scratch, bias, s);
    else
        lanes->correlate(y, x, call->param[0].data, bias, s);
}

/* What nobody reads of a block becomes 0, and its maxima are nowhere. */
static void conv2d_clear_unread(float *y, uint8_t *place, const lanes_conv2d *self)
{
    const size_t lanes = (size_t)lanes_choose()->lanes;
    const co_extent plane = {self->pool.oh, self->pool.ow};

    sample_lanes_fill_rest(y, 0, lanes * sizeof(float), self->forward.o, plane, self->read);
    if (place)
        sample_lanes_fill_rest(place, LANES_NOWHERE, lanes, self->forward.o, plane, self->read);
}

/* One block: computes the rows that a band of windows needs, of some channels, and pools them at
   once, while they are in L1. */
static void conv2d_forward_pooled(float *y, uint8_t *place, const co_call *call, char *own,
                                  const float *x)
{
    const lanes_conv2d *self = call->self;
    const lanes_loops *lanes = lanes_choose();
    float *rows = (float *)(void *)(own + self->rows);
    const int64_t wide = self->pool.ow * lanes->lanes, all = self->forward.o;
    lanes_window s = self->needed;
    lanes_pool pool = self->pool;

    pool.w = s.ow;
    pool.ow = self->read.columns;
    for (int64_t u = 0; u < self->read.rows; u += self->band) {
        pool.oh = self->read.rows - u < self->band ? self->read.rows - u : self->band;
        s.oh = pool.h = (pool.oh - 1) * pool.sh + pool.kh;
        s.pad_h = self->forward.pad_h - u * pool.sh;
        s.part = self->wino ? lanes->wino_part(&s) : all;
        for (s.begin = 0; s.begin < all; s.begin += s.part) {
            const int64_t end = all - s.begin < s.part ? all : s.begin + s.part;

            s.part = end - s.begin;
            conv2d_correlate(rows, call, own, x, &s);
            for (int64_t o = s.begin; o < end; o++) {
                const int64_t at = (o * self->pool.oh + u) * wide;

                lanes->maxpool(y + at, place ? place + at : NULL,
                               rows + (o - s.begin) * s.oh * s.ow * lanes->lanes, &pool);
            }
        }
    }
    conv2d_clear_unread(y, place, self);
}

static void conv2d_forward_block(const co_call *call, char *own, int64_t b)
{
    const lanes_conv2d *self = call->self;
    const int64_t step = sample_lanes_count(call->out[0]) * lanes_choose()->lanes;
    const float *x = sample_lanes_read_block(call->in[0], call->workspace, b);
    const float *from = lanes_conv2d_pad((float *)(void *)own, x, &self->forward);
    float *y = (float *)call->out[0]->data + b * step;
    uint8_t *place = NULL;

    if (call->training)
        place = (uint8_t *)call->workspace + self->place + b * step;
    if (self->pooled)
        conv2d_forward_pooled(y, place, call, own, from);
    else
        conv2d_correlate(y, call, own, from, &self->forward);
}

static co_status conv2d_forward(co_call *call, const co_run *run)
{
    const lanes_conv2d *self = call->self;

    (void)run;
    if (self->wino)
        lanes_choose()->wino_weight(call->scratch, call->param[0].data, &self->forward);
    CO_PARALLEL_FOR(self->threads)
    for (int t = 0; t < self->threads; t++) {
        const co_range part = co_parallel_part(sample_lanes_blocks(call->in[0]), t, self->threads);

        for (int64_t b = part.begin; b < part.end; b++)
            conv2d_forward_block(call, cpu_own_scratch(call, t), b);
    }
    return CO_OK;
}

static void conv2d_fini(co_call *call)
{
    sample_lanes_sparse_fini(&((lanes_conv2d *)call->self)->sparse);
}

const co_kernel co_cpu_lanes_conv2d = {
    .op = "conv2d",
    .name = "sample-lanes",
    .reads = CO_READS(CO_FORMAT_SAMPLE_LANES),
    .self_size = sizeof(lanes_conv2d),
    .supports = conv2d_supports,
    .fuses = conv2d_fuses,
    .plan = conv2d_plan,
    .plan_backward = lanes_conv2d_plan_backward,
    .forward = conv2d_forward,
    .backward = lanes_conv2d_backward,
    .fini = conv2d_fini,
};
