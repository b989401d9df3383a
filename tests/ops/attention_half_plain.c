/* attention_half_plain.c - the loops of kernels/attention_half for any CPU. */
#define ATTENTION_HALF_TABLE attention_half_loops_plain

#include "kernels/attention_half/attention_half_impl.h"
/* after it */
#include "attention_half_plain.h"
