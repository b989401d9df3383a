/* attention.c - attention between positions, in fp32 and, on tensor cores, in 16 bits. */
#include "kernels/cuda/attention.h"

#include <math.h>

#include "backends/cuda/cuda.h"
#include "core/half.h"
#include "core/rng.h"

static uint32_t attention_size(const co_call *call)
{
    const co_attention_attr *a = call->attr;

    return (uint32_t)(call->out[0]->shape.dim[2] / a->heads);
}

static bool attention_tiles_supports(const co_call *call, const char **why)
{
    *why = "heads of more than 128 numbers";
    return attention_size(call) <= CUDA_ATTENTION_SIZE && cuda_fits(call, why);
}

static bool attention_mma_supports(const co_call *call, const char **why)
{
    *why = "tensors of fp32";
    if (!co_dtype_is_half(call->in[0]->dtype))
        return false;
    *why = "a GPU before compute capability 8.0";
    if (cuda_capability(call->queue) < 80)
        return false;
    *why = "heads of no multiple of 8 numbers";
    return attention_size(call) % CUDA_ATTENTION_UNIT == 0 && attention_tiles_supports(call, why);
}

/* `run` is NULL where the plan is made. */
static cuda_attention attention_sizes(const co_call *call, const co_run *run)
{
    const co_attention_attr *a = call->attr;
    const int64_t *out = call->out[0]->shape.dim;
    const uint32_t size = attention_size(call);

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

static void attention_launch(const co_call *call, cuda_kernel kernel, cuda_attention *args,
                             uint32_t heads, uint32_t tile)
{
    cuda_launch_blocks(call->queue, kernel,
                       (size_t)args->n * heads * ((args->length + tile - 1) / tile), args);
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
    attention_launch(call, CUDA_attention_forward, &args, args.heads, CUDA_ATTENTION_TILE);
    return CO_OK;
}

static cuda_attention attention_gradients(const co_call *call, const co_run *run)
{
    cuda_attention args = attention_sizes(call, run);

    args.out = call->grad_in[0]->data;
    args.y = call->out[0]->data;
    args.dy = call->grad_out[0]->data;
    args.mean = call->scratch;
    return args;
}

static co_status attention_backward(co_call *call, const co_run *run)
{
    cuda_attention args;

    if (!call->grad_in[0])
        return CO_OK;
    args = attention_gradients(call, run);
    attention_launch(call, CUDA_attention_backward_queries, &args, args.heads, CUDA_ATTENTION_TILE);
    attention_launch(call, CUDA_attention_backward_keys, &args, args.kv_heads, CUDA_ATTENTION_TILE);
    return CO_OK;
}

/* ---- on tensor cores ---- */

/* For bf16 and for fp16; of heads of at most 64 numbers, and of more. */
typedef cuda_kernel attention_kernels[2][2];

#define ATTENTION_KERNELS(way)                                                                     \
    {                                                                                              \
        {CUDA_attention_mma_##way##_bf16_64, CUDA_attention_mma_##way##_bf16_128},                 \
        {                                                                                          \
            CUDA_attention_mma_##way##_f16_64, CUDA_attention_mma_##way##_f16_128                  \
        }                                                                                          \
    }

static void attention_mma_launch(const co_call *call, const attention_kernels kernels,
                                 cuda_attention *args, uint32_t heads)
{
    attention_launch(call, kernels[call->in[0]->dtype == CO_F16][args->size > 64], args, heads,
                     CUDA_ATTENTION_OWN);
}

static co_status attention_mma_forward(co_call *call, const co_run *run)
{
    static const attention_kernels kernels = ATTENTION_KERNELS(forward);
    cuda_attention args = attention_sizes(call, run);

    args.out = call->out[0]->data;
    attention_mma_launch(call, kernels, &args, args.heads);
    return CO_OK;
}

static co_status attention_mma_backward(co_call *call, const co_run *run)
{
    static const attention_kernels queries = ATTENTION_KERNELS(backward_queries),
                                   keys = ATTENTION_KERNELS(backward_keys);
    cuda_attention args;

    if (!call->grad_in[0])
        return CO_OK;
    args = attention_gradients(call, run);
    attention_mma_launch(call, queries, &args, args.heads);
    attention_mma_launch(call, keys, &args, args.kv_heads);
    return CO_OK;
}

const co_kernel co_cuda_attention = {.op = "attention",
                                     .name = "tiles",
                                     .supports = attention_tiles_supports,
                                     .plan = attention_plan,
                                     .plan_backward = attention_plan_backward,
                                     .forward = attention_forward,
                                     .backward = attention_backward};

const co_kernel co_cuda_attention_mma = {.op = "attention",
                                         .name = "tensor-cores",
                                         .supports = attention_mma_supports,
                                         .plan = attention_plan,
                                         .plan_backward = attention_plan_backward,
                                         .forward = attention_mma_forward,
                                         .backward = attention_mma_backward,
                                         .half = CUDA_HALF};
