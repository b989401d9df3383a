/* sequence.c - rows for tokens and positions. */
#include "kernels/cuda/embedding.h"

#include "backends/cuda/cuda.h"

/* ---- embedding ---- */

static cuda_embedding embedding_sizes(const co_call *call)
{
    const int64_t *weight = call->param[0].shape.dim;

    return (cuda_embedding){.token = call->in[0]->data,
                            .tokens = (uint32_t)cuda_count_of(call->in[0]),
                            .vocab = (uint32_t)weight[0],
                            .size = (uint32_t)weight[1]};
}

static co_status embedding_forward(co_call *call, const co_run *run)
{
    cuda_embedding args = embedding_sizes(call);

    (void)run;
    args.out = call->out[0]->data;
    args.x = call->param[0].data;
    cuda_launch(call->queue, CUDA_embedding_rows, cuda_count_of(call->out[0]), &args);
    return CO_OK;
}

static co_status embedding_backward(co_call *call, const co_run *run)
{
    cuda_embedding args = embedding_sizes(call);

    args.out = call->grad_param[0].data;
    args.x = call->grad_out[0]->data;
    args.accumulate = run->accumulate;
    cuda_launch_blocks(call->queue, CUDA_embedding_backward, args.vocab, &args);
    return CO_OK;
}

/* ---- positions ---- */

static cuda_positions positions_sizes(const co_call *call)
{
    const size_t n = (size_t)call->in[0]->shape.dim[0];

    return (cuda_positions){.weight = call->param[0].data,
                            .n = (uint32_t)n,
                            .count = (uint32_t)(cuda_count_of(call->in[0]) / n),
                            .rows = (uint32_t)cuda_count_of(&call->param[0])};
}

static co_status positions_forward(co_call *call, const co_run *run)
{
    cuda_positions args = positions_sizes(call);

    (void)run;
    args.out = call->out[0]->data;
    args.x = call->in[0]->data;
    cuda_launch(call->queue, CUDA_positions_add, cuda_count_of(call->out[0]), &args);
    return CO_OK;
}

static co_status positions_backward(co_call *call, const co_run *run)
{
    cuda_positions args = positions_sizes(call);

    args.out = call->grad_param[0].data;
    args.x = call->grad_out[0]->data;
    args.accumulate = run->accumulate;
    cuda_launch(call->queue, CUDA_positions_backward, args.rows, &args);
    return cuda_copy_tensor(call, call->grad_in[0], call->grad_out[0]);
}

const co_kernel co_cuda_embedding = {.op = "embedding",
                                     .supports = cuda_fits,
                                     .forward = embedding_forward,
                                     .backward = embedding_backward};

const co_kernel co_cuda_positions = {.op = "positions",
                                     .supports = cuda_fits,
                                     .forward = positions_forward,
                                     .backward = positions_backward};
