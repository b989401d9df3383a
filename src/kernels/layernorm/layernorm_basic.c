/* layernorm_basic.c - the loops of layernorm.h for any processor. */
#define LANES           4
#define LAYERNORM_TABLE layernorm_loops_basic

#include "kernels/layernorm/layernorm_impl.h"
