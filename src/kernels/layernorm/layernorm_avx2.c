/* layernorm_avx2.c - the loops of layernorm.h for AVX2. */
#define LANES           8
#define LAYERNORM_TABLE layernorm_loops_avx2

#include "kernels/layernorm/layernorm_impl.h"
