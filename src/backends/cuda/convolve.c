/*
 * convolve.c - conv2d by cuDNN (device/cuda/convolve.h), in fp32 and in 16 bits. Channels come last
 * in what it writes. What it reads in another layout or type it copies: images and filters in
 * forward, where they are kept for backward.
 */
#include "device/cuda/convolve.h"

#include <string.h>

#include "backends/backends.h"
#include "backends/cuda/cuda.h"

typedef struct convolve_self {
    const cuda_conv *product[CUDA_CONV_COUNT];
    co_dtype out[CUDA_CONV_COUNT]; /* what the library writes */
    bool bias;        /* the library adds it; else a kernel of our own, if there is one */
    size_t x;         /* bytes of a copy that is kept, before that of the filters */
    size_t y, dy, dw; /* bytes of copies in scratch memory */
} convolve_self;

static void convolve_take_dims(int64_t to[4], const co_tensor *tensor)
{
    memcpy(to, tensor->shape.dim, 4 * sizeof(*to));
}

static cuda_conv_shape convolve_shape(const co_call *call, cuda_conv_kind kind, co_dtype out)
{
    const co_conv2d_attr *a = call->attr;
    cuda_conv_shape shape = {.kind = kind, .in = call->in[0]->dtype, .out = out};

    convolve_take_dims(shape.x, call->in[0]);
    convolve_take_dims(shape.w, &call->param[0]);
    convolve_take_dims(shape.y, call->out[0]);
    for (int d = 0; d < 2; d++) {
        shape.stride[d] = a->s[d];
        shape.padding[d] = a->p[d];
        shape.dilation[d] = a->d[d];
    }
    return shape;
}

static co_dtype convolve_bias_type(const co_call *call)
{
    return call->round_params & 2 ? call->in[0]->dtype : CO_F32;
}

/* With the bias as a part of it, if the library has a fast way. */
static co_status convolve_find_with_bias(const cuda_conv **out, co_dtype *type, const char **why,
                                         const co_call *call)
{
    cuda_conv_shape shape = convolve_shape(call, CUDA_CONV_FORWARD, call->in[0]->dtype);

    shape.bias = shape.rated = true;
    shape.bias_type = convolve_bias_type(call);
    *type = shape.out;
    return cuda_conv_find(out, why, call->queue->device, &shape);
}

/* What another kernel finishes, gradients of filters and sums that get a bias, is in fp32 if the
   library has a fast way; else it is rounded twice. On an H100 cuDNN has none for filters'
   gradients in fp32 from 16 bits, but a substitute. */
static co_status convolve_find(const cuda_conv **out, co_dtype *type, const char **why,
                               const co_call *call, cuda_conv_kind kind)
{
    const bool finished =
        kind == CUDA_CONV_WEIGHT || (kind == CUDA_CONV_FORWARD && call->n_param > 1);
    const co_dtype types[] = {CO_F32, call->in[0]->dtype};
    co_status st = CO_E_UNSUPPORTED;

    for (int substitutes = 0; substitutes < 2; substitutes++)
        for (int i = finished ? 0 : 1; i < 2 && st != CO_OK; i++) {
            cuda_conv_shape shape = convolve_shape(call, kind, types[i]);

            shape.rated = !substitutes;
            st = cuda_conv_find(out, why, call->queue->device, &shape);
            *type = types[i];
        }
    return st;
}

static bool convolve_supports(const co_call *call, const char **why)
{
    const int kinds = call->training ? CUDA_CONV_COUNT : CUDA_CONV_INPUT;
    bool supports = cuda_fits(call, why);
    co_dtype type;

    for (int kind = 0; kind < kinds && supports; kind++)
        supports = convolve_find(NULL, &type, why, call, (cuda_conv_kind)kind) == CO_OK;
    return supports;
}

static co_status convolve_take(co_call *call, cuda_conv_kind kind)
{
    convolve_self *self = call->self;
    const char *why;

    return convolve_find(&self->product[kind], &self->out[kind], &why, call, kind);
}

static void convolve_need_scratch(co_call *call, size_t bytes)
{
    call->scratch_bytes = bytes > call->scratch_bytes ? bytes : call->scratch_bytes;
}

static co_status convolve_plan(co_call *call)
{
    const co_dtype dtype = call->in[0]->dtype;
    convolve_self *self = call->self;
    const char *why;

    self->bias = call->n_param > 1 &&
                 convolve_find_with_bias(&self->product[CUDA_CONV_FORWARD],
                                         &self->out[CUDA_CONV_FORWARD], &why, call) == CO_OK;
    if (!self->bias)
        CO_TRY(convolve_take(call, CUDA_CONV_FORWARD));
    self->x = cuda_is_last(call->in[0]) ? 0 : cuda_room(call->in[0], dtype);
    self->y = self->out[CUDA_CONV_FORWARD] == dtype ? 0 : cuda_room(call->out[0], CO_F32);
    call->workspace_bytes = self->x + cuda_room(&call->param[0], dtype);
    if (self->bias && convolve_bias_type(call) != CO_F32)
        call->workspace_bytes += cuda_room(&call->param[1], dtype);
    convolve_need_scratch(call, self->y + cuda_conv_workspace(self->product[CUDA_CONV_FORWARD]));
    cuda_set_last(call->out[0]);
    return CO_OK;
}

static co_status convolve_plan_backward(co_call *call)
{
    const co_tensor *dy = call->grad_out[0];
    convolve_self *self = call->self;
    const uint32_t channels = (uint32_t)dy->shape.dim[1];
    const uint32_t rows = (uint32_t)dy->shape.dim[0] * cuda_plane(&dy->shape);
    size_t most = call->n_param > 1 ? cuda_sums_room(rows, channels, 1) * sizeof(double) : 0;

    if (call->grad_in[0]) {
        CO_TRY(convolve_take(call, CUDA_CONV_INPUT));
        cuda_set_last(call->grad_in[0]);
    }
    CO_TRY(convolve_take(call, CUDA_CONV_WEIGHT));
    for (int kind = CUDA_CONV_INPUT; kind < CUDA_CONV_COUNT; kind++)
        if (self->product[kind] && cuda_conv_workspace(self->product[kind]) > most)
            most = cuda_conv_workspace(self->product[kind]);
    self->dy = cuda_is_last(dy) ? 0 : cuda_room(dy, dy->dtype);
    self->dw = cuda_room(&call->param[0], self->out[CUDA_CONV_WEIGHT]);
    convolve_need_scratch(call, self->dy + self->dw + most);
    return CO_OK;
}

/* The images as the library reads them. */
static void *convolve_x(const co_call *call)
{
    const convolve_self *self = call->self;

    return self->x ? call->workspace : call->in[0]->data;
}

static void *convolve_w(const co_call *call)
{
    return (char *)call->workspace + ((const convolve_self *)call->self)->x;
}

/* The bias as the library reads it: rounded, after the filters, or the parameter. */
static co_status convolve_bring_bias(void **out, const co_call *call)
{
    const co_dtype type = convolve_bias_type(call);

    *out = call->param[1].data;
    if (type == CO_F32)
        return CO_OK;
    *out = (char *)convolve_w(call) + cuda_room(&call->param[0], type);
    return co_backend_cuda.convert(call->queue, *out, type, call->param[1].data, CO_F32,
                                   cuda_count_of(&call->param[1]));
}

static co_status convolve_forward(co_call *call, const co_run *run)
{
    const convolve_self *self = call->self;
    cuda_conv_operands operands = {.x = convolve_x(call),
                                   .w = convolve_w(call),
                                   .y = self->y ? call->scratch : call->out[0]->data,
                                   .workspace = (char *)call->scratch + self->y};

    (void)run;
    if (self->x)
        cuda_bring_last(call->queue, operands.x, call->in[0]->dtype, call->in[0]);
    cuda_bring_last(call->queue, operands.w, call->in[0]->dtype, &call->param[0]);
    if (self->bias)
        CO_TRY(convolve_bring_bias(&operands.bias, call));
    CO_TRY(cuda_conv_run(self->product[CUDA_CONV_FORWARD], call->queue, &operands));
    if (call->n_param > 1 && !self->bias)
        cuda_add_bias(call, operands.y, self->out[CUDA_CONV_FORWARD]);
    return CO_OK;
}

static co_status convolve_backward(co_call *call, const co_run *run)
{
    const convolve_self *self = call->self;
    char *scratch = call->scratch;
    const co_tensor *dy = call->grad_out[0];
    const cuda_extent size = {(uint32_t)dy->shape.dim[0] * cuda_plane(&dy->shape),
                              (uint32_t)dy->shape.dim[1], 1};
    void *dw = scratch + self->dy;
    cuda_conv_operands operands = {.w = convolve_w(call),
                                   .y = self->dy ? scratch : dy->data,
                                   .workspace = scratch + self->dy + self->dw};

    if (self->dy)
        cuda_bring_last(call->queue, scratch, dy->dtype, dy);
    if (call->grad_in[0]) {
        operands.x = call->grad_in[0]->data;
        CO_TRY(cuda_conv_run(self->product[CUDA_CONV_INPUT], call->queue, &operands));
    }
    operands.x = convolve_x(call);
    operands.w = dw;
    CO_TRY(cuda_conv_run(self->product[CUDA_CONV_WEIGHT], call->queue, &operands));
    cuda_take_plain(call->queue, &call->grad_param[0], dw, self->out[CUDA_CONV_WEIGHT],
                    run->accumulate);
    cuda_sum_bias(call, run, size, operands.y, operands.workspace);
    return CO_OK;
}

const co_kernel co_cuda_conv2d_cudnn = {.op = "conv2d",
                                        .name = "cudnn",
                                        .reads = CUDA_READS,
                                        .self_size = sizeof(convolve_self),
                                        .supports = convolve_supports,
                                        .plan = convolve_plan,
                                        .plan_backward = convolve_plan_backward,
                                        .forward = convolve_forward,
                                        .backward = convolve_backward,
                                        .half = CUDA_HALF};
