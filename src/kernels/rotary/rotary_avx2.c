/* rotary_avx2.c - the loops of rotary.h for AVX2. */
#define LANES        8
#define ROTARY_TABLE rotary_loops_avx2

#include "kernels/rotary/rotary_impl.h"
