/* winograd_bf16_7.c - the loops of winograd.h for BF16, with tiles of 7 x 7. */
#define WINOGRAD_TILE  7
#define WINOGRAD_TABLE winograd_loops_bf16_7
#define WINOGRAD_NAME  "winograd7:avx512_bf16"

#include "kernels/winograd/winograd_bf16.h"
