/*
 * attention.c - attention with the loops of kernels/attention. A task of a thread is what one head
 * of keys and values of one sample has, as the heads of queries that share it add up its gradients.
 */
#include "backends/cpu/attention.h"

#include <math.h>
#include <string.h>

#include "core/parallel.h"

#define ATTENTION_SMALL 1e5 /* decoding: with fewer products one thread is faster */

typedef struct attention {
    cpu_operand src, back_src, back_out, grad_out; /* plain */
} attention;

static const attention_loops *attention_choose(void)
{
    return KERNELS_CHOOSE(attention_loops, &attention_loops_basic);
}

attention_shape cpu_attention_measure(const co_call *call)
{
    const co_attention_attr *a = call->attr;
    const int64_t *in = call->in[0]->shape.dim, *out = call->out[0]->shape.dim;
    const int64_t size = out[2] / a->heads;

    return (attention_shape){.length = in[1],
                             .size = size,
                             .in = in[2],
                             .out = out[2],
                             .scale = (float)(1 / sqrt((double)size)),
                             .causal = a->causal,
                             .drops = call->training && a->dropout > 0};
}

/* Of sample n, head h; where weights are dropped. */
static attention_dropout attention_find_dropout(const co_call *call, const co_run *run, int64_t n,
                                                int64_t h)
{
    const co_attention_attr *a = call->attr;
    const uint64_t length = (uint64_t)call->in[0]->shape.dim[1];

    if (!call->training || a->dropout <= 0)
        return (attention_dropout){.first = 0};
    return (attention_dropout){.rng = {run->seed, CO_RNG_DROPOUT | call->node << 8,
                                       run->values->given.step, run->sample[n]},
                               .first = (uint64_t)h * length * length,
                               .below = (uint32_t)ceil(a->dropout * 0x1p24),
                               .scale = (float)(1 / (1 - a->dropout))};
}

static size_t attention_room_bytes(const co_call *call)
{
    const attention_shape shape = cpu_attention_measure(call);

    return attention_choose()->room(&shape) * sizeof(float);
}

/* Of a call that decodes: what is kept of a position is its keys, then its values. */
static attention_shape attention_measure_kept(const co_call *call)
{
    const co_attention_attr *a = call->attr;
    attention_shape shape = cpu_attention_measure(call);

    shape.length = call->decode;
    shape.in = 2 * a->kv_heads * shape.size;
    return shape;
}

static bool attention_supports(const co_call *call, const char **why)
{
    if (!cpu_takes_floats(call, why))
        return false;
    *why = "later positions are not known yet";
    return !call->decode || ((const co_attention_attr *)call->attr)->causal;
}

size_t cpu_attention_norm_bytes(const co_call *call)
{
    const co_attention_attr *a = call->attr;
    const int64_t *in = call->in[0]->shape.dim;

    return (size_t)(in[0] * a->heads * in[1]) * sizeof(float);
}

static co_status attention_plan(co_call *call)
{
    const attention_shape kept = attention_measure_kept(call);
    attention *self = call->self;
    size_t used = 0;

    self->src = cpu_plan_operand(call, &used, call->in[0], cpu_plain());
    if (call->decode) {
        cpu_need_scratch(call, used, attention_choose()->decode_room(&kept) * sizeof(float));
        return CO_OK;
    }
    call->workspace_bytes = cpu_attention_norm_bytes(call);
    cpu_need_scratch(call, used, attention_room_bytes(call));
    return CO_OK;
}

static co_status attention_plan_backward(co_call *call)
{
    attention *self = call->self;
    size_t used = 0;

    self->back_src = cpu_plan_operand(call, &used, call->in[0], cpu_plain());
    self->back_out = cpu_plan_operand(call, &used, call->out[0], cpu_plain());
    self->grad_out = cpu_plan_operand(call, &used, call->grad_out[0], cpu_plain());
    cpu_need_scratch(call, used, attention_room_bytes(call));
    return CO_OK;
}

/* Sample n, head h of queries. */
static attention_head attention_find(float *x, const co_call *call, int64_t n, int64_t h)
{
    const co_attention_attr *a = call->attr;
    const attention_shape shape = cpu_attention_measure(call);
    const int64_t shared = h * a->kv_heads / a->heads;

    x += n * shape.length * shape.in;
    return (attention_head){x + h * shape.size, x + (a->heads + shared) * shape.size,
                            x + (a->heads + a->kv_heads + shared) * shape.size};
}

float *cpu_attention_norm(const co_call *call, int64_t n, int64_t h)
{
    const co_attention_attr *a = call->attr;

    return (float *)call->workspace + (n * a->heads + h) * call->in[0]->shape.dim[1];
}

/* Position n of the call, head h of queries; its keys and values are kept already. */
static void attention_decode_head(const co_call *call, const co_decoding *decoding, float *x,
                                  int64_t n, int64_t h, float *room)
{
    const co_attention_attr *a = call->attr;
    const attention_shape shape = attention_measure_kept(call);
    const int64_t width = call->in[0]->shape.dim[2], shared = h * a->kv_heads / a->heads;
    float *kept = decoding->kept[call->node] + shared * shape.size;
    const attention_head head = {x + n * width + h * shape.size, kept,
                                 kept + a->kv_heads * shape.size};

    attention_choose()->decode((float *)call->out[0]->data + n * shape.out + h * shape.size, &head,
                               decoding->position + n + 1, room, &shape);
}

static void attention_decode(co_call *call, const co_decoding *decoding)
{
    const attention *self = call->self;
    const co_attention_attr *a = call->attr;
    const attention_shape shape = attention_measure_kept(call);
    const int64_t n = call->in[0]->shape.dim[0], width = call->in[0]->shape.dim[2];
    const double pairs = (double)(n * a->heads) * (double)(decoding->position + n);
    const int threads =
        co_parallel_threads(pairs * (double)shape.size < ATTENTION_SMALL ? 1 : call->threads);
    float *x;

    cpu_bring(&self->src, call, threads);
    x = cpu_address(&self->src, call);
    for (int64_t i = 0; i < n; i++)
        memcpy(decoding->kept[call->node] + (decoding->position + i) * shape.in,
               x + i * width + a->heads * shape.size, (size_t)shape.in * sizeof(float));
    CO_PARALLEL_FOR(threads)
    for (int t = 0; t < threads; t++) {
        const co_range mine = co_parallel_part(n * a->heads, t, threads);

        for (int64_t i = mine.begin; i < mine.end; i++)
            attention_decode_head(call, decoding, x, i / a->heads, i % a->heads,
                                  cpu_own_scratch(call, t));
    }
}

static co_status attention_forward(co_call *call, const co_run *run)
{
    const attention *self = call->self;
    const co_attention_attr *a = call->attr;
    const attention_shape shape = cpu_attention_measure(call);
    const attention_loops *loops = attention_choose();
    const int64_t tasks = call->in[0]->shape.dim[0] * a->heads;
    const int threads = cpu_threads(call);
    float *x;

    if (run->decoding) {
        attention_decode(call, run->decoding);
        return CO_OK;
    }
    cpu_bring(&self->src, call, threads);
    x = cpu_address(&self->src, call);
    CO_PARALLEL_FOR(threads)
    for (int t = 0; t < threads; t++) {
        const co_range mine = co_parallel_part(tasks, t, threads);

        for (int64_t i = mine.begin; i < mine.end; i++) {
            const int64_t n = i / a->heads, h = i % a->heads;
            const attention_head head = attention_find(x, call, n, h);
            const attention_dropout dropout = attention_find_dropout(call, run, n, h);

            loops->forward(
                (float *)call->out[0]->data + n * shape.length * shape.out + h * shape.size,
                cpu_attention_norm(call, n, h), &head, &dropout, cpu_own_scratch(call, t), &shape);
        }
    }
    return CO_OK;
}

/* One head of keys and values. */
static void attention_backward_head(const co_call *call, const co_run *run, int64_t n,
                                    int64_t shared, float *room)
{
    const attention *self = call->self;
    const co_attention_attr *a = call->attr;
    const attention_shape shape = cpu_attention_measure(call);
    const int64_t each = a->heads / a->kv_heads, at = n * shape.length * shape.out;
    const float *y = cpu_address(&self->back_out, call), *dy = cpu_address(&self->grad_out, call);
    float *x = cpu_address(&self->back_src, call);
    const attention_head first = attention_find(call->grad_in[0]->data, call, n, shared * each);

    for (int64_t t = 0; t < shape.length; t++) {
        memset(first.k + t * shape.in, 0, (size_t)shape.size * sizeof(float));
        memset(first.v + t * shape.in, 0, (size_t)shape.size * sizeof(float));
    }
    for (int64_t h = shared * each; h < (shared + 1) * each; h++) {
        const attention_head head = attention_find(x, call, n, h);
        const attention_head grad = attention_find(call->grad_in[0]->data, call, n, h);
        const attention_dropout dropout = attention_find_dropout(call, run, n, h);

        attention_choose()->backward(&grad, &head, y + at + h * shape.size,
                                     dy + at + h * shape.size, cpu_attention_norm(call, n, h),
                                     &dropout, room, &shape);
    }
}

static co_status attention_backward(co_call *call, const co_run *run)
{
    const attention *self = call->self;
    const co_attention_attr *a = call->attr;
    const int64_t tasks = call->in[0]->shape.dim[0] * a->kv_heads;
    const int threads = cpu_threads(call);

    if (!call->grad_in[0])
        return CO_OK;
    cpu_bring(&self->back_src, call, threads);
    cpu_bring(&self->back_out, call, threads);
    cpu_bring(&self->grad_out, call, threads);
    CO_PARALLEL_FOR(threads)
    for (int t = 0; t < threads; t++) {
        const co_range mine = co_parallel_part(tasks, t, threads);

        for (int64_t i = mine.begin; i < mine.end; i++)
            attention_backward_head(call, run, i / a->kv_heads, i % a->kv_heads,
                                    cpu_own_scratch(call, t));
    }
    return CO_OK;
}

const co_kernel co_cpu_attention = {
    .op = "attention",
    .name = "blocks",
    .reads = CPU_READS,
    .self_size = sizeof(attention),
    .decodes = true,
    .supports = attention_supports,
    .plan = attention_plan,
    .plan_backward = attention_plan_backward,
    .forward = attention_forward,
    .backward = attention_backward,
};
