/* dropout_neon.c - the loops of dropout.h for NEON. */
#define LANES         4
#define DROPOUT_TABLE dropout_loops_neon

#include "kernels/dropout/dropout_impl.h"
