/* rows.c - log_softmax, and losses. */
#include "kernels/cuda/rows.h"
#include "backends/cuda/cuda.h"
#include "device/cuda/lanes.h"

/* Of the op's input, or what has its shape and type. */
static cuda_rows rows_sizes(const co_tensor *tensor)
{
    const co_shape *shape = &tensor->shape;
    cuda_rows args = {.rows = (uint32_t)shape->dim[0],
                      .width = (uint32_t)(co_shape_count(shape) / shape->dim[0]),
                      .type = cuda_number_of(tensor->dtype)};

    args.lanes = cuda_lanes(args.width);
    return args;
}

/* Of logits (N, T, C): a row for each position. */
static void rows_take_positions(cuda_rows *args, const co_shape *shape)
{
    args->positions = shape->ndim == 3 ? (uint32_t)shape->dim[1] : 1;
    args->rows *= args->positions;
    args->width /= args->positions;
    args->lanes = cuda_lanes(args->width);
}

static void rows_launch(const co_call *call, cuda_kernel kernel, cuda_rows *args)
{
    cuda_launch_blocks(call->queue, kernel, cuda_row_blocks(args->rows, args->lanes), args);
}

static size_t rows_count(const cuda_rows *args)
{
    return (size_t)args->rows * args->width;
}

/* ---- log_softmax ---- */

static co_status rows_log_softmax_forward(co_call *call, const co_run *run)
{
    cuda_rows args = rows_sizes(call->in[0]);

    (void)run;
    args.out = call->out[0]->data;
    args.x = call->in[0]->data;
    rows_launch(call, CUDA_rows_log_softmax, &args);
    return CO_OK;
}

static co_status rows_log_softmax_backward(co_call *call, const co_run *run)
{
    cuda_rows args = rows_sizes(call->out[0]);

    (void)run;
    if (!call->grad_in[0])
        return CO_OK;
    args.out = call->grad_in[0]->data;
    args.x = call->grad_out[0]->data;
    args.y = call->out[0]->data;
    rows_launch(call, CUDA_rows_log_softmax_backward, &args);
    return CO_OK;
}

/* ---- losses ---- */

static cuda_rows rows_loss(const co_call *call)
{
    cuda_rows args = rows_sizes(call->in[0]);

    args.x = call->in[0]->data;
    if (call->op->target == CO_TARGET_LABEL)
        args.label = call->in[1]->data;
    else
        args.y = call->in[1]->data;
    if (call->op == &co_op_cross_entropy) {
        args.smoothing = (float)((const co_cross_entropy_attr *)call->attr)->label_smoothing;
        rows_take_positions(&args, &call->in[0]->shape);
    }
    args.term = call->op == &co_op_mse_loss  ? CUDA_SQUARE
                : call->op == &co_op_l1_loss ? CUDA_ABSOLUTE
                                             : CUDA_BINARY;
    return args;
}

static cuda_rows rows_loss_forward(const co_call *call)
{
    cuda_rows args = rows_loss(call);

    args.out = call->out[0]->data;
    return args;
}

static cuda_rows rows_loss_backward(const co_call *call, const co_run *run)
{
    cuda_rows args = rows_loss(call);

    args.out = call->grad_in[0]->data;
    args.values = run->values;
    args.phantom = run->phantom;
    return args;
}

/* The losses of positions, before their mean. */
static co_status rows_cross_entropy_plan(co_call *call)
{
    const cuda_rows args = rows_loss(call);

    call->scratch_bytes = args.positions > 1 ? args.rows * sizeof(float) : 0;
    return CO_OK;
}

static co_status rows_cross_entropy_forward(co_call *call, const co_run *run)
{
    cuda_rows args = rows_loss_forward(call), mean = args;

    (void)run;
    if (args.positions > 1)
        args.out = call->scratch;
    rows_launch(call, CUDA_rows_cross_entropy, &args);
    if (args.positions == 1)
        return CO_OK;
    mean.x = args.out;
    mean.type = CUDA_NUMBER_F32;
    mean.rows = args.rows / args.positions;
    mean.width = args.positions;
    mean.lanes = cuda_lanes(mean.width);
    rows_launch(call, CUDA_rows_mean, &mean);
    return CO_OK;
}

static co_status rows_cross_entropy_backward(co_call *call, const co_run *run)
{
    cuda_rows args;

    if (!call->grad_in[0])
        return CO_OK;
    args = rows_loss_backward(call, run);
    rows_launch(call, CUDA_rows_cross_entropy_backward, &args);
    return CO_OK;
}

static co_status rows_nll_forward(co_call *call, const co_run *run)
{
    cuda_rows args = rows_loss_forward(call);

    (void)run;
    cuda_launch(call->queue, CUDA_rows_nll, args.rows, &args);
    return CO_OK;
}

static co_status rows_values_forward(co_call *call, const co_run *run)
{
    cuda_rows args = rows_loss_forward(call);

    (void)run;
    rows_launch(call, CUDA_rows_values, &args);
    return CO_OK;
}

/* A thread for each element of dx. */
static co_status rows_each_backward(const co_call *call, const co_run *run, cuda_kernel kernel)
{
    cuda_rows args;

    if (!call->grad_in[0])
        return CO_OK;
    args = rows_loss_backward(call, run);
    cuda_launch(call->queue, kernel, rows_count(&args), &args);
    return CO_OK;
}

static co_status rows_nll_backward(co_call *call, const co_run *run)
{
    return rows_each_backward(call, run, CUDA_rows_nll_backward);
}

static co_status rows_values_backward(co_call *call, const co_run *run)
{
    return rows_each_backward(call, run, CUDA_rows_values_backward);
}

#define ROWS_KERNEL(name, way)                                                                     \
    const co_kernel co_cuda_##name = {.op = #name,                                                 \
                                      .supports = cuda_fits,                                       \
                                      .forward = rows_##way##_forward,                             \
                                      .backward = rows_##way##_backward,                           \
                                      .half = CUDA_HALF}

ROWS_KERNEL(nll_loss, nll);
ROWS_KERNEL(mse_loss, values);
ROWS_KERNEL(l1_loss, values);
ROWS_KERNEL(bce_with_logits_loss, values);

const co_kernel co_cuda_cross_entropy = {.op = "cross_entropy",
                                         .supports = cuda_fits,
                                         .plan = rows_cross_entropy_plan,
                                         .forward = rows_cross_entropy_forward,
                                         .backward = rows_cross_entropy_backward,
                                         .half = CUDA_HALF};

const co_kernel co_cuda_log_softmax = {.op = "log_softmax",
                                       .supports = cuda_fits,
                                       .forward = rows_log_softmax_forward,
                                       .backward = rows_log_softmax_backward,
                                       .half = CUDA_HALF,
                                       .in_place = true};
