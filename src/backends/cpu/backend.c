/*
 * backend.c - Cohort's own kernels for processors, as two backends: those that are chosen before
 * oneDNN's, for the layers that they take are faster with them, and those for any layer, which are
 * chosen where oneDNN is not in the build, or refuses.
 */
#include <stdio.h>

#include "backends/cpu/cpu.h"
#include "backends/cpu/sample_lanes/kernels.h"
#include "core/isa.h"

static void backend_describe(char *out, size_t size)
{
    const lanes_loops *lanes = lanes_choose();

    snprintf(out, size, "%s, %d samples a vector", lanes->name, lanes->lanes);
}

static unsigned backend_half(void)
{
    return co_isa_has(CO_ISA_AVX512_BF16) ? CPU_HALF : 0;
}

static void backend_describe_call(char *out, size_t size, const co_call *call, bool backward)
{
    (void)backward;
    snprintf(out, size, "%s", call->kernel->name ? call->kernel->name : "cpu");
}

/* In order of preference; per op, kernels for few channels come first. */
static const co_kernel *const backend_kernels[] = {
    /* conv2d */
    &co_cpu_lanes_conv2d,
    &co_cpu_window_conv,
    &co_cpu_phase_conv,
    &co_cpu_amx_conv,
    &co_cpu_winograd,
    &co_cpu_direct_first,
    &co_cpu_small_conv,
    /* linear */
    &co_cpu_linear_amx,
    &co_cpu_linear_sequences,
    &co_cpu_linear,
    /* others */
    &co_cpu_lanes_maxpool,
    &co_cpu_maxpool,
    &co_cpu_lanes_relu,
    &co_cpu_lanes_add,
    &co_cpu_lanes_flatten,
    &co_cpu_lanes_batchnorm,
    &co_cpu_batchnorm,
    &co_cpu_lanes_dropout,
    &co_cpu_dropout,
    &co_cpu_lanes_dropout2d,
    &co_cpu_dropout2d,
    &co_cpu_adaptive_avgpool,
    &co_cpu_attention_half,
    &co_cpu_relu,
    &co_cpu_log_softmax,
    &co_cpu_flatten,
    NULL,
};

const co_backend co_backend_cpu = {
    .name = "cpu",
    .summary = "own kernels for processors",
    .kernels = backend_kernels,
    .unpack = &co_cpu_unpack,
    .half = backend_half,
    .describe = backend_describe,
    .describe_call = backend_describe_call,
};

/* Some are in both: faster than oneDNN's, and without it all that there is. */
static const co_kernel *const backend_general[] = {
    &co_cpu_direct_conv,
    &co_cpu_linear_half,
    &co_cpu_linear_any,
    &co_cpu_maxpool,
    &co_cpu_avgpool,
    &co_cpu_relu,
    &co_cpu_add,
    &co_cpu_log_softmax,
    &co_cpu_flatten,
    &co_cpu_layernorm,
    &co_cpu_rmsnorm,
    &co_cpu_attention,
    &co_cpu_gelu,
    &co_cpu_silu,
    &co_cpu_mul,
    &co_cpu_concat,
    &co_cpu_embedding,
    &co_cpu_positions,
    &co_cpu_rotary,
    &co_cpu_patches,
    &co_cpu_class_token,
    &co_cpu_first,
    &co_cpu_tanh,
    &co_cpu_scale,
    &co_cpu_nll_loss,
    &co_cpu_cross_entropy,
    &co_cpu_mse_loss,
    &co_cpu_l1_loss,
    &co_cpu_bce_with_logits_loss,
    NULL,
};

const co_backend co_backend_cpu_general = {
    .name = "cpu-general",
    .summary = "own kernels for processors, for any layer",
    .kernels = backend_general,
    .unpack = &co_cpu_unpack,
    .describe_call = backend_describe_call,
};
