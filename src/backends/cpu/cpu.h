/*
 * cpu.h - shared by the kernels of the cpu backend: layouts, scratch memory, threads. Their loops
 * are in src/kernels.
 */
#ifndef CO_BACKENDS_CPU_CPU_H
#define CO_BACKENDS_CPU_CPU_H

#include "backends/backends.h"
#include "kernels/reorder/reorder.h"
#include "ops/ops.h"

/* A tensor in the layout in which a kernel reads it: its own memory, or a copy in scratch. */
typedef struct cpu_operand {
    const co_tensor *tensor; /* borrowed for the life of the plan */
    co_layout layout;
    bool copied;
    size_t at; /* of the copy */
} cpu_operand;

#define CPU_AMX_BLOCK 32 /* channels of a block of the kernels for AMX: two vectors */

/* --- layout.c --- */
co_layout cpu_plain(void);
co_layout cpu_blocks(int block);
bool cpu_is_blocked(const co_tensor *tensor, int block);
/* Set the tensor's layout: plain, blocks, or channels last. */
void cpu_set_layout(co_tensor *tensor, co_layout layout);
/* Set the layout of `other`, which has the same shape. */
void cpu_like(co_tensor *tensor, const co_tensor *other);
/* A layout as strides. */
reorder_places cpu_find_places(const co_shape *shape, co_layout layout);
/* Copy a tensor's values into another layout of the same type. */
void cpu_reorder(void *to, co_layout layout, const co_tensor *from, int threads);

/* --- operand.c --- */
/* Reserve `bytes` of the call's scratch memory after the first `used`; returns their offset. */
size_t cpu_take_scratch(co_call *call, size_t *used, size_t bytes);
/* While planning: require at least so many bytes of scratch, and of scratch per thread. */
void cpu_need_scratch(co_call *call, size_t bytes, size_t thread_bytes);
/* Scratch memory of thread `t`. */
void *cpu_own_scratch(const co_call *call, int t);
/* While planning: read the tensor in `layout`, if necessary from a copy in scratch. */
cpu_operand cpu_plan_operand(co_call *call, size_t *used, const co_tensor *tensor,
                             co_layout layout);
/* At the start of a pass: make the copy, if there is one. */
void cpu_bring(const cpu_operand *x, const co_call *call, int threads);
/* At the end of a pass that made the operand: from the copy, if there is one, to the tensor. */
void cpu_put_back(const cpu_operand *x, const co_call *call, int threads);
/* The operand's data, between these; NULL without a tensor. */
void *cpu_address(const cpu_operand *x, const co_call *call);

/* Threads for a call's loops; one if synchronizing would take longer than computing. */
int cpu_threads(const co_call *call);
bool cpu_is_small(const co_call *call);

/* Whether the first input is in a layout that others than the library that made it can read. */
bool cpu_reads_layout(const co_call *call, const char **why);

/* Whether a kernel can run the call in its type: always in fp32; in bf16 if the CPU has
   instructions for it and norm parameters are not rounded. */
bool cpu_takes(const co_call *call, const char **why);
/* The same for kernels that compute in fp32 alone. */
bool cpu_takes_floats(const co_call *call, const char **why);

#define CPU_HALF  (1u << CO_BF16) /* co_kernel.half */
#define CPU_READS (CO_READS(CO_FORMAT_CHANNEL_BLOCKS) | CO_READS(CO_FORMAT_CHANNELS_LAST))

extern const co_kernel co_cpu_window_conv, co_cpu_phase_conv, co_cpu_amx_conv, co_cpu_linear_amx,
    co_cpu_attention_half, co_cpu_winograd, co_cpu_direct_first, co_cpu_small_conv, co_cpu_linear,
    co_cpu_linear_sequences, co_cpu_batchnorm, co_cpu_adaptive_avgpool, co_cpu_dropout,
    co_cpu_dropout2d, co_cpu_unpack;
/* Of co_backend_cpu_general. */
extern const co_kernel co_cpu_direct_conv, co_cpu_linear_half, co_cpu_linear_any, co_cpu_relu,
    co_cpu_add, co_cpu_maxpool, co_cpu_avgpool, co_cpu_flatten, co_cpu_log_softmax,
    co_cpu_layernorm, co_cpu_attention, co_cpu_gelu, co_cpu_embedding, co_cpu_positions,
    co_cpu_tanh, co_cpu_scale, co_cpu_nll_loss, co_cpu_cross_entropy, co_cpu_mse_loss,
    co_cpu_l1_loss, co_cpu_bce_with_logits_loss, co_cpu_rmsnorm, co_cpu_silu, co_cpu_mul,
    co_cpu_concat, co_cpu_rotary, co_cpu_patches, co_cpu_class_token, co_cpu_first;

#endif
