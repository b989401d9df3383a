/*
 * dropout.c - drops random elements (dropout) or channels (dropout2d), with the random numbers of
 * ops.h, in any layout.
 */
#include <math.h>
#include <string.h>

#include "backends/cpu/cpu.h"
#include "core/parallel.h"
#include "core/rng.h"
#include "kernels/dropout/dropout.h"

static bool dropout_drops_channels(const co_call *call)
{
    return call->op == &co_op_dropout2d;
}

/* Random numbers per sample. */
static int64_t dropout_count(const co_call *call)
{
    const co_shape *shape = &call->in[0]->shape;

    return dropout_drops_channels(call) ? shape->dim[1] : co_shape_count(shape) / shape->dim[0];
}

static co_status dropout_plan(co_call *call)
{
    cpu_like(call->out[0], call->in[0]);
    call->scratch_bytes = (size_t)dropout_count(call) * sizeof(float);
    return CO_OK;
}

/* A gradient with another layout is reordered first. */
static co_status dropout_plan_backward(co_call *call)
{
    if (call->grad_in[0])
        cpu_like(call->grad_in[0], call->out[0]);
    return CO_OK;
}

static co_rng dropout_rng(const co_call *call, const co_run *run, int64_t n)
{
    return (co_rng){run->seed, CO_RNG_DROPOUT | call->node << 8, run->values->given.step,
                    run->sample[n]};
}

/* Samples whose elements lie in their order. */
static void dropout_run_rows(co_tensor *to, const co_tensor *from, const co_call *call,
                             const co_run *run)
{
    const dropout_loops *loops = KERNELS_CHOOSE(dropout_loops, &dropout_loops_basic);
    const double probability = ((const co_dropout_attr *)call->attr)->p;
    const uint32_t below = (uint32_t)ceil(probability * 0x1p24);
    const float scale = (float)(1 / (1 - probability));
    const int64_t count = dropout_count(call);

    CO_PARALLEL_FOR(cpu_threads(call))
    for (int64_t n = 0; n < to->shape.dim[0]; n++) {
        const co_rng rng = dropout_rng(call, run, n);

        loops->rows((float *)to->data + n * count, (const float *)from->data + n * count, count,
                    &rng, below, scale);
    }
}

static void dropout_run(co_tensor *to, const co_tensor *from, const co_call *call,
                        const co_run *run)
{
    const reorder_places p = cpu_find_places(&to->shape, to->layout);
    const double probability = ((const co_dropout_attr *)call->attr)->p;
    float *u = call->scratch;

    if (to->layout.format == CO_FORMAT_PLAIN && !dropout_drops_channels(call)) {
        dropout_run_rows(to, from, call, run);
        return;
    }
    /* padding channels of the layout stay zero */
    if (to->data != from->data && p.c % p.block)
        memcpy(to->data, from->data, to->bytes);
    for (int64_t n = 0; n < to->shape.dim[0]; n++) {
        const co_rng rng = dropout_rng(call, run, n);

        co_rng_uniform(u, &rng, 0, (uint64_t)dropout_count(call));
        dropout_apply((float *)to->data + n * p.sample, (const float *)from->data + n * p.sample,
                      &p, u, probability, dropout_drops_channels(call));
    }
}

static co_status dropout_forward(co_call *call, const co_run *run)
{
    if (!call->training)
        return co_copy_forward(call, run);
    dropout_run(call->out[0], call->in[0], call, run);
    return CO_OK;
}

static co_status dropout_backward(co_call *call, const co_run *run)
{
    co_tensor *dx = call->grad_in[0], *dy = call->grad_out[0];

    if (!dx)
        return CO_OK;
    if (!co_layout_same(&dx->layout, &dy->layout)) {
        cpu_reorder(dx->data, dx->layout, dy, cpu_threads(call));
        dy = dx;
    }
    dropout_run(dx, dy, call, run);
    return CO_OK;
}

const co_kernel co_cpu_dropout = {
    .op = "dropout",
    .name = "per-sample",
    .reads = CPU_READS,
    .plan = dropout_plan,
    .plan_backward = dropout_plan_backward,
    .forward = dropout_forward,
    .backward = dropout_backward,
    .in_place = true,
};

const co_kernel co_cpu_dropout2d = {
    .op = "dropout2d",
    .name = "per-sample",
    .reads = CPU_READS,
    .plan = dropout_plan,
    .plan_backward = dropout_plan_backward,
    .forward = dropout_forward,
    .backward = dropout_backward,
    .in_place = true,
};
