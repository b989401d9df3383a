/* loss_avx2.c - the loops of loss.h for AVX2. */
#define LANES      8
#define LOSS_TABLE loss_loops_avx2

#include "kernels/loss/loss_impl.h"
