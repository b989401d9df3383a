/*
 * pool.c - maxpool and avgpool on images in blocks of channels, by the loops of kernels/pool: one
 * block of a sample at a time.
 */
#include "kernels/pool/pool.h"
#include "backends/cpu/cpu.h"
#include "core/parallel.h"

typedef struct pool {
    const pool_loops *loops;
    pool_shape shape;
    int64_t planes;              /* blocks of all samples */
    int64_t in_plane, out_plane; /* numbers */
    cpu_operand src, grad_out;   /* in blocks */
} pool;

static bool pool_supports(const co_call *call, const char **why)
{
    const co_pool_attr *a = call->attr;

    if (!cpu_takes(call, why))
        return false;
    *why = "its windows are large";
    return a->k[0] * a->k[1] <= POOL_MOST_PLACES;
}

static const pool_loops *pool_find_loops(const co_tensor *tensor)
{
#ifdef CO_KERNELS_X86
    if (tensor->dtype == CO_BF16)
        return cpu_is_blocked(tensor, CPU_AMX_BLOCK) ? &pool_loops_bf16_wide : &pool_loops_bf16;
#else
    (void)tensor;
#endif
    return pool_choose();
}

static co_status pool_plan(co_call *call)
{
    const co_pool_attr *a = call->attr;
    const int64_t *in = call->in[0]->shape.dim, *out = call->out[0]->shape.dim;
    pool *self = call->self;
    size_t used = 0;
    int lanes;

    self->loops = pool_find_loops(call->in[0]);
    lanes = self->loops->lanes;
    self->shape.counts_padding = a->count_include_pad;
    for (int i = 0; i < 2; i++) {
        self->shape.in[i] = in[2 + i];
        self->shape.out[i] = out[2 + i];
        self->shape.kernel[i] = a->k[i];
        self->shape.stride[i] = a->s[i];
        self->shape.padding[i] = a->p[i];
    }
    self->planes = in[0] * ((in[1] + lanes - 1) / lanes);
    self->in_plane = in[2] * in[3] * lanes;
    self->out_plane = out[2] * out[3] * lanes;
    self->src = cpu_plan_operand(call, &used, call->in[0], cpu_blocks(lanes));
    cpu_set_layout(call->out[0], cpu_blocks(lanes));
    return CO_OK;
}

static co_status pool_plan_max(co_call *call)
{
    pool *self = call->self;

    CO_TRY(pool_plan(call));
    if (call->training)
        call->workspace_bytes = (size_t)(self->planes * self->out_plane);
    return CO_OK;
}

static co_status pool_plan_backward(co_call *call)
{
    pool *self = call->self;
    const co_layout blocks = cpu_blocks(self->loops->lanes);
    size_t used = 0;

    if (!call->grad_in[0])
        return CO_OK;
    self->grad_out = cpu_plan_operand(call, &used, call->grad_out[0], blocks);
    cpu_set_layout(call->grad_in[0], blocks);
    return CO_OK;
}

static void pool_run(const co_call *call, bool max)
{
    const pool *self = call->self;
    const int threads = cpu_threads(call);
    const int64_t cell = (int64_t)self->loops->cell;
    const char *x = cpu_address(&self->src, call);
    uint8_t *place = max ? call->workspace : NULL;
    char *y = call->out[0]->data;

    cpu_bring(&self->src, call, threads);
    CO_PARALLEL_FOR(threads)
    for (int64_t p = 0; p < self->planes; p++) {
        char *to = y + p * self->out_plane * cell;
        const char *from = x + p * self->in_plane * cell;

        if (max)
            self->loops->max(to, place ? place + p * self->out_plane : NULL, from, &self->shape);
        else
            self->loops->mean(to, from, &self->shape);
    }
}

static void pool_run_backward(const co_call *call, bool max)
{
    const pool *self = call->self;
    const int threads = cpu_threads(call);
    const int64_t cell = (int64_t)self->loops->cell;
    const char *dy = cpu_address(&self->grad_out, call);
    const uint8_t *place = call->workspace;
    char *dx;

    if (!call->grad_in[0])
        return;
    cpu_bring(&self->grad_out, call, threads);
    dx = call->grad_in[0]->data;
    CO_PARALLEL_FOR(threads)
    for (int64_t p = 0; p < self->planes; p++) {
        char *to = dx + p * self->in_plane * cell;
        const char *from = dy + p * self->out_plane * cell;

        if (max)
            self->loops->max_gradient(to, from, place + p * self->out_plane, &self->shape);
        else
            self->loops->mean_gradient(to, from, &self->shape);
    }
}

static co_status pool_forward_max(co_call *call, const co_run *run)
{
    (void)run;
    pool_run(call, true);
    return CO_OK;
}

static co_status pool_backward_max(co_call *call, const co_run *run)
{
    (void)run;
    pool_run_backward(call, true);
    return CO_OK;
}

static co_status pool_forward_mean(co_call *call, const co_run *run)
{
    (void)run;
    pool_run(call, false);
    return CO_OK;
}

static co_status pool_backward_mean(co_call *call, const co_run *run)
{
    (void)run;
    pool_run_backward(call, false);
    return CO_OK;
}

const co_kernel co_cpu_maxpool = {
    .op = "maxpool",
    .name = "channel-blocks",
    .reads = CPU_READS,
    .self_size = sizeof(pool),
    .half = CPU_HALF,
    .supports = pool_supports,
    .plan = pool_plan_max,
    .plan_backward = pool_plan_backward,
    .forward = pool_forward_max,
    .backward = pool_backward_max,
};

const co_kernel co_cpu_avgpool = {
    .op = "avgpool",
    .name = "channel-blocks",
    .reads = CPU_READS,
    .self_size = sizeof(pool),
    .half = CPU_HALF,
    .supports = pool_supports,
    .plan = pool_plan,
    .plan_backward = pool_plan_backward,
    .forward = pool_forward_mean,
    .backward = pool_backward_mean,
};
