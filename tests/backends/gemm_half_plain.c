/* gemm_half_plain.c - the loops of kernels/gemm_half/gemm_half_tiles.h with tiles in plain C. */
#define TILES_PLAIN
#define GEMM_HALF_TABLE gemm_half_loops_plain
#define GEMM_HALF_NAME  "tiles in plain C"

#include "kernels/gemm_half/gemm_half_tiles.h"
/* after it */
#include "gemm_half_plain.h"
