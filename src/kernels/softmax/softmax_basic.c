/* softmax_basic.c - the loops of softmax.h for any processor. */
#define LANES         8
#define SOFTMAX_TABLE softmax_loops_basic

#include "kernels/softmax/softmax_impl.h"
