/* dropout_basic.c - the loops of dropout.h for any processor. */
#define LANES         4
#define DROPOUT_TABLE dropout_loops_basic

#include "kernels/dropout/dropout_impl.h"
