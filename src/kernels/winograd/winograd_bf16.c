/* winograd_bf16.c - the loops of winograd.h for BF16, with tiles of 4 x 4. */
#define WINOGRAD_TILE  4
#define WINOGRAD_TABLE winograd_loops_bf16
#define WINOGRAD_NAME  "winograd:avx512_bf16"

#include "kernels/winograd/winograd_bf16.h"
