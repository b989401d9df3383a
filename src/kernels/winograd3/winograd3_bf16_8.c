/* winograd3_bf16_8.c - the loops of winograd3.h for BF16, with tiles of 8 x 8. */
#define WINOGRAD3_TILE  8
#define WINOGRAD3_TABLE winograd3_loops_bf16_8
#define WINOGRAD3_NAME  "winograd8:avx512_bf16"

#include "kernels/winograd3/winograd3_bf16.h"
