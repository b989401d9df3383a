/*
 * rotary.c - rotary with the loops of kernels/rotary. The cosines and sines of all positions are
 * computed once, when the plan is bound.
 */
#include "kernels/rotary/rotary.h"
#include <math.h>
#include <string.h>

#include "backends/cpu/cpu.h"
#include "core/mem.h"
#include "core/parallel.h"

typedef struct rotary {
    cpu_operand src, grad_out; /* plain */
    float *angles;             /* owned: (positions, 2, half) cosines and sines */
} rotary;

typedef struct rotary_size {
    int64_t rows, length, width; /* length: positions of a sequence */
    int64_t turned, half;        /* heads that are rotated, and half the numbers of each */
} rotary_size;

static rotary_size rotary_measure(const co_call *call)
{
    const co_rotary_attr *a = call->attr;
    const int64_t *in = call->in[0]->shape.dim;

    return (rotary_size){.rows = in[0] * in[1],
                         .length = in[1],
                         .width = in[2],
                         .turned = a->heads + a->kv_heads,
                         .half = in[2] / (a->heads + 2 * a->kv_heads) / 2};
}

static co_status rotary_plan(co_call *call)
{
    rotary *self = call->self;
    size_t used = 0;

    self->src = cpu_plan_operand(call, &used, call->in[0], cpu_plain());
    return CO_OK;
}

static co_status rotary_plan_backward(co_call *call)
{
    rotary *self = call->self;
    size_t used = 0;

    self->grad_out = cpu_plan_operand(call, &used, call->grad_out[0], cpu_plain());
    return CO_OK;
}

static co_status rotary_bind(co_call *call)
{
    rotary *self = call->self;
    const double theta = ((const co_rotary_attr *)call->attr)->theta;
    const rotary_size size = rotary_measure(call);
    const int64_t positions = call->decode ? call->decode : size.length;

    self->angles = co_calloc((size_t)(2 * positions * size.half), sizeof(*self->angles));
    if (!self->angles)
        return CO_E_NOMEM;
    for (int64_t i = 0; i < size.half; i++) {
        const double each = pow(theta, -(double)i / (double)size.half);

        for (int64_t t = 0; t < positions; t++) {
            self->angles[2 * size.half * t + i] = (float)cos((double)t * each);
            self->angles[2 * size.half * t + size.half + i] = (float)sin((double)t * each);
        }
    }
    return CO_OK;
}

static void rotary_fini(co_call *call)
{
    co_free(((rotary *)call->self)->angles);
}

static void rotary_run(float *y, const float *x, const co_call *call, const co_decoding *decoding,
                       float sign)
{
    const rotary *self = call->self;
    const rotary_size size = rotary_measure(call);
    const rotary_loops *loops = KERNELS_CHOOSE(rotary_loops, &rotary_loops_basic);
    const int64_t turned = 2 * size.turned * size.half;
    const int threads = cpu_threads(call);

    CO_PARALLEL_FOR(threads)
    for (int k = 0; k < threads; k++) {
        const co_range mine = co_parallel_part(size.rows, k, threads);

        for (int64_t r = mine.begin; r < mine.end; r++) {
            const int64_t t = decoding ? decoding->position + r : r % size.length;
            const float *cosine = self->angles + 2 * size.half * t;
            const float *from = x + r * size.width;
            float *to = y + r * size.width;

            loops->rotate(to, from, cosine, cosine + size.half, sign, size.turned, size.half);
            if (to != from)
                memcpy(to + turned, from + turned, (size_t)(size.width - turned) * sizeof(*to));
        }
    }
}

static co_status rotary_forward(co_call *call, const co_run *run)
{
    const rotary *self = call->self;

    cpu_bring(&self->src, call, cpu_threads(call));
    rotary_run(call->out[0]->data, cpu_address(&self->src, call), call, run->decoding, 1);
    return CO_OK;
}

static co_status rotary_backward(co_call *call, const co_run *run)
{
    const rotary *self = call->self;

    (void)run;
    if (!call->grad_in[0])
        return CO_OK;
    cpu_bring(&self->grad_out, call, cpu_threads(call));
    rotary_run(call->grad_in[0]->data, cpu_address(&self->grad_out, call), call, NULL, -1);
    return CO_OK;
}

const co_kernel co_cpu_rotary = {
    .op = "rotary",
    .name = "rows",
    .reads = CPU_READS,
    .self_size = sizeof(rotary),
    .supports = cpu_takes_floats,
    .plan = rotary_plan,
    .plan_backward = rotary_plan_backward,
    .bind = rotary_bind,
    .forward = rotary_forward,
    .backward = rotary_backward,
    .fini = rotary_fini,
    .in_place = true,
    .decodes = true,
};
