/* winograd_bf16_8.c - the loops of winograd.h for BF16, with tiles of 8 x 8. */
#define WINOGRAD_TILE  8
#define WINOGRAD_TABLE winograd_loops_bf16_8
#define WINOGRAD_NAME  "winograd8:avx512_bf16"

#include "kernels/winograd/winograd_bf16.h"
