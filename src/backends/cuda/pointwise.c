/* pointwise.c - operators that take each element by itself, and flatten. */
#include "kernels/cuda/pointwise.h"
#include "backends/cuda/cuda.h"
#include "core/rng.h"

/* ---- of one or two inputs ---- */

static co_status pointwise_forward(co_call *call, cuda_kernel kernel, cuda_pointwise *args)
{
    args->out = call->out[0]->data;
    args->x = call->in[0]->data;
    args->n = cuda_count_of(call->in[0]);
    cuda_launch(call->queue, kernel, args->n, args);
    return CO_OK;
}

/* `saved`: what the op keeps for its gradient; NULL: nothing. */
static co_status pointwise_backward(co_call *call, cuda_kernel kernel, const co_tensor *saved,
                                    cuda_pointwise *args)
{
    if (!call->grad_in[0])
        return CO_OK;
    args->out = call->grad_in[0]->data;
    args->x = call->grad_out[0]->data;
    args->y = saved ? saved->data : NULL;
    args->n = cuda_count_of(call->grad_out[0]);
    cuda_launch(call->queue, kernel, args->n, args);
    return CO_OK;
}

static co_status pointwise_relu_forward(co_call *call, const co_run *run)
{
    (void)run;
    return pointwise_forward(call, CUDA_pointwise_relu, &(cuda_pointwise){.n = 0});
}

static co_status pointwise_relu_backward(co_call *call, const co_run *run)
{
    (void)run;
    return pointwise_backward(call, CUDA_pointwise_relu_backward, call->out[0],
                              &(cuda_pointwise){.n = 0});
}

static co_status pointwise_tanh_forward(co_call *call, const co_run *run)
{
    (void)run;
    return pointwise_forward(call, CUDA_pointwise_tanh, &(cuda_pointwise){.n = 0});
}

static co_status pointwise_tanh_backward(co_call *call, const co_run *run)
{
    (void)run;
    return pointwise_backward(call, CUDA_pointwise_tanh_backward, call->out[0],
                              &(cuda_pointwise){.n = 0});
}

static bool pointwise_by_tanh(const co_call *call)
{
    return ((const co_gelu_attr *)call->attr)->approximate == CO_GELU_TANH;
}

static co_status pointwise_gelu_forward(co_call *call, const co_run *run)
{
    (void)run;
    return pointwise_forward(call, CUDA_pointwise_gelu,
                             &(cuda_pointwise){.tanh = pointwise_by_tanh(call)});
}

static co_status pointwise_gelu_backward(co_call *call, const co_run *run)
{
    (void)run;
    return pointwise_backward(call, CUDA_pointwise_gelu_backward, call->in[0],
                              &(cuda_pointwise){.tanh = pointwise_by_tanh(call)});
}

static co_status pointwise_scale_forward(co_call *call, const co_run *run)
{
    (void)run;
    return pointwise_forward(
        call, CUDA_pointwise_scale,
        &(cuda_pointwise){.factor = ((const co_scale_attr *)call->attr)->factor});
}

static co_status pointwise_scale_backward(co_call *call, const co_run *run)
{
    (void)run;
    return pointwise_backward(
        call, CUDA_pointwise_scale, NULL,
        &(cuda_pointwise){.factor = ((const co_scale_attr *)call->attr)->factor});
}

static co_status pointwise_add_forward(co_call *call, const co_run *run)
{
    (void)run;
    return pointwise_forward(call, CUDA_pointwise_add, &(cuda_pointwise){.y = call->in[1]->data});
}

static co_status pointwise_silu_forward(co_call *call, const co_run *run)
{
    (void)run;
    return pointwise_forward(call, CUDA_pointwise_silu, &(cuda_pointwise){.n = 0});
}

static co_status pointwise_silu_backward(co_call *call, const co_run *run)
{
    (void)run;
    return pointwise_backward(call, CUDA_pointwise_silu_backward, call->in[0],
                              &(cuda_pointwise){.n = 0});
}

static co_status pointwise_mul_forward(co_call *call, const co_run *run)
{
    (void)run;
    return pointwise_forward(call, CUDA_pointwise_mul, &(cuda_pointwise){.y = call->in[1]->data});
}

static co_status pointwise_mul_backward(co_call *call, const co_run *run)
{
    (void)run;
    for (int i = 0; i < 2; i++) {
        cuda_pointwise args = {.x = call->grad_out[0]->data,
                               .y = call->in[1 - i]->data,
                               .n = cuda_count_of(call->grad_out[0])};

        if (!call->grad_in[i])
            continue;
        args.out = call->grad_in[i]->data;
        cuda_launch(call->queue, CUDA_pointwise_mul, args.n, &args);
    }
    return CO_OK;
}

/* ---- operators that change no value ---- */

co_status cuda_copy_tensor(const co_call *call, const co_tensor *to, const co_tensor *from)
{
    if (!to || to->data == from->data)
        return CO_OK;
    return call->queue->device->ops->copy(call->queue, to->data, from->data, from->bytes);
}

static co_status pointwise_copy_forward(co_call *call, const co_run *run)
{
    (void)run;
    return cuda_copy_tensor(call, call->out[0], call->in[0]);
}

static co_status pointwise_copy_backward(co_call *call, const co_run *run)
{
    (void)run;
    for (int i = 0; i < call->op->n_in; i++)
        CO_TRY(cuda_copy_tensor(call, call->grad_in[i], call->grad_out[0]));
    return CO_OK;
}

/* ---- dropout ---- */

static void pointwise_drop(const co_call *call, const co_run *run, const co_tensor *to,
                           const co_tensor *from)
{
    const double p = ((const co_dropout_attr *)call->attr)->p;
    const bool channels = call->op == &co_op_dropout2d;
    const co_shape *shape = &from->shape;
    cuda_dropout args = {.out = to->data,
                         .x = from->data,
                         .values = run->values,
                         .sample = run->sample,
                         .seed = run->seed,
                         .p = p,
                         .stream = CO_RNG_DROPOUT | call->node << 8,
                         .rows = (uint32_t)shape->dim[0],
                         .count = (uint32_t)(cuda_count_of(from) / (size_t)shape->dim[0]),
                         .span = channels ? cuda_plane(shape) : 1,
                         .scale = (float)(1 / (1 - p))};
    const size_t quads = (args.count + 3) / 4;

    cuda_launch(call->queue, channels ? CUDA_pointwise_dropout_spans : CUDA_pointwise_dropout,
                args.rows * (channels ? args.count : quads), &args);
}

static co_status pointwise_dropout_forward(co_call *call, const co_run *run)
{
    if (!call->training)
        return pointwise_copy_forward(call, run);
    pointwise_drop(call, run, call->out[0], call->in[0]);
    return CO_OK;
}

static co_status pointwise_dropout_backward(co_call *call, const co_run *run)
{
    if (call->grad_in[0])
        pointwise_drop(call, run, call->grad_in[0], call->grad_out[0]);
    return CO_OK;
}

#define POINTWISE_KERNEL(name, way, place)                                                         \
    const co_kernel co_cuda_##name = {.op = #name,                                                 \
                                      .supports = cuda_fits,                                       \
                                      .forward = pointwise_##way##_forward,                        \
                                      .backward = pointwise_##way##_backward,                      \
                                      .in_place = place}

POINTWISE_KERNEL(relu, relu, true);
POINTWISE_KERNEL(tanh, tanh, true);
POINTWISE_KERNEL(gelu, gelu, false);
POINTWISE_KERNEL(silu, silu, false);
POINTWISE_KERNEL(mul, mul, false);
POINTWISE_KERNEL(scale, scale, true);
POINTWISE_KERNEL(dropout, dropout, true);
POINTWISE_KERNEL(dropout2d, dropout, true);
POINTWISE_KERNEL(flatten, copy, true);

const co_kernel co_cuda_add = {.op = "add",
                               .supports = cuda_fits,
                               .forward = pointwise_add_forward,
                               .backward = pointwise_copy_backward,
                               .in_place = true};
