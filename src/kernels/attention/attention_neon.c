/* attention_neon.c - the loops of attention.h for NEON. */
#define LANES           4
#define ATTENTION_TABLE attention_loops_neon

#include "kernels/attention/attention_impl.h"
