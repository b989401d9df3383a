/* softmax_neon.c - the loops of softmax.h for NEON. */
#define LANES         4
#define SOFTMAX_TABLE softmax_loops_neon

#include "kernels/softmax/softmax_impl.h"
