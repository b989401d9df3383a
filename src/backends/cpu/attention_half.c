/*
 * attention_half.c - attention in bf16 by AMX, or by AVX-512 with BF16. A task of a thread is what
 * one head of keys and values of one sample has, as the heads of queries that share it add up its
 * gradients.
 *
 * Does not drop weights, and does not decode.
 */
#include "backends/cpu/attention_half.h"

#include "backends/cpu/product_half.h"
#include "core/isa.h"
#include "core/parallel.h"

bool attention_half_takes(const co_call *call, const char **why)
{
    *why = "its tensors are not bf16";
    if (call->in[0]->dtype != CO_BF16 || call->out[0]->dtype != CO_BF16)
        return false;
    *why = "it drops weights";
    if (call->training && ((const co_attention_attr *)call->attr)->dropout > 0)
        return false;
    *why = "it is for positions one by one";
    return !call->decode;
}

co_status attention_half_plan_with(co_call *call, const attention_half_loops *loops,
                                   const gemm_half_loops *products)
{
    const attention_shape shape = cpu_attention_measure(call);
    attention_half *self = call->self;

    self->loops = loops;
    self->products = products;
    call->workspace_bytes = cpu_attention_norm_bytes(call);
    cpu_need_scratch(call, 0, loops->room(&shape));
    return CO_OK;
}

/* Sample n, head h of queries, of `x` or its gradient. */
static attention_half_head attention_half_find(void *data, const co_call *call, int64_t n,
                                               int64_t h)
{
    const co_attention_attr *a = call->attr;
    const attention_shape shape = cpu_attention_measure(call);
    const int64_t shared = h * a->kv_heads / a->heads;
    uint16_t *x = (uint16_t *)data + n * shape.length * shape.in;

    return (attention_half_head){x + h * shape.size, x + (a->heads + shared) * shape.size,
                                 x + (a->heads + a->kv_heads + shared) * shape.size};
}

static void attention_half_forward_head(const co_call *call, int64_t n, int64_t h, void *room)
{
    const attention_half *self = call->self;
    const attention_shape shape = cpu_attention_measure(call);
    const attention_half_head head = attention_half_find(call->in[0]->data, call, n, h);

    self->loops->forward((uint16_t *)call->out[0]->data + n * shape.length * shape.out +
                             h * shape.size,
                         cpu_attention_norm(call, n, h), &head,
                         &(attention_half_task){&shape, self->products, room});
}

/* What a head of a sample needs, by one thread. */
typedef void (*attention_half_fn)(const co_call *call, int64_t n, int64_t h, void *room);

static void attention_half_run(const co_call *call, int64_t heads, attention_half_fn each)
{
    const int64_t tasks = call->in[0]->shape.dim[0] * heads;
    const int threads = cpu_threads(call);

    CO_PARALLEL_FOR(threads)
    for (int t = 0; t < threads; t++) {
        const co_range mine = co_parallel_part(tasks, t, threads);

        for (int64_t i = mine.begin; i < mine.end; i++)
            each(call, i / heads, i % heads, cpu_own_scratch(call, t));
    }
}

co_status attention_half_forward(co_call *call, const co_run *run)
{
    (void)run;
    attention_half_run(call, ((const co_attention_attr *)call->attr)->heads,
                       attention_half_forward_head);
    return CO_OK;
}

/* One head of keys and values. */
static void attention_half_backward_head(const co_call *call, int64_t n, int64_t shared, void *room)
{
    const attention_half *self = call->self;
    const co_attention_attr *a = call->attr;
    const attention_shape shape = cpu_attention_measure(call);
    const int64_t each = a->heads / a->kv_heads;

    for (int64_t i = 0; i < each; i++) {
        const int64_t h = shared * each + i, at = n * shape.length * shape.out + h * shape.size;
        const attention_half_head head = attention_half_find(call->in[0]->data, call, n, h);
        const attention_half_gradient to = {
            .dx = attention_half_find(call->grad_in[0]->data, call, n, h),
            .y = (const uint16_t *)call->out[0]->data + at,
            .dy = (const uint16_t *)call->grad_out[0]->data + at,
            .first = i == 0,
            .last = i == each - 1};

        self->loops->backward(&to, &head, cpu_attention_norm(call, n, h),
                              &(attention_half_task){&shape, self->products, room});
    }
}

co_status attention_half_backward(co_call *call, const co_run *run)
{
    (void)run;
    if (call->grad_in[0])
        attention_half_run(call, ((const co_attention_attr *)call->attr)->kv_heads,
                           attention_half_backward_head);
    return CO_OK;
}

static bool attention_half_supports(const co_call *call, const char **why)
{
    *why = "this CPU has no AVX-512 with bf16";
    if (!co_isa_has(CO_ISA_AVX512_BF16))
        return false;
    *why = "this CPU multiplies floats faster";
    return (co_isa_has(CO_ISA_AMX) || co_isa_multiplies_bf16()) && attention_half_takes(call, why);
}

static co_status attention_half_plan(co_call *call)
{
#ifdef CO_KERNELS_X86
    return attention_half_plan_with(call, &attention_half_loops_bf16, product_half_choose());
#else
    (void)call; /* never chosen */
    return CO_OK;
#endif
}

const co_kernel co_cpu_attention_half = {
    .op = "attention",
    .name = "bf16",
    .self_size = sizeof(attention_half),
    .half = CPU_HALF,
    .supports = attention_half_supports,
    .plan = attention_half_plan,
    .forward = attention_half_forward,
    .backward = attention_half_backward,
};
