/* layernorm_avx512.c - the loops of layernorm.h for AVX-512. */
#define LANES           16
#define LAYERNORM_TABLE layernorm_loops_avx512

#include "kernels/layernorm/layernorm_impl.h"
