/* heads.c - rows of sequences: those of images, queries, keys and values put together and rotated.
 */
#include "kernels/cuda/heads.h"

#include <math.h>

#include "backends/cuda/cuda.h"
#include "kernels/cuda/embedding.h"

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
                       .step = (uint32_t)dim[2],
                       .type = cuda_number_of(call->in[k]->dtype),
                       .from = cuda_number_of(call->in[k]->dtype)};
}

static co_status concat_forward(co_call *call, const co_run *run)
{
    size_t at = 0;

    (void)run;
    for (int k = 0; k < 3; k++) {
        uint32_t width;
        cuda_move args = heads_part(call, k, &width);

        args.out = call->out[0]->data;
        args.at = at;
        args.x = call->in[k]->data;
        args.out_step = width;
        cuda_launch(call->queue, CUDA_heads_move, (size_t)args.rows * args.width, &args);
        at += args.width;
    }
    return CO_OK;
}

static co_status concat_backward(co_call *call, const co_run *run)
{
    size_t at = 0;

    (void)run;
    for (int k = 0; k < 3; k++) {
        uint32_t width;
        cuda_move args = heads_part(call, k, &width);

        args.x = call->grad_out[0]->data;
        args.x_at = at;
        args.step = width;
        at += args.width;
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
                        .type = cuda_number_of(from->dtype),
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

/* ---- patches ---- */

static co_status patches_forward(co_call *call, const co_run *run)
{
    (void)run;
    cuda_bring_last(call->queue, call->out[0]->data, call->out[0]->dtype, call->in[0]);
    return CO_OK;
}

static co_status patches_backward(co_call *call, const co_run *run)
{
    (void)run;
    if (call->grad_in[0])
        cuda_take_plain(call->queue, call->grad_in[0], call->grad_out[0]->data,
                        call->grad_out[0]->dtype, false);
    return CO_OK;
}

/* ---- class_token ---- */

/* Sequences, as rows of all their positions. */
static cuda_move class_token_rows(const co_call *call)
{
    const int64_t *dim = call->in[0]->shape.dim;
    const uint32_t width = (uint32_t)(dim[1] * dim[2]), more = width + (uint32_t)dim[2];

    return (cuda_move){.rows = (uint32_t)dim[0], .width = width, .out_step = more, .step = width};
}

static co_status class_token_forward(co_call *call, const co_run *run)
{
    cuda_move args = class_token_rows(call), row = args;
    const uint32_t size = args.out_step - args.width;

    (void)run;
    row.out = call->out[0]->data;
    row.x = call->param[0].data;
    row.width = size;
    row.step = 0;
    cuda_launch(call->queue, CUDA_heads_move, (size_t)row.rows * size, &row);
    args.out = row.out;
    args.at = size;
    args.x = call->in[0]->data;
    cuda_launch(call->queue, CUDA_heads_move, (size_t)args.rows * args.width, &args);
    return CO_OK;
}

static co_status class_token_backward(co_call *call, const co_run *run)
{
    cuda_move args = class_token_rows(call);
    const float *dy = call->grad_out[0]->data;
    const uint32_t each = args.out_step, size = each - args.width;
    cuda_positions sums = {.out = call->grad_param[0].data,
                           .x = dy,
                           .n = args.rows,
                           .count = each,
                           .rows = size,
                           .accumulate = run->accumulate};

    cuda_launch(call->queue, CUDA_positions_backward, size, &sums);
    if (!call->grad_in[0])
        return CO_OK;
    args.out = call->grad_in[0]->data;
    args.x = dy;
    args.x_at = size;
    args.out_step = args.width;
    args.step = each;
    cuda_launch(call->queue, CUDA_heads_move, (size_t)args.rows * args.width, &args);
    return CO_OK;
}

/* ---- first ---- */

static co_status first_forward(co_call *call, const co_run *run)
{
    const int64_t *dim = call->in[0]->shape.dim;
    cuda_move args = {.out = call->out[0]->data,
                      .x = call->in[0]->data,
                      .rows = (uint32_t)dim[0],
                      .width = (uint32_t)dim[2],
                      .out_step = (uint32_t)dim[2],
                      .step = (uint32_t)(dim[1] * dim[2]),
                      .type = cuda_number_of(call->out[0]->dtype),
                      .from = cuda_number_of(call->in[0]->dtype)};

    (void)run;
    cuda_launch(call->queue, CUDA_heads_move, (size_t)args.rows * args.width, &args);
    return CO_OK;
}

static co_status first_backward(co_call *call, const co_run *run)
{
    const int64_t *dim = call->in[0]->shape.dim;
    cuda_move args = {.x = call->grad_out[0]->data,
                      .rows = (uint32_t)dim[0],
                      .width = (uint32_t)dim[2],
                      .out_step = (uint32_t)(dim[1] * dim[2]),
                      .step = (uint32_t)dim[2],
                      .from = cuda_number_of(call->grad_out[0]->dtype)};

    (void)run;
    if (!call->grad_in[0])
        return CO_OK;
    args.out = call->grad_in[0]->data;
    args.type = cuda_number_of(call->grad_in[0]->dtype);
    cuda_launch(call->queue, CUDA_heads_pad, (size_t)args.rows * args.out_step, &args);
    return CO_OK;
}

const co_kernel co_cuda_patches = {.op = "patches",
                                   .reads = CO_READS(CO_FORMAT_CHANNELS_LAST),
                                   .supports = cuda_fits,
                                   .forward = patches_forward,
                                   .backward = patches_backward,
                                   .half = CUDA_HALF};

const co_kernel co_cuda_class_token = {.op = "class_token",
                                       .supports = cuda_fits,
                                       .forward = class_token_forward,
                                       .backward = class_token_backward};

const co_kernel co_cuda_first = {.op = "first",
                                 .supports = cuda_fits,
                                 .forward = first_forward,
                                 .backward = first_backward,
                                 .half = CUDA_HALF};

const co_kernel co_cuda_concat = {.op = "concat",
                                  .supports = cuda_fits,
                                  .forward = concat_forward,
                                  .backward = concat_backward,
                                  .half = CUDA_HALF};

const co_kernel co_cuda_rotary = {.op = "rotary",
                                  .supports = cuda_fits,
                                  .forward = rotary_forward,
                                  .backward = rotary_backward,
                                  .half = CUDA_HALF,
                                  .in_place = true};
