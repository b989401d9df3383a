/* half_loops.c - loops of convolutions, linear layers and attention in bf16, as kernels: those for
 * tiles in plain C, and those of AVX-512 for pairs and for floats. */
#define TILES_PLAIN
#define DIRECT_CONV_TABLE direct_conv_loops_plain
#define DIRECT_CONV_NAME  "direct:tiles in plain C"

#include "kernels/direct_conv/direct_conv_tiles.h"

#include "../backends/gemm_half_plain.h"
#include "attention_half_plain.h"
#include "backends/cpu/attention_half.h"
#include "backends/cpu/direct_conv.h"
#include "backends/cpu/linear_half.h"
#include "backends/cpu/window_conv.h"
#include "core/isa.h"
#include "half_loops.h"

static bool loops_conv_supports(const co_call *call, const char **why)
{
    const co_conv2d_attr *a = call->attr;

    *why = "its channels are in groups";
    return call->in[0]->dtype == CO_BF16 && a->groups == 1;
}

static bool loops_linear_supports(const co_call *call, const char **why)
{
    *why = "its tensors are not bf16";
    return call->in[0]->dtype == CO_BF16 && call->out[0]->dtype == CO_BF16;
}

static unsigned loops_half(void)
{
    return CPU_HALF;
}

static co_status tiles_window_plan(co_call *call)
{
    return window_conv_plan_with(call, &direct_conv_loops_plain);
}

static const co_kernel tiles_window = {.op = "conv2d",
                                       .name = "windows",
                                       .reads = CPU_READS,
                                       .self_size = sizeof(window_conv),
                                       .half = CPU_HALF,
                                       .supports = window_conv_fits,
                                       .plan = tiles_window_plan,
                                       .plan_backward = window_conv_plan_backward,
                                       .forward = window_conv_forward,
                                       .backward = window_conv_backward,
                                       .fini = direct_fini};

/* The kernels of a form and the backends with them first; `few` is the kernel for few channels, or
   that for any again; `attention` is a kernel, or NULL. */
#define HALF_LOOPS(form, conv, gemm, few, attention)                                               \
    static co_status form##_conv_plan(co_call *call)                                               \
    {                                                                                              \
        return direct_plan_with(call, &(conv));                                                    \
    }                                                                                              \
                                                                                                   \
    static const co_kernel form##_conv = {.op = "conv2d",                                          \
                                          .name = #form,                                           \
                                          .reads = CPU_READS,                                      \
                                          .self_size = sizeof(direct),                             \
                                          .half = CPU_HALF,                                        \
                                          .supports = loops_conv_supports,                         \
                                          .plan = form##_conv_plan,                                \
                                          .plan_backward = direct_plan_backward,                   \
                                          .forward = direct_forward,                               \
                                          .backward = direct_backward,                             \
                                          .fini = direct_fini};                                    \
                                                                                                   \
    static co_status form##_linear_plan(co_call *call)                                             \
    {                                                                                              \
        return linear_half_plan_with(call, &(gemm));                                               \
    }                                                                                              \
                                                                                                   \
    static const co_kernel form##_linear = {.op = "linear",                                        \
                                            .name = #form,                                         \
                                            .self_size = sizeof(linear_half),                      \
                                            .half = CPU_HALF,                                      \
                                            .supports = loops_linear_supports,                     \
                                            .plan = form##_linear_plan,                            \
                                            .plan_backward = linear_half_plan_backward,            \
                                            .forward = linear_half_forward,                        \
                                            .backward = linear_half_backward};                     \
                                                                                                   \
    static const co_kernel *const form##_kernels[] = {few, &form##_conv, &form##_linear,           \
                                                      attention, NULL};                            \
                                                                                                   \
    static const co_backend form##_backend = {.name = #form " alone",                              \
                                              .summary = "kernels of one form of product",         \
                                              .kernels = form##_kernels,                           \
                                              .unpack = &co_cpu_unpack,                            \
                                              .half = loops_half};                                 \
                                                                                                   \
    static const co_backend *const form##_backends[] = {                                           \
        &form##_backend, &co_backend_cpu, &co_backend_cpu_general, &co_backend_ref, NULL};

#define HALF_ATTENTION(form, loops, gemm)                                                          \
    static co_status form##_attention_plan(co_call *call)                                          \
    {                                                                                              \
        return attention_half_plan_with(call, &(loops), &(gemm));                                  \
    }                                                                                              \
                                                                                                   \
    static const co_kernel form##_attention = {.op = "attention",                                  \
                                               .name = #form,                                      \
                                               .self_size = sizeof(attention_half),                \
                                               .half = CPU_HALF,                                   \
                                               .supports = attention_half_takes,                   \
                                               .plan = form##_attention_plan,                      \
                                               .forward = attention_half_forward,                  \
                                               .backward = attention_half_backward};

HALF_ATTENTION(tiles, attention_half_loops_plain, gemm_half_loops_plain)
HALF_LOOPS(tiles, direct_conv_loops_plain, gemm_half_loops_plain, &tiles_window, &tiles_attention)
#ifdef CO_KERNELS_X86
HALF_ATTENTION(pairs, attention_half_loops_bf16, gemm_half_loops_bf16)
HALF_LOOPS(pairs, direct_conv_loops_bf16, gemm_half_loops_bf16, &pairs_conv, &pairs_attention)
HALF_LOOPS(floats, direct_conv_loops_widened, gemm_half_loops_widened, &floats_conv, NULL)
#endif

static const half_loops loops_all[] = {
    {"tiles", tiles_backends},
#ifdef CO_KERNELS_X86
    {"pairs", pairs_backends},
    {"floats", floats_backends},
#endif
};

const half_loops *half_loops_find(const char *name)
{
    for (size_t i = 0; i < sizeof(loops_all) / sizeof(loops_all[0]); i++)
        if (strcmp(loops_all[i].name, name) == 0)
            return i == 0 || co_isa_has(CO_ISA_AVX512_BF16) ? &loops_all[i] : NULL;
    return NULL;
}
