/* rotary_avx512.c - the loops of rotary.h for AVX-512. */
#define LANES        16
#define ROTARY_TABLE rotary_loops_avx512

#include "kernels/rotary/rotary_impl.h"
