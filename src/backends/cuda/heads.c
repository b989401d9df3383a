/* heads.c - queries, keys and values of attention: put into one row, and rotated by positions. */
#include "kernels/cuda/heads.h"

#include <math.h>

#include "backends/cuda/cuda.h"

/* ---- concat ---- */

/* Input k and its part of the result, whose rows have `width` numbers. */
static cuda_move heads_part(const co_call *call, int k, uint32_t *width)
{
    const int64_t *dim = call->in[k]->shape.dim;

    *width = 0;
    for (int i = 0; i < 3; i++)
        *width += (uint32_t)call->in[i]->shape.dim[2];
    return (cuda_move){.rows = (uint32_t)(dim[0] * dim[1]),
                       .width = (uint32_t)dim[2],
                       .out_step = (uint32_t)dim[2],
                       .step = (uint32_t)dim[2]};
}

static co_status concat_forward(co_call *call, const co_run *run)
{
    float *to = call->out[0]->data;

    (void)run;
    for (int k = 0; k < 3; k++) {
        uint32_t width;
        cuda_move args = heads_part(call, k, &width);

        args.out = to;
        args.x = call->in[k]->data;
        args.out_step = width;
        cuda_launch(call->queue, CUDA_heads_move, (size_t)args.rows * args.width, &args);
        to += args.width;
    }
    return CO_OK;
}

static co_status concat_backward(co_call *call, const co_run *run)
{
    const float *from = call->grad_out[0]->data;

    (void)run;
    for (int k = 0; k < 3; k++) {
        uint32_t width;
        cuda_move args = heads_part(call, k, &width);

        args.x = from;
        args.step = width;
        from += args.width;
        if (!call->grad_in[k])
            continue;
        args.out = call->grad_in[k]->data;
        cuda_launch(call->queue, CUDA_heads_move, (size_t)args.rows * args.width, &args);
    }
    return CO_OK;
}

/* ---- rotary ---- */

static void rotary_run(const co_call *call, const co_tensor *to, const co_tensor *from, float sign)
{
    const co_rotary_attr *a = call->attr;
    const int64_t *dim = from->shape.dim;
    cuda_rotate args = {.out = to->data,
                        .x = from->data,
                        .rows = (uint32_t)(dim[0] * dim[1]),
                        .length = (uint32_t)dim[1],
                        .turned = (uint32_t)(a->heads + a->kv_heads),
                        .kept = (uint32_t)a->kv_heads,
                        .half = (uint32_t)(dim[2] / (a->heads + 2 * a->kv_heads) / 2),
                        .sign = sign,
                        .log_theta = log2(a->theta)};

    cuda_launch(call->queue, CUDA_heads_rotate, (size_t)args.rows * args.half, &args);
}

static co_status rotary_forward(co_call *call, const co_run *run)
{
    (void)run;
    rotary_run(call, call->out[0], call->in[0], 1);
    return CO_OK;
}

static co_status rotary_backward(co_call *call, const co_run *run)
{
    (void)run;
    if (call->grad_in[0])
        rotary_run(call, call->grad_in[0], call->grad_out[0], -1);
    return CO_OK;
}

const co_kernel co_cuda_concat = {
    .op = "concat", .supports = cuda_fits, .forward = concat_forward, .backward = concat_backward};

const co_kernel co_cuda_rotary = {.op = "rotary",
                                  .supports = cuda_fits,
                                  .forward = rotary_forward,
                                  .backward = rotary_backward,
                                  .in_place = true};
