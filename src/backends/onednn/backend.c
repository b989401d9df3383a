/*
 * backend.c - the list of oneDNN's kernels, the threads they run on, and the translation of
 * oneDNN's failures.
 */
#include <stdio.h>

#include "backends/onednn/onednn.h"
#include "core/parallel.h"

int onednn_use_threads(const co_call *call)
{
    const int threads = ((const onednn_self *)call->self)->small ? 1 : call->threads;

    co_parallel_use(threads);
    return co_parallel_threads(threads);
}

/* oneDNN's names of the levels: the flags of each include those of the lower ones. */
static const dnnl_cpu_isa_t backend_isas[CO_ISA_LEVELS] = {
    [CO_ISA_BASE] = dnnl_cpu_isa_sse41,
    [CO_ISA_AVX2] = dnnl_cpu_isa_avx2,
    [CO_ISA_AVX512] = dnnl_cpu_isa_avx512_core,
    [CO_ISA_AVX512_BF16] = dnnl_cpu_isa_avx512_core_bf16,
    [CO_ISA_AMX] = dnnl_cpu_isa_avx512_core_amx,
};

/* Our limit holds in oneDNN, too. It can be set only before oneDNN has created anything. */
static void backend_limit(void)
{
    if (co_isa_is_limited())
        (void)dnnl_set_max_cpu_isa(backend_isas[co_isa_level()]);
}

bool onednn_has(co_isa level)
{
    const unsigned isa = backend_isas[level];

    backend_limit();
    return co_isa_has(level) && (dnnl_get_effective_cpu_isa() & isa) == isa;
}

static const char *backend_instructions(void)
{
    int level = CO_ISA_LEVELS - 1;

    while (level > CO_ISA_BASE && !onednn_has((co_isa)level))
        level--;
    return co_isa_title((co_isa)level);
}

static unsigned backend_half(void)
{
    return onednn_has(CO_ISA_AVX512_BF16) ? ONEDNN_HALF : 0;
}

bool onednn_takes(const co_call *call, const char **why)
{
    backend_limit();
    if (call->in[0]->dtype == CO_F32)
        return true;
    *why = "this CPU has no instructions for bf16";
    if (!backend_half())
        return false;
    *why = "its parameters have 16 bits";
    return !(call->op->is_norm && call->round_params);
}

bool onednn_multiplies(const co_call *call, const char **why)
{
    if (!onednn_takes(call, why))
        return false;
    *why = "this CPU multiplies floats faster";
    return call->in[0]->dtype == CO_F32 || onednn_has(CO_ISA_AMX) || co_isa_multiplies_bf16();
}

static void backend_describe(char *out, size_t size)
{
    const dnnl_version_t *v = dnnl_version();

    snprintf(out, size, "oneDNN %d.%d.%d, %s", v->major, v->minor, v->patch,
             backend_instructions());
}

static const char *backend_reason(dnnl_status_t status)
{
    switch (status) {
    case dnnl_invalid_arguments:
        return "invalid arguments";
    case dnnl_unimplemented:
        return "not implemented";
    case dnnl_runtime_error:
        return "run-time error";
    default:
        return "failed";
    }
}

co_status onednn_check(dnnl_status_t status, const co_call *call, const char *what)
{
    if (status == dnnl_success)
        return CO_OK;
    if (status == dnnl_out_of_memory)
        return co_fail(CO_E_NOMEM, "layer %s: out of memory in oneDNN (%s)", call->name, what);
    return co_fail(CO_E_FAILED, "layer %s: oneDNN cannot %s for %s: %s; try the ref backend",
                   call->name, what, call->op->name, backend_reason(status));
}

/* Losses are small and oneDNN has none: ref runs them. */
static const co_kernel *const backend_kernels[] = {
    &co_onednn_conv2d,      &co_onednn_linear,
    &co_onednn_maxpool,     &co_onednn_avgpool,
    &co_onednn_relu,        &co_onednn_add,
    &co_onednn_flatten,     &co_onednn_batchnorm,
    &co_onednn_log_softmax, NULL,
};

const co_backend co_backend_onednn = {
    .name = "onednn",
    .summary = "oneDNN's kernels for processors, in blocked layouts",
    .kernels = backend_kernels,
    .unpack = &co_onednn_unpack,
    .half = backend_half,
    .describe = backend_describe,
    .describe_call = onednn_describe_call,
};
