/*
 * layernorm.c - layernorm and rmsnorm with the loops of kernels/layernorm.
 *
 * Gradients of weight and bias are sums over all rows. Slices of rows have sums of their own, which
 * are added in order; how many there are depends on the number of rows alone, so that the number of
 * threads does not change the result.
 *
 * Results in half precision, and their gradients, are converted some rows at a time, in near
 * caches.
 */
#include "kernels/layernorm/layernorm.h"
#include <string.h>

#include "backends/cpu/cpu.h"
#include "core/half.h"
#include "core/parallel.h"

#define LAYERNORM_SLICES 16
#define LAYERNORM_ROWS   64 /* fewest rows of a slice, if there are several */
#define LAYERNORM_ONCE   4  /* rows that are converted at once */

typedef struct layernorm {
    cpu_operand src, back_src, grad_out; /* plain */
    size_t sums_at;                      /* in scratch: (slices, 2, n) */
    size_t rows_at;                      /* (slices, LAYERNORM_ONCE, n): gradients in floats */
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

static bool layernorm_takes(const co_call *call, const char **why)
{
    *why = "it computes in floats";
    return call->in[0]->dtype == CO_F32;
}

static bool layernorm_rounds(const co_call *call)
{
    return co_dtype_is_half(call->out[0]->dtype);
}

static size_t layernorm_once(const layernorm_rows *size)
{
    return LAYERNORM_ONCE * (size_t)size->n;
}

static co_status layernorm_plan(co_call *call)
{
    layernorm *self = call->self;
    const layernorm_rows size = layernorm_size(call);
    size_t used = 0;

    self->src = cpu_plan_operand(call, &used, call->in[0], cpu_plain());
    call->workspace_bytes = 2 * (size_t)size.rows * sizeof(float);
    if (layernorm_rounds(call))
        cpu_need_scratch(call, 0, layernorm_once(&size) * sizeof(float));
    return CO_OK;
}

static co_status layernorm_plan_backward(co_call *call)
{
    layernorm *self = call->self;
    const layernorm_rows size = layernorm_size(call);
    const size_t slices = (size_t)layernorm_slices(&size);
    size_t used = 0;

    self->back_src = cpu_plan_operand(call, &used, call->in[0], cpu_plain());
    self->grad_out = cpu_plan_operand(call, &used, call->grad_out[0], cpu_plain());
    self->sums_at = cpu_take_scratch(call, &used, slices * 2 * (size_t)size.n * sizeof(float));
    if (layernorm_rounds(call))
        self->rows_at =
            cpu_take_scratch(call, &used, slices * layernorm_once(&size) * sizeof(float));
    return CO_OK;
}

/* Rows [first, end): all at once, or, where results are rounded, some at a time, with room for them
   in floats. */
typedef struct layernorm_part {
    const co_call *call;
    const layernorm_loops *loops;
    layernorm_rows size; /* of a pass of the loops */
    int64_t first, end;  /* rows */
    float *room, *sums;
} layernorm_part;

static int64_t layernorm_step(layernorm_part *p, int64_t row)
{
    const int64_t rest = p->end - row;

    p->size.rows = layernorm_rounds(p->call) && rest > LAYERNORM_ONCE ? LAYERNORM_ONCE : rest;
    return p->size.rows;
}

static void layernorm_run_forward(layernorm_part *p, const float *x)
{
    const co_tensor *y = p->call->out[0];
    const bool rounds = layernorm_rounds(p->call);
    const int64_t n = p->size.n;

    for (int64_t r = p->first, rows; r < p->end; r += rows) {
        float *to = rounds ? p->room : (float *)y->data + r * n;

        rows = layernorm_step(p, r);
        p->loops->forward(to, (float *)p->call->workspace + 2 * r, x + r * n, &p->size);
        if (rounds)
            co_half_round((uint16_t *)y->data + r * n, to, (size_t)(rows * n), y->dtype);
    }
}

static void layernorm_run_backward(layernorm_part *p, const float *x, const void *dy)
{
    const bool rounds = layernorm_rounds(p->call);
    const int64_t n = p->size.n;
    float *dx = p->call->grad_in[0] ? p->call->grad_in[0]->data : NULL;

    for (int64_t r = p->first, rows; r < p->end; r += rows) {
        const float *from = rounds ? p->room : (const float *)dy + r * n;

        rows = layernorm_step(p, r);
        if (rounds)
            co_half_widen(p->room, (const uint16_t *)dy + r * n, (size_t)(rows * n),
                          p->call->out[0]->dtype);
        p->loops->backward(dx ? dx + r * n : NULL, p->sums, x + r * n, from,
                           (const float *)p->call->workspace + 2 * r, &p->size);
    }
}

static co_status layernorm_forward(co_call *call, const co_run *run)
{
    const layernorm *self = call->self;
    const layernorm_rows size = layernorm_size(call);
    const int threads = cpu_threads(call);
    const float *x;

    (void)run;
    cpu_bring(&self->src, call, threads);
    x = cpu_address(&self->src, call);
    CO_PARALLEL_FOR(threads)
    for (int t = 0; t < threads; t++) {
        const co_range mine = co_parallel_part(size.rows, t, threads);

        layernorm_run_forward(&(layernorm_part){.call = call,
                                                .loops = layernorm_choose(),
                                                .size = size,
                                                .first = mine.begin,
                                                .end = mine.end,
                                                .room = cpu_own_scratch(call, t)},
                              x);
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
    const int threads = cpu_threads(call), slices = layernorm_slices(&size);
    float *sums = (float *)(void *)((char *)call->scratch + self->sums_at);
    float *room = (float *)(void *)((char *)call->scratch + self->rows_at);

    cpu_bring(&self->back_src, call, threads);
    cpu_bring(&self->grad_out, call, threads);
    memset(sums, 0, (size_t)slices * 2 * (size_t)size.n * sizeof(float));
    CO_PARALLEL_FOR(threads)
    for (int s = 0; s < slices; s++) {
        const co_range mine = co_parallel_part(size.rows, s, slices);

        layernorm_run_backward(&(layernorm_part){.call = call,
                                                 .loops = layernorm_choose(),
                                                 .size = size,
                                                 .first = mine.begin,
                                                 .end = mine.end,
                                                 .room = room + (size_t)s * layernorm_once(&size),
                                                 .sums = sums + 2 * size.n * s},
                               cpu_address(&self->back_src, call),
                               cpu_address(&self->grad_out, call));
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
        .supports = layernorm_takes,                                                               \
        .rounds = 1u << CO_BF16 | 1u << CO_F16,                                                    \
        .plan = layernorm_plan,                                                                    \
        .plan_backward = layernorm_plan_backward,                                                  \
        .forward = layernorm_forward,                                                              \
        .backward = layernorm_backward,                                                            \
    }

LAYERNORM_KERNEL(layernorm);
LAYERNORM_KERNEL(rmsnorm);
