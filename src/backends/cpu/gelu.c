/* gelu.c - gelu with the loops of kernels/gelu. */
#include "kernels/gelu/gelu.h"
#include "backends/cpu/cpu.h"
#include "core/parallel.h"

#define GELU_PIECE (1 << 14) /* numbers that a thread takes at once */

typedef struct gelu {
    cpu_operand grad_out; /* as the input is */
} gelu;

static bool gelu_supports(const co_call *call, const char **why)
{
    *why = "it computes in floats";
    return call->in[0]->dtype == CO_F32 && call->out[0]->dtype == CO_F32;
}

static const gelu_loops *gelu_choose(void)
{
    return KERNELS_CHOOSE(gelu_loops, &gelu_loops_basic);
}

static bool gelu_is_exact(const co_call *call)
{
    return ((const co_gelu_attr *)call->attr)->approximate == CO_GELU_EXACT;
}

/* Numbers of a tensor, with those that its layout adds. */
static int64_t gelu_count(const co_tensor *tensor)
{
    return (int64_t)(tensor->bytes / sizeof(float));
}

static int64_t gelu_piece(const co_tensor *tensor, int64_t i)
{
    const int64_t rest = gelu_count(tensor) - i;

    return rest < GELU_PIECE ? rest : GELU_PIECE;
}

static co_status gelu_plan(co_call *call)
{
    cpu_like(call->out[0], call->in[0]);
    return CO_OK;
}

static co_status gelu_plan_backward(co_call *call)
{
    gelu *self = call->self;
    size_t used = 0;

    if (!call->grad_in[0])
        return CO_OK;
    self->grad_out = cpu_plan_operand(call, &used, call->grad_out[0], call->in[0]->layout);
    cpu_like(call->grad_in[0], call->in[0]);
    return CO_OK;
}

static co_status gelu_forward(co_call *call, const co_run *run)
{
    const gelu_loops *loops = gelu_choose();
    const int threads = cpu_threads(call);
    const float *x = call->in[0]->data;
    float *y = call->out[0]->data;

    (void)run;
    CO_PARALLEL_FOR(threads)
    for (int64_t i = 0; i < gelu_count(call->out[0]); i += GELU_PIECE)
        (gelu_is_exact(call) ? loops->exact : loops->tanh)(y + i, x + i,
                                                           gelu_piece(call->out[0], i));
    return CO_OK;
}

static co_status gelu_backward(co_call *call, const co_run *run)
{
    const gelu *self = call->self;
    const gelu_loops *loops = gelu_choose();
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
    for (int64_t i = 0; i < gelu_count(call->in[0]); i += GELU_PIECE)
        (gelu_is_exact(call) ? loops->exact_gradient : loops->tanh_gradient)(
            dx + i, x + i, dy + i, gelu_piece(call->in[0], i));
    return CO_OK;
}

const co_kernel co_cpu_gelu = {
    .op = "gelu",
    .name = "any-layout",
    .reads = CPU_READS,
    .self_size = sizeof(gelu),
    .supports = gelu_supports,
    .plan = gelu_plan,
    .plan_backward = gelu_plan_backward,
    .forward = gelu_forward,
    .backward = gelu_backward,
};
