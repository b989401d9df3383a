/* attention_half_bf16.c - the loops of attention_half_impl.h for AVX-512 with BF16. */
#define ATTENTION_HALF_TABLE attention_half_loops_bf16

#include "kernels/attention_half/attention_half_impl.h"
