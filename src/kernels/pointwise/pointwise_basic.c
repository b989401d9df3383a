/* pointwise_basic.c - the loops of pointwise.h for any processor. */
#define LANES           4
#define POINTWISE_TABLE pointwise_loops_basic

#include "kernels/pointwise/pointwise_impl.h"
