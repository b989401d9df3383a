/* pointwise_neon.c - the loops of pointwise.h for NEON. */
#define LANES           4
#define POINTWISE_TABLE pointwise_loops_neon

#include "kernels/pointwise/pointwise_impl.h"
