/*
 * operand.c - a call's scratch memory, copies of its tensors in another layout, and its number of
 * threads.
 */
#include "backends/cpu/cpu.h"
#include "core/isa.h"
#include "core/parallel.h"

#define OPERAND_ALIGN 64
/* Products that take one core some 8 microseconds, in which an element that is only read and
   written counts as much as OPERAND_ELEMENT_WORK of them. */
#define OPERAND_SMALL_WORK   (1 << 19)
#define OPERAND_ELEMENT_WORK 16

size_t cpu_take_scratch(co_call *call, size_t *used, size_t bytes)
{
    const size_t at = *used;

    *used += (bytes + OPERAND_ALIGN - 1) / OPERAND_ALIGN * OPERAND_ALIGN;
    if (call->scratch_bytes < *used)
        call->scratch_bytes = *used;
    return at;
}

void cpu_need_scratch(co_call *call, size_t bytes, size_t thread_bytes)
{
    if (call->scratch_bytes < bytes)
        call->scratch_bytes = bytes;
    if (call->thread_scratch_bytes < thread_bytes)
        call->thread_scratch_bytes = thread_bytes;
}

void *cpu_own_scratch(const co_call *call, int t)
{
    return (char *)call->thread_scratch + (size_t)t * call->thread_scratch_step;
}

cpu_operand cpu_plan_operand(co_call *call, size_t *used, const co_tensor *tensor, co_layout layout)
{
    cpu_operand x = {.tensor = tensor, .layout = layout};
    co_tensor copy = *tensor;

    x.copied = !co_layout_same(&tensor->layout, &layout);
    if (x.copied) {
        cpu_set_layout(&copy, layout);
        x.at = cpu_take_scratch(call, used, copy.bytes);
    }
    return x;
}

void cpu_bring(const cpu_operand *x, const co_call *call, int threads)
{
    if (x->copied)
        cpu_reorder((char *)call->scratch + x->at, x->layout, x->tensor, threads);
}

void cpu_put_back(const cpu_operand *x, const co_call *call, int threads)
{
    co_tensor made;

    if (!x->copied)
        return;
    made = *x->tensor;
    made.layout = x->layout;
    made.data = (char *)call->scratch + x->at;
    cpu_reorder(x->tensor->data, x->tensor->layout, &made, threads);
}

void *cpu_address(const cpu_operand *x, const co_call *call)
{
    if (x->copied)
        return (char *)call->scratch + x->at;
    return x->tensor ? x->tensor->data : NULL;
}

bool cpu_is_small(const co_call *call)
{
    const co_shape *weight = &call->param[0].shape;
    const bool products = call->n_param > 0 && weight->ndim > 1;
    const int64_t each = products ? co_shape_count(weight) / weight->dim[0] : OPERAND_ELEMENT_WORK;
    const co_tensor *elements = call->op->is_loss ? call->in[0] : call->out[0];

    return co_shape_count(&elements->shape) < OPERAND_SMALL_WORK / each;
}

int cpu_threads(const co_call *call)
{
    return co_parallel_threads(cpu_is_small(call) ? 1 : call->threads);
}

bool cpu_reads_layout(const co_call *call, const char **why)
{
    *why = "its input has a layout that the kernel cannot read";
    return call->in[0]->layout.format != CO_FORMAT_OPAQUE;
}

bool cpu_takes(const co_call *call, const char **why)
{
    if (call->in[0]->dtype == CO_F32)
        return true;
    *why = "this CPU has no instructions for bf16";
    if (!co_isa_has(CO_ISA_AVX512_BF16))
        return false;
    *why = "its parameters have 16 bits";
    return !(call->op->is_norm && call->round_params);
}

bool cpu_takes_floats(const co_call *call, const char **why)
{
    *why = "it computes in floats";
    return call->in[0]->dtype == CO_F32 && call->out[0]->dtype == CO_F32;
}
