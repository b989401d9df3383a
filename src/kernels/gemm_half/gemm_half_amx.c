/* gemm_half_amx.c - the loops of gemm_half_tiles.h with AMX. */
#define GEMM_HALF_TABLE gemm_half_loops_amx
#define GEMM_HALF_NAME  "amx"

#include "kernels/gemm_half/gemm_half_tiles.h"
