/*
 * conv2d.c - convolution of stride 1 between few channels.
 *
 * Forward is a correlation. So is the gradient of the input: of the output's gradient with the
 * mirrored weight, whose padding makes up what the kernel's extent took away. A layer that gets a
 * plain input brings it into this backend's layout, and keeps it for backward.
 */
#include <string.h>

#include "backends/native/native.h"

/* More channels than this do not stay in a cache. */
#define CONV2D_MAX_CHANNELS 64
/* Lanes of samples beat lanes of channels where those would do so much more work than needed. */
#define CONV2D_MIN_WASTE 1.25

typedef struct conv2d {
    native_window forward, data;
    /* In scratch during backward; 0 bytes where not needed. */
    size_t dy_pad, x_pad, mirrored, sum, bias_sum;
    native_sparse sparse;
    size_t sparse_room; /* 0: only with all of the output's gradient */
} conv2d;

/* A first layer of so few channels is faster here whatever its output has. */
#define CONV2D_FIRST_IN  3
#define CONV2D_FIRST_OUT 32

/* What filling up vectors of channels would multiply the work by. Kernels for the first layer of
   a network, with its few channels, fill up the output's alone. */
static double conv2d_waste(int64_t in, int64_t out)
{
    const int64_t lanes = native_choose()->lanes;
    const int64_t whole_in = (in + lanes - 1) / lanes * lanes;
    const int64_t whole_out = (out + lanes - 1) / lanes * lanes;
    const double waste = (double)whole_out / (double)out;

    return in > 3 ? waste * (double)whole_in / (double)in : waste;
}

/* Behind another layer of this backend, changing the layout would cost more than is gained. */
static bool conv2d_suits(const co_tensor *in, int64_t out)
{
    const int64_t channels = in->shape.dim[1];

    if (channels <= CONV2D_FIRST_IN && out <= CONV2D_FIRST_OUT)
        return true;
    return native_is_blocked(in) || conv2d_waste(channels, out) >= CONV2D_MIN_WASTE;
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
    if (4 * in->shape.dim[0] < 3 * native_blocks(in) * native_choose()->lanes)
        return false;
    *why = "its input lies in another backend's layout";
    return !in->layout || native_is_blocked(in);
}

static void conv2d_describe(conv2d *self, const co_call *call)
{
    const co_conv2d_attr *a = call->attr;
    const int64_t *in = call->in[0]->shape.dim, *out = call->out[0]->shape.dim;

    self->forward = (native_window){
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

/* Bytes of one block with padding columns; 0 if there are none. */
static size_t conv2d_pad_bytes(const native_window *s)
{
    const int64_t lanes = native_choose()->lanes;

    return s->pad_w ? (size_t)(s->c * s->h * (s->w + 2 * s->pad_w) * lanes) * sizeof(float) : 0;
}

static size_t conv2d_aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static co_status conv2d_plan(co_call *call)
{
    conv2d *self = call->self;

    conv2d_describe(self, call);
    native_block(call->out[0]);
    call->workspace_bytes = native_room(call->in[0]);
    call->scratch_bytes = conv2d_pad_bytes(&self->forward);
    return CO_OK;
}

static co_status conv2d_plan_backward(co_call *call)
{
    conv2d *self = call->self;
    const size_t lane_bytes = (size_t)native_choose()->lanes * sizeof(float);
    const size_t count = (size_t)co_shape_count(&call->param[0].shape);
    size_t end;

    self->dy_pad = conv2d_aligned(native_room(call->grad_out[0]));
    self->x_pad = self->dy_pad + conv2d_aligned(conv2d_pad_bytes(&self->data));
    self->mirrored = self->x_pad + conv2d_aligned(conv2d_pad_bytes(&self->forward));
    self->sum = self->mirrored + conv2d_aligned(count * sizeof(float));
    self->bias_sum = self->sum + conv2d_aligned(count * lane_bytes);
    end = self->bias_sum + conv2d_aligned((size_t)self->forward.o * lane_bytes);
    if (end > call->scratch_bytes)
        call->scratch_bytes = end;
    native_sparse_describe(&self->sparse, call);
    self->sparse_room = native_sparse_room(&self->sparse, call);
    if (self->dy_pad + self->sparse_room > call->scratch_bytes)
        call->scratch_bytes = self->dy_pad + self->sparse_room;
    if (call->grad_in[0])
        native_block(call->grad_in[0]);
    return CO_OK;
}

/* The planes of one block with padding columns: x itself where there are none, else in `room`. */
static const float *conv2d_pad(float *room, const float *x, const native_window *s)
{
    const int64_t lanes = native_choose()->lanes;
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

static co_status conv2d_forward(co_call *call, const co_run *run)
{
    const conv2d *self = call->self;
    const native_window *s = &self->forward;
    const native_lanes *lanes = native_choose();
    const float *x = native_read(call->in[0], call->workspace);
    const float *bias = call->n_param > 1 ? call->param[1].data : NULL;
    float *y = call->out[0]->data;

    (void)run;
    for (int64_t b = 0; b < native_blocks(call->in[0]); b++) {
        lanes->correlate(y, conv2d_pad(call->scratch, x, s), call->param[0].data, bias, s);
        x += s->c * s->h * s->w * lanes->lanes;
        y += s->o * s->oh * s->ow * lanes->lanes;
    }
    return CO_OK;
}

/* to[c][o][i][j] = weight[o][c][kh - 1 - i][kw - 1 - j] */
static void conv2d_mirror(float *to, const float *weight, const native_window *s)
{
    const int64_t taps = s->kh * s->kw;

    for (int64_t o = 0; o < s->o; o++)
        for (int64_t c = 0; c < s->c; c++)
            for (int64_t t = 0; t < taps; t++)
                to[(c * s->o + o) * taps + taps - 1 - t] = *weight++;
}

static void conv2d_backward_data(const co_call *call, const float *dy)
{
    const conv2d *self = call->self;
    const native_window *s = &self->data;
    const native_lanes *lanes = native_choose();
    char *scratch = call->scratch;
    float *mirrored = (float *)(scratch + self->mirrored);
    float *dx = call->grad_in[0]->data;

    conv2d_mirror(mirrored, call->param[0].data, &self->forward);
    for (int64_t b = 0; b < native_blocks(call->in[0]); b++) {
        const float *from = conv2d_pad((float *)(scratch + self->dy_pad), dy, s);

        lanes->correlate(dx, from, mirrored, NULL, s);
        dy += s->c * s->h * s->w * lanes->lanes;
        dx += s->o * s->oh * s->ow * lanes->lanes;
    }
}

/* Sums over the batch stay in lanes until the last block. */
static void conv2d_backward_weight(const co_call *call, const float *x, const float *dy,
                                   const co_run *run)
{
    const conv2d *self = call->self;
    const native_window *s = &self->forward;
    const native_lanes *lanes = native_choose();
    const int64_t count = co_shape_count(&call->param[0].shape);
    char *scratch = call->scratch;
    float *sum = (float *)(scratch + self->sum);
    float *bias_sum = call->n_param > 1 ? (float *)(scratch + self->bias_sum) : NULL;

    memset(sum, 0, (size_t)(count * lanes->lanes) * sizeof(float));
    if (bias_sum)
        memset(bias_sum, 0, (size_t)(s->o * lanes->lanes) * sizeof(float));
    for (int64_t b = 0; b < native_blocks(call->in[0]); b++) {
        const float *from = conv2d_pad((float *)(scratch + self->x_pad), x, s);

        lanes->correlate_weight(sum, bias_sum, dy, from, s);
        x += s->c * s->h * s->w * lanes->lanes;
        dy += s->o * s->oh * s->ow * lanes->lanes;
    }
    lanes->reduce(call->grad_param[0].data, sum, count, run->accumulate);
    if (bias_sum)
        lanes->reduce(call->grad_param[1].data, bias_sum, s->o, run->accumulate);
}

static co_status conv2d_backward(co_call *call, const co_run *run)
{
    const conv2d *self = call->self;
    const float *dy = native_grad_out(call);
    const float *x = native_is_blocked(call->in[0]) ? call->in[0]->data : call->workspace;

    if (self->sparse_room && native_sparse_pays(&self->sparse, call, dy)) {
        native_sparse_backward(&self->sparse, call, x, dy, (char *)call->scratch + self->dy_pad,
                               run);
        return CO_OK;
    }
    if (call->grad_in[0])
        conv2d_backward_data(call, dy);
    conv2d_backward_weight(call, x, dy, run);
    return CO_OK;
}

const co_kernel co_native_conv2d = {
    .op = "conv2d",
    .self_size = sizeof(conv2d),
    .supports = conv2d_supports,
    .plan = conv2d_plan,
    .plan_backward = conv2d_plan_backward,
    .forward = conv2d_forward,
    .backward = conv2d_backward,
};
