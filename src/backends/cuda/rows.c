/* rows.c - log_softmax, and losses. */
#include "kernels/cuda/rows.h"
#include "backends/cuda/cuda.h"
#include "device/cuda/lanes.h"

/* Of the op's input, whose shape is that of its gradient. */
static cuda_rows rows_sizes(const co_shape *shape)
{
    cuda_rows args = {.rows = (uint32_t)shape->dim[0],
                      .width = (uint32_t)(co_shape_count(shape) / shape->dim[0])};

    args.lanes = cuda_lanes(args.width);
    return args;
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
    cuda_rows args = rows_sizes(&call->in[0]->shape);

    (void)run;
    args.out = call->out[0]->data;
    args.x = call->in[0]->data;
    rows_launch(call, CUDA_rows_log_softmax, &args);
    return CO_OK;
}

static co_status rows_log_softmax_backward(co_call *call, const co_run *run)
{
    cuda_rows args = rows_sizes(&call->out[0]->shape);

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
    cuda_rows args = rows_sizes(&call->in[0]->shape);

    args.x = call->in[0]->data;
    if (call->op->target == CO_TARGET_LABEL)
        args.label = call->in[1]->data;
    else
        args.y = call->in[1]->data;
    if (call->op == &co_op_cross_entropy)
        args.smoothing = (float)((const co_cross_entropy_attr *)call->attr)->label_smoothing;
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

static bool rows_supports_labels(const co_call *call, const char **why)
{
    *why = "labels of positions";
    return call->in[0]->shape.ndim == 2 && cuda_fits(call, why);
}

static co_status rows_cross_entropy_forward(co_call *call, const co_run *run)
{
    cuda_rows args = rows_loss_forward(call);

    (void)run;
    rows_launch(call, CUDA_rows_cross_entropy, &args);
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

#define ROWS_KERNEL(name, way, takes)                                                              \
    const co_kernel co_cuda_##name = {.op = #name,                                                 \
                                      .supports = takes,                                           \
                                      .forward = rows_##way##_forward,                             \
                                      .backward = rows_##way##_backward}

ROWS_KERNEL(nll_loss, nll, cuda_fits);
ROWS_KERNEL(cross_entropy, cross_entropy, rows_supports_labels);
ROWS_KERNEL(mse_loss, values, cuda_fits);
ROWS_KERNEL(l1_loss, values, cuda_fits);
ROWS_KERNEL(bce_with_logits_loss, values, cuda_fits);

const co_kernel co_cuda_log_softmax = {.op = "log_softmax",
                                       .supports = cuda_fits,
                                       .forward = rows_log_softmax_forward,
                                       .backward = rows_log_softmax_backward,
                                       .in_place = true};
