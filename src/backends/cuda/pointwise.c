/* pointwise.c - operators that take each element by itself, and flatten. */
#include "kernels/cuda/pointwise.h"
#include "backends/cuda/cuda.h"
#include "core/rng.h"

typedef struct pointwise_self {
    cuda_operand in[2], dy;
} pointwise_self;

static void pointwise_launch(const co_call *call, cuda_kernel kernel, cuda_pointwise *args,
                             const co_tensor *out)
{
    args->out = out->data;
    args->n = cuda_count_of(out);
    args->type = cuda_number_of(out->dtype);
    cuda_launch(call->queue, kernel, CUDA_STEPS(args->n), args);
}

/* ---- of one input ---- */

typedef struct pointwise_way {
    const co_op *op;
    cuda_kernel forward, backward;
} pointwise_way;

static const pointwise_way pointwise_ways[] = {
    {&co_op_relu, CUDA_pointwise_relu, CUDA_pointwise_relu_backward},
    {&co_op_tanh, CUDA_pointwise_tanh, CUDA_pointwise_tanh_backward},
    {&co_op_gelu, CUDA_pointwise_gelu, CUDA_pointwise_gelu_backward},
    {&co_op_silu, CUDA_pointwise_silu, CUDA_pointwise_silu_backward},
    {&co_op_scale, CUDA_pointwise_scale, CUDA_pointwise_scale},
};

static const pointwise_way *pointwise_find(const co_call *call)
{
    const pointwise_way *way = pointwise_ways;

    while (way->op != call->op)
        way++;
    return way;
}

static cuda_pointwise pointwise_attr(const co_call *call)
{
    cuda_pointwise args = {.n = 0};

    if (call->op == &co_op_gelu)
        args.tanh = ((const co_gelu_attr *)call->attr)->approximate == CO_GELU_TANH;
    if (call->op == &co_op_scale)
        args.factor = ((const co_scale_attr *)call->attr)->factor;
    return args;
}

/* What the op keeps for its gradient; NULL: nothing. */
static const co_tensor *pointwise_saved(const co_call *call)
{
    return call->op->saves & CO_SAVES_OUT  ? call->out[0]
           : call->op->saves & CO_SAVES_IN ? call->in[0]
                                           : NULL;
}

static co_status pointwise_one_plan(co_call *call)
{
    call->out[0]->layout = call->in[0]->layout;
    return CO_OK;
}

/* Of one input or two: what is kept and the gradient have one layout. */
static co_status pointwise_plan_backward(co_call *call)
{
    const co_tensor *dy = call->grad_out[0], *saved = pointwise_saved(call);
    const co_tensor *like = call->op->n_in > 1 ? call->out[0] : saved ? saved : dy;
    pointwise_self *self = call->self;
    size_t used = 0;

    self->dy = cuda_plan_operand(call, &used, dy, like);
    for (int i = 0; i < call->op->n_in; i++) {
        if (call->op->n_in > 1)
            self->in[i] = cuda_plan_operand(call, &used, call->in[i], like);
        if (call->grad_in[i])
            call->grad_in[i]->layout = like->layout;
    }
    return CO_OK;
}

static co_status pointwise_one_forward(co_call *call, const co_run *run)
{
    cuda_pointwise args = pointwise_attr(call);

    (void)run;
    args.x = call->in[0]->data;
    pointwise_launch(call, pointwise_find(call)->forward, &args, call->out[0]);
    return CO_OK;
}

static co_status pointwise_one_backward(co_call *call, const co_run *run)
{
    const co_tensor *saved = pointwise_saved(call);
    cuda_pointwise args = pointwise_attr(call);

    (void)run;
    if (!call->grad_in[0])
        return CO_OK;
    args.x = cuda_bring_operand(call, &((const pointwise_self *)call->self)->dy);
    args.y = saved ? saved->data : NULL;
    pointwise_launch(call, pointwise_find(call)->backward, &args, call->grad_in[0]);
    return CO_OK;
}

/* ---- of two inputs ---- */

/* Channels come last if they do in one of them. */
static co_status pointwise_two_plan(co_call *call)
{
    const co_tensor *like = cuda_is_last(call->in[0]) ? call->in[0] : call->in[1];
    pointwise_self *self = call->self;
    size_t used = 0;

    for (int i = 0; i < 2; i++)
        self->in[i] = cuda_plan_operand(call, &used, call->in[i], like);
    call->out[0]->layout = like->layout;
    return CO_OK;
}

static co_status pointwise_two_forward(co_call *call, const co_run *run)
{
    const pointwise_self *self = call->self;
    cuda_pointwise args = {.x = cuda_bring_operand(call, &self->in[0]),
                           .y = cuda_bring_operand(call, &self->in[1])};

    (void)run;
    pointwise_launch(call, call->op == &co_op_mul ? CUDA_pointwise_mul : CUDA_pointwise_add, &args,
                     call->out[0]);
    return CO_OK;
}

static co_status pointwise_mul_backward(co_call *call, const co_run *run)
{
    const pointwise_self *self = call->self;
    const void *dy = cuda_bring_operand(call, &self->dy);

    (void)run;
    for (int i = 0; i < 2; i++) {
        cuda_pointwise args = {.x = dy};

        if (!call->grad_in[i])
            continue;
        args.y = cuda_bring_operand(call, &self->in[1 - i]);
        pointwise_launch(call, CUDA_pointwise_mul, &args, call->grad_in[i]);
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

static co_status pointwise_copy_plan_backward(co_call *call)
{
    for (int i = 0; i < call->op->n_in; i++)
        if (call->grad_in[i] && co_shape_equal(&call->grad_in[i]->shape, &call->grad_out[0]->shape))
            call->grad_in[i]->layout = call->grad_out[0]->layout;
    return CO_OK;
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
    const bool plain = from->layout.format == CO_FORMAT_PLAIN;
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
                         .channels = plain ? 0 : (uint32_t)shape->dim[1],
                         .type = cuda_number_of(from->dtype),
                         .scale = (float)(1 / (1 - p))};
    const bool quads = plain && !channels; /* a thread has four */

    cuda_launch(call->queue, quads ? CUDA_pointwise_dropout : CUDA_pointwise_dropout_spans,
                args.rows * (size_t)(quads ? (args.count + 3) / 4 : args.count), &args);
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

#define POINTWISE_KERNEL(name, ...)                                                                \
    const co_kernel co_cuda_##name = {.op = #name,                                                 \
                                      .half = CUDA_HALF,                                           \
                                      .self_size = sizeof(pointwise_self),                         \
                                      .supports = cuda_fits,                                       \
                                      __VA_ARGS__}
#define POINTWISE_ONE(name, place)                                                                 \
    POINTWISE_KERNEL(name, .reads = CUDA_READS, .plan = pointwise_one_plan,                        \
                     .plan_backward = pointwise_plan_backward, .forward = pointwise_one_forward,   \
                     .backward = pointwise_one_backward, .in_place = place)
#define POINTWISE_DROPOUT(name)                                                                    \
    POINTWISE_KERNEL(name, .reads = CUDA_READS, .plan = pointwise_one_plan,                        \
                     .plan_backward = pointwise_copy_plan_backward,                                \
                     .forward = pointwise_dropout_forward, .backward = pointwise_dropout_backward, \
                     .in_place = true)

POINTWISE_ONE(relu, true);
POINTWISE_ONE(tanh, true);
POINTWISE_ONE(gelu, false);
POINTWISE_ONE(silu, false);
POINTWISE_ONE(scale, true);
POINTWISE_DROPOUT(dropout);
POINTWISE_DROPOUT(dropout2d);
POINTWISE_KERNEL(mul, .reads = CUDA_READS, .plan = pointwise_two_plan,
                 .plan_backward = pointwise_plan_backward, .forward = pointwise_two_forward,
                 .backward = pointwise_mul_backward);
POINTWISE_KERNEL(add, .reads = CUDA_READS, .plan = pointwise_two_plan,
                 .plan_backward = pointwise_copy_plan_backward, .forward = pointwise_two_forward,
                 .backward = pointwise_copy_backward, .in_place = true);
/* Of plain tensors alone: their order is that of the row. */
POINTWISE_KERNEL(flatten, .forward = pointwise_copy_forward, .backward = pointwise_copy_backward,
                 .in_place = true);
