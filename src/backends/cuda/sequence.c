/* sequence.c - rows for tokens and positions, and attention between positions. */
#include <math.h>

#include "backends/cuda/cuda.h"
#include "core/rng.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/embedding.h"

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

/* ---- attention ---- */

static bool attention_supports(const co_call *call, const char **why)
{
    const co_attention_attr *a = call->attr;

    *why = "heads of more than 128 numbers";
    return call->out[0]->shape.dim[2] / a->heads <= CUDA_ATTENTION_SIZE && cuda_fits(call, why);
}

/* `run` is NULL where the plan is made. */
static cuda_attention attention_sizes(const co_call *call, const co_run *run)
{
    const co_attention_attr *a = call->attr;
    const int64_t *out = call->out[0]->shape.dim;
    const uint32_t size = (uint32_t)(out[2] / a->heads);

    return (cuda_attention){.x = call->in[0]->data,
                            .norm = call->workspace,
                            .n = (uint32_t)out[0],
                            .length = (uint32_t)out[1],
                            .heads = (uint32_t)a->heads,
                            .kv_heads = (uint32_t)a->kv_heads,
                            .size = size,
                            .causal = a->causal,
                            .scale = 1 / sqrtf((float)size),
                            .dropout = call->training ? a->dropout : 0,
                            .values = run ? run->values : NULL,
                            .sample = run ? run->sample : NULL,
                            .seed = run ? run->seed : 0,
                            .stream = CO_RNG_DROPOUT | call->node << 8,
                            .kept = (float)(1 / (1 - a->dropout))};
}

/* A number for each row of each head. */
static size_t attention_line_bytes(const cuda_attention *s)
{
    return (size_t)s->n * s->heads * s->length * sizeof(float);
}

static size_t attention_blocks(const cuda_attention *s, uint32_t heads)
{
    const uint32_t tile = CUDA_ATTENTION_TILE;

    return (size_t)s->n * heads * ((s->length + tile - 1) / tile);
}

static co_status attention_plan(co_call *call)
{
    const cuda_attention s = attention_sizes(call, NULL);

    call->workspace_bytes = attention_line_bytes(&s);
    return CO_OK;
}

static co_status attention_plan_backward(co_call *call)
{
    const cuda_attention s = attention_sizes(call, NULL);

    call->scratch_bytes = attention_line_bytes(&s);
    return CO_OK;
}

static co_status attention_forward(co_call *call, const co_run *run)
{
    cuda_attention args = attention_sizes(call, run);

    args.out = call->out[0]->data;
    cuda_launch_blocks(call->queue, CUDA_attention_forward, attention_blocks(&args, args.heads),
                       &args);
    return CO_OK;
}

static co_status attention_backward(co_call *call, const co_run *run)
{
    cuda_attention args = attention_sizes(call, run);

    if (!call->grad_in[0])
        return CO_OK;
    args.out = call->grad_in[0]->data;
    args.y = call->out[0]->data;
    args.dy = call->grad_out[0]->data;
    args.mean = call->scratch;
    cuda_launch_blocks(call->queue, CUDA_attention_backward_queries,
                       attention_blocks(&args, args.heads), &args);
    cuda_launch_blocks(call->queue, CUDA_attention_backward_keys,
                       attention_blocks(&args, args.kv_heads), &args);
    return CO_OK;
}

const co_kernel co_cuda_embedding = {.op = "embedding",
                                     .supports = cuda_fits,
                                     .forward = embedding_forward,
                                     .backward = embedding_backward};

const co_kernel co_cuda_positions = {.op = "positions",
                                     .supports = cuda_fits,
                                     .forward = positions_forward,
                                     .backward = positions_backward};

const co_kernel co_cuda_attention = {.op = "attention",
                                     .name = "tiles",
                                     .supports = attention_supports,
                                     .plan = attention_plan,
                                     .plan_backward = attention_plan_backward,
                                     .forward = attention_forward,
                                     .backward = attention_backward};
