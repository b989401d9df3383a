/* loss_basic.c - the loops of loss.h for any processor. */
#define LANES      4
#define LOSS_TABLE loss_loops_basic

#include "kernels/loss/loss_impl.h"
