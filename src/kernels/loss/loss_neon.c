/* loss_neon.c - the loops of loss.h for NEON. */
#define LANES      4
#define LOSS_TABLE loss_loops_neon

#include "kernels/loss/loss_impl.h"
