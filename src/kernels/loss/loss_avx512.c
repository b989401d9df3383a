/* loss_avx512.c - the loops of loss.h for AVX-512. */
#define LANES      16
#define LOSS_TABLE loss_loops_avx512

#include "kernels/loss/loss_impl.h"
