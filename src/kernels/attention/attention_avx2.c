/* attention_avx2.c - the loops of attention.h for AVX2. */
#define LANES           8
#define ATTENTION_TABLE attention_loops_avx2

#include "kernels/attention/attention_impl.h"
