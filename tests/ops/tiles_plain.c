/* tiles_plain.c - the loops for tiles of convolutions, linear layers and attention in plain C, as
 * kernels. */
#define TILES_PLAIN
#define DIRECT_CONV_TABLE direct_conv_loops_plain
#define DIRECT_CONV_NAME  "direct:tiles in plain C"

#include "kernels/direct_conv/direct_conv_tiles.h"

#include "../backends/gemm_half_plain.h"
#include "attention_half_plain.h"
#include "backends/cpu/attention_half.h"
#include "backends/cpu/direct_conv.h"
#include "backends/cpu/linear_half.h"
#include "tiles_plain.h"

static bool plain_supports(const co_call *call, const char **why)
{
    const co_conv2d_attr *a = call->attr;

    *why = "its channels are in groups";
    return call->in[0]->dtype == CO_BF16 && a->groups == 1;
}

static co_status plain_plan(co_call *call)
{
    return direct_plan_with(call, &direct_conv_loops_plain);
}

static const co_kernel plain_conv = {
    .op = "conv2d",
    .name = "tiles",
    .reads = CPU_READS,
    .self_size = sizeof(direct),
    .half = CPU_HALF,
    .supports = plain_supports,
    .plan = plain_plan,
    .plan_backward = direct_plan_backward,
    .forward = direct_forward,
    .backward = direct_backward,
    .fini = direct_fini,
};

static bool plain_linear_supports(const co_call *call, const char **why)
{
    *why = "its tensors are not bf16";
    return call->in[0]->dtype == CO_BF16 && call->out[0]->dtype == CO_BF16;
}

static co_status plain_linear_plan(co_call *call)
{
    return linear_half_plan_with(call, &gemm_half_loops_plain);
}

static const co_kernel plain_linear = {
    .op = "linear",
    .name = "tiles",
    .self_size = sizeof(linear_half),
    .half = CPU_HALF,
    .supports = plain_linear_supports,
    .plan = plain_linear_plan,
    .plan_backward = linear_half_plan_backward,
    .forward = linear_half_forward,
    .backward = linear_half_backward,
};

static co_status plain_attention_plan(co_call *call)
{
    return attention_half_plan_with(call, &attention_half_loops_plain, &gemm_half_loops_plain);
}

static const co_kernel plain_attention = {
    .op = "attention",
    .name = "tiles",
    .self_size = sizeof(attention_half),
    .half = CPU_HALF,
    .supports = attention_half_takes,
    .plan = plain_attention_plan,
    .forward = attention_half_forward,
    .backward = attention_half_backward,
};

static const co_kernel *const plain_kernels[] = {&plain_conv, &plain_linear, &plain_attention,
                                                 NULL};

static unsigned plain_half(void)
{
    return CPU_HALF;
}

static const co_backend plain_backend = {
    .name = "tiles-in-plain-c",
    .summary = "the kernels for AMX, with tiles in plain C",
    .kernels = plain_kernels,
    .unpack = &co_cpu_unpack,
    .half = plain_half,
};

const co_backend *const tiles_backends[] = {&plain_backend, &co_backend_cpu,
                                            &co_backend_cpu_general, &co_backend_ref, NULL};
