/*
 * layernorm.c - layernorm and rmsnorm with the loops of kernels/layernorm.
 *
 * Gradients of weight and bias are sums over all rows. Slices of rows have sums of their own, which
 * are added in order; how many there are depends on the number of rows alone, so that the number of
 * threads does not change the result.
 */
#include "kernels/layernorm/layernorm.h"
#include <string.h>

#include "backends/cpu/cpu.h"
#include "core/parallel.h"

#define LAYERNORM_SLICES 16
#define LAYERNORM_ROWS   64 /* fewest rows of a slice, if there are several */

typedef struct layernorm {
    cpu_operand src, back_src, grad_out; /* plain */
    size_t sums_at;                      /* in scratch: (slices, 2, n) */
} layernorm;

static double layernorm_eps(const co_call *call)
{
    return call->op == &co_op_rmsnorm ? ((const co_rmsnorm_attr *)call->attr)->eps
                                      : ((const co_layernorm_attr *)call->attr)->eps;
}

static layernorm_rows layernorm_size(const co_call *call)
{
    const int64_t n = call->param[0].shape.dim[0];

    return (layernorm_rows){.rows = co_shape_count(&call->in[0]->shape) / n,
                            .n = n,
                            .eps = (float)layernorm_eps(call),
                            .weight = call->param[0].data,
                            .bias = call->n_param > 1 ? call->param[1].data : NULL,
                            .rms = call->op == &co_op_rmsnorm};
}

static int layernorm_slices(const layernorm_rows *size)
{
    const int64_t n = size->rows / LAYERNORM_ROWS;

    return n < 1 ? 1 : n < LAYERNORM_SLICES ? (int)n : LAYERNORM_SLICES;
}

static const layernorm_loops *layernorm_choose(void)
{
    return KERNELS_CHOOSE(layernorm_loops, &layernorm_loops_basic);
}

static co_status layernorm_plan(co_call *call)
{
    layernorm *self = call->self;
    const layernorm_rows size = layernorm_size(call);
    size_t used = 0;

    self->src = cpu_plan_operand(call, &used, call->in[0], cpu_plain());
    call->workspace_bytes = 2 * (size_t)size.rows * sizeof(float);
    return CO_OK;
}

static co_status layernorm_plan_backward(co_call *call)
{
    layernorm *self = call->self;
    const layernorm_rows size = layernorm_size(call);
    const size_t sums = (size_t)layernorm_slices(&size) * 2 * (size_t)size.n;
    size_t used = 0;

    self->back_src = cpu_plan_operand(call, &used, call->in[0], cpu_plain());
    self->grad_out = cpu_plan_operand(call, &used, call->grad_out[0], cpu_plain());
    self->sums_at = cpu_take_scratch(call, &used, sums * sizeof(float));
    return CO_OK;
}

static co_status layernorm_forward(co_call *call, const co_run *run)
{
    const layernorm *self = call->self;
    const layernorm_rows size = layernorm_size(call);
    const layernorm_loops *loops = layernorm_choose();
    const int threads = cpu_threads(call);
    const float *x;

    (void)run;
    cpu_bring(&self->src, call, threads);
    x = cpu_address(&self->src, call);
    CO_PARALLEL_FOR(threads)
    for (int t = 0; t < threads; t++) {
        const co_range mine = co_parallel_part(size.rows, t, threads);
        layernorm_rows part = size;

        part.rows = mine.end - mine.begin;
        loops->forward((float *)call->out[0]->data + mine.begin * size.n,
                       (float *)call->workspace + 2 * mine.begin, x + mine.begin * size.n, &part);
    }
    return CO_OK;
}

static void layernorm_put(const co_tensor *grad, float *sum, const float *slices, int64_t n,
                          int n_slice, bool add)
{
    float *to = grad->data;

    for (int s = 1; s < n_slice; s++)
        for (int64_t i = 0; i < n; i++)
            sum[i] += slices[2 * n * s + i];
    for (int64_t i = 0; i < n; i++)
        to[i] = add ? to[i] + sum[i] : sum[i];
}

static co_status layernorm_backward(co_call *call, const co_run *run)
{
    const layernorm *self = call->self;
    const layernorm_rows size = layernorm_size(call);
    const layernorm_loops *loops = layernorm_choose();
    const int threads = cpu_threads(call), slices = layernorm_slices(&size);
    float *sums = (float *)(void *)((char *)call->scratch + self->sums_at);
    float *dx = call->grad_in[0] ? call->grad_in[0]->data : NULL;
    const float *x, *dy;

    cpu_bring(&self->back_src, call, threads);
    cpu_bring(&self->grad_out, call, threads);
    x = cpu_address(&self->back_src, call);
    dy = cpu_address(&self->grad_out, call);
    memset(sums, 0, (size_t)slices * 2 * (size_t)size.n * sizeof(float));
    CO_PARALLEL_FOR(threads)
    for (int s = 0; s < slices; s++) {
        const co_range mine = co_parallel_part(size.rows, s, slices);
        const int64_t at = mine.begin * size.n;
        layernorm_rows part = size;

        part.rows = mine.end - mine.begin;
        loops->backward(dx ? dx + at : NULL, sums + 2 * size.n * s, x + at, dy + at,
                        (const float *)call->workspace + 2 * mine.begin, &part);
    }
    layernorm_put(&call->grad_param[0], sums, sums, size.n, slices, run->accumulate);
    if (call->n_param > 1)
        layernorm_put(&call->grad_param[1], sums + size.n, sums + size.n, size.n, slices,
                      run->accumulate);
    return CO_OK;
}

#define LAYERNORM_KERNEL(f)                                                                        \
    const co_kernel co_cpu_##f = {                                                                 \
        .op = #f,                                                                                  \
        .name = "rows",                                                                            \
        .reads = CPU_READS,                                                                        \
        .self_size = sizeof(layernorm),                                                            \
        .supports = cpu_takes_floats,                                                              \
        .plan = layernorm_plan,                                                                    \
        .plan_backward = layernorm_plan_backward,                                                  \
        .forward = layernorm_forward,                                                              \
        .backward = layernorm_backward,                                                            \
    }

LAYERNORM_KERNEL(layernorm);
LAYERNORM_KERNEL(rmsnorm);
