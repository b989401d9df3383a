/* winograd3_bf16.c - the loops of winograd3.h for BF16, with tiles of 4 x 4. */
#define WINOGRAD3_TILE  4
#define WINOGRAD3_TABLE winograd3_loops_bf16
#define WINOGRAD3_NAME  "winograd:avx512_bf16"

#include "kernels/winograd3/winograd3_bf16.h"
