/*
 * attention.h - what the kernels of attention share.
 */
#ifndef CO_BACKENDS_CPU_ATTENTION_H
#define CO_BACKENDS_CPU_ATTENTION_H

#include "backends/cpu/cpu.h"
#include "kernels/attention/attention.h"

attention_shape cpu_attention_measure(const co_call *call);
/* Bytes of workspace: of each head and position the logarithm of the sum of exponentials. */
size_t cpu_attention_norm_bytes(const co_call *call);
/* Those of sample n, head h of queries. */
float *cpu_attention_norm(const co_call *call, int64_t n, int64_t h);

#endif
