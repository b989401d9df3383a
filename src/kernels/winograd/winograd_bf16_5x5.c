/* winograd_bf16_5x5.c - the loops of winograd.h for BF16 and 5x5 taps, with tiles of 4 x 4. */
#define WINOGRAD_SIDE  5
#define WINOGRAD_TILE  4
#define WINOGRAD_TABLE winograd5x5_loops_bf16
#define WINOGRAD_NAME  "winograd5x5:avx512_bf16"

#include "kernels/winograd/winograd_bf16.h"
