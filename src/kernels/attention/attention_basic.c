/* attention_basic.c - the loops of attention.h for any processor. */
#define LANES           4
#define ATTENTION_TABLE attention_loops_basic

#include "kernels/attention/attention_impl.h"
