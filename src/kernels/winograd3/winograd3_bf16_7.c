/* winograd3_bf16_7.c - the loops of winograd3.h for BF16, with tiles of 7 x 7. */
#define WINOGRAD3_TILE  7
#define WINOGRAD3_TABLE winograd3_loops_bf16_7
#define WINOGRAD3_NAME  "winograd7:avx512_bf16"

#include "kernels/winograd3/winograd3_bf16.h"
