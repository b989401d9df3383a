/* layernorm_neon.c - the loops of layernorm.h for NEON. */
#define LANES           4
#define LAYERNORM_TABLE layernorm_loops_neon

#include "kernels/layernorm/layernorm_impl.h"
