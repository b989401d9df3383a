/*
 * gate.c - what gated layers are made of: silu and mul with the loops of kernels/gate, and concat,
 * which has no work but to move rows.
 */
#include "kernels/gate/gate.h"
#include <string.h>

#include "backends/cpu/cpu.h"
#include "core/parallel.h"

#define GATE_PIECE (1 << 14) /* numbers that a thread takes at once */

static const gate_loops *gate_choose(void)
{
    return KERNELS_CHOOSE(gate_loops, &gate_loops_basic);
}

static int64_t gate_count(int64_t n, int64_t at)
{
    return n - at < GATE_PIECE ? n - at : GATE_PIECE;
}

/* All operands plain, or all in the layout of the first input. */
typedef struct gate {
    cpu_operand in[2], grad_out;
} gate;

static bool gate_supports(const co_call *call, const char **why)
{
    return cpu_reads_layout(call, why) && cpu_takes_floats(call, why);
}

static co_status gate_plan(co_call *call)
{
    gate *self = call->self;
    size_t used = 0;

    cpu_like(call->out[0], call->in[0]);
    for (int i = 0; i < call->n_in; i++)
        self->in[i] = cpu_plan_operand(call, &used, call->in[i], call->out[0]->layout);
    return CO_OK;
}

static co_status gate_plan_backward(co_call *call)
{
    gate *self = call->self;
    size_t used = 0;

    for (int i = 0; i < call->n_in; i++) {
        self->in[i] = cpu_plan_operand(call, &used, call->in[i], call->out[0]->layout);
        if (call->grad_in[i])
            cpu_like(call->grad_in[i], call->out[0]);
    }
    self->grad_out = cpu_plan_operand(call, &used, call->grad_out[0], call->out[0]->layout);
    return CO_OK;
}

/* Numbers of the call's tensors, padding included. */
static int64_t gate_size(const co_call *call)
{
    return (int64_t)(call->out[0]->bytes / sizeof(float));
}

/* --- silu --- */

static co_status silu_forward(co_call *call, const co_run *run)
{
    const int64_t n = gate_size(call);
    const float *x = call->in[0]->data;
    float *y = call->out[0]->data;
    const int threads = cpu_threads(call);

    (void)run;
    CO_PARALLEL_FOR(threads)
    for (int64_t i = 0; i < n; i += GATE_PIECE)
        gate_choose()->silu(y + i, x + i, gate_count(n, i));
    return CO_OK;
}

static co_status silu_backward(co_call *call, const co_run *run)
{
    const gate *self = call->self;
    const int64_t n = gate_size(call);
    const int threads = cpu_threads(call);
    const float *x = call->in[0]->data, *dy;
    float *dx;

    (void)run;
    if (!call->grad_in[0])
        return CO_OK;
    cpu_bring(&self->grad_out, call, threads);
    dy = cpu_address(&self->grad_out, call);
    dx = call->grad_in[0]->data;
    CO_PARALLEL_FOR(threads)
    for (int64_t i = 0; i < n; i += GATE_PIECE)
        gate_choose()->silu_gradient(dx + i, x + i, dy + i, gate_count(n, i));
    return CO_OK;
}

/* --- mul --- */

static void mul_run(float *y, const float *a, const float *b, const co_call *call)
{
    const int64_t n = gate_size(call);
    const int threads = cpu_threads(call);

    CO_PARALLEL_FOR(threads)
    for (int64_t i = 0; i < n; i += GATE_PIECE)
        gate_choose()->mul(y + i, a + i, b + i, gate_count(n, i));
}

static co_status mul_forward(co_call *call, const co_run *run)
{
    const gate *self = call->self;

    (void)run;
    for (int i = 0; i < 2; i++)
        cpu_bring(&self->in[i], call, cpu_threads(call));
    mul_run(call->out[0]->data, cpu_address(&self->in[0], call), cpu_address(&self->in[1], call),
            call);
    return CO_OK;
}

static co_status mul_backward(co_call *call, const co_run *run)
{
    const gate *self = call->self;
    const float *dy;

    (void)run;
    for (int i = 0; i < 2; i++)
        cpu_bring(&self->in[i], call, cpu_threads(call));
    cpu_bring(&self->grad_out, call, cpu_threads(call));
    dy = cpu_address(&self->grad_out, call);
    for (int i = 0; i < 2; i++)
        if (call->grad_in[i])
            mul_run(call->grad_in[i]->data, dy, cpu_address(&self->in[1 - i], call), call);
    return CO_OK;
}

#define GATE_KERNEL(f)                                                                             \
    const co_kernel co_cpu_##f = {                                                                 \
        .op = #f,                                                                                  \
        .name = "any-layout",                                                                      \
        .reads = CPU_READS,                                                                        \
        .self_size = sizeof(gate),                                                                 \
        .supports = gate_supports,                                                                 \
        .plan = gate_plan,                                                                         \
        .plan_backward = gate_plan_backward,                                                       \
        .forward = f##_forward,                                                                    \
        .backward = f##_backward,                                                                  \
    }

GATE_KERNEL(silu);
GATE_KERNEL(mul);

/* --- concat --- */

/* Bytes of a row of the result, and where those of input `k` begin in it. */
static size_t concat_place(size_t *width, const co_call *call, int k)
{
    const size_t number = co_dtype_size(call->in[0]->dtype);
    size_t at = 0;

    *width = 0;
    for (int i = 0; i < 3; i++) {
        const size_t part = (size_t)call->in[i]->shape.dim[2] * number;

        at += i < k ? part : 0;
        *width += part;
    }
    return at;
}

/* Rows of `whole`, of which each `part` is input k. */
static void concat_move(const co_call *call, int k, char *whole, char *part, bool apart)
{
    const int threads = cpu_threads(call);
    const int64_t rows = call->in[k]->shape.dim[0] * call->in[k]->shape.dim[1];
    const size_t bytes = (size_t)call->in[k]->shape.dim[2] * co_dtype_size(call->in[k]->dtype);
    size_t width;
    const size_t at = concat_place(&width, call, k);

    CO_PARALLEL_FOR(threads)
    for (int64_t r = 0; r < rows; r++) {
        char *in_whole = whole + (size_t)r * width + at, *in_part = part + (size_t)r * bytes;

        memcpy(apart ? in_part : in_whole, apart ? in_whole : in_part, bytes);
    }
}

static co_status concat_forward(co_call *call, const co_run *run)
{
    (void)run;
    for (int k = 0; k < 3; k++)
        concat_move(call, k, call->out[0]->data, call->in[k]->data, false);
    return CO_OK;
}

static co_status concat_backward(co_call *call, const co_run *run)
{
    (void)run;
    for (int k = 0; k < 3; k++)
        if (call->grad_in[k])
            concat_move(call, k, call->grad_out[0]->data, call->grad_in[k]->data, true);
    return CO_OK;
}

const co_kernel co_cpu_concat = {
    .op = "concat",
    .name = "rows",
    .half = 1u << CO_BF16 | 1u << CO_F16,
    .forward = concat_forward,
    .backward = concat_backward,
};
