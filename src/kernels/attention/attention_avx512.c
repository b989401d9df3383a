/* attention_avx512.c - the loops of attention.h for AVX-512. */
#define LANES           16
#define ATTENTION_TABLE attention_loops_avx512

#include "kernels/attention/attention_impl.h"
