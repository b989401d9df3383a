/*
 * cpu.h - what Cohort's own kernels for processors share: layouts, scratch memory, threads. Their
 * loops are in src/kernels.
 */
#ifndef CO_BACKENDS_CPU_CPU_H
#define CO_BACKENDS_CPU_CPU_H

#include "backends/backends.h"
#include "kernels/reorder/reorder.h"
#include "ops/ops.h"

/* A tensor in the layout in which a kernel reads it: its own memory, or a copy in scratch. */
typedef struct cpu_operand {
    const co_tensor *tensor; /* outlives the plan */
    co_layout layout;
    bool copied;
    size_t at; /* of the copy */
} cpu_operand;

/* --- layout.c --- */
co_layout cpu_plain(void);
co_layout cpu_blocks(int block);
/* Let the tensor have the layout, which is plain, in blocks, or channels last. */
void cpu_set_layout(co_tensor *tensor, co_layout layout);
/* Let `tensor` have the layout of `other`, which has the same shape. */
void cpu_like(co_tensor *tensor, const co_tensor *other);
/* The same layouts: where elements are. */
reorder_places cpu_find_places(const co_shape *shape, co_layout layout);
/* Reorder a tensor's memory; the types are equal. */
void cpu_reorder(void *to, co_layout layout, const co_tensor *from, int threads);

/* --- operand.c --- */
/* Reserve so many bytes of the call's scratch memory after the `used` ones; returns their
   offset. */
size_t cpu_take_scratch(co_call *call, size_t *used, size_t bytes);
/* While planning: read the tensor in the layout, from a copy in scratch memory unless it has it. */
cpu_operand cpu_plan_operand(co_call *call, size_t *used, const co_tensor *tensor,
                             co_layout layout);
/* First step of a pass: make the copy. */
void cpu_bring(const cpu_operand *x, const co_call *call, int threads);
/* Afterwards; NULL if there is no tensor. */
const void *cpu_address(const cpu_operand *x, const co_call *call);

/* Threads of a call's loops; one where synchronizing threads would take longer than computing. */
int cpu_threads(const co_call *call);
bool cpu_is_small(const co_call *call);

/* Whether a BF16 kernel may run the call: the CPU has instructions for it, and its parameters are
   not rounded. Always, for fp32. */
bool cpu_takes(const co_call *call, const char **why);

#define CPU_HALF  (1u << CO_BF16) /* co_kernel.half */
#define CPU_READS (CO_READS(CO_FORMAT_CHANNEL_BLOCKS) | CO_READS(CO_FORMAT_CHANNELS_LAST))

extern const co_kernel co_cpu_winograd, co_cpu_small_conv, co_cpu_linear, co_cpu_batchnorm,
    co_cpu_adaptive_avgpool, co_cpu_dropout, co_cpu_dropout2d, co_cpu_unpack;
/* Of co_backend_cpu_general. */
extern const co_kernel co_cpu_direct_conv, co_cpu_linear_any, co_cpu_relu, co_cpu_add,
    co_cpu_maxpool, co_cpu_avgpool, co_cpu_flatten, co_cpu_log_softmax;

#endif
