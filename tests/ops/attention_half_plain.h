/* attention_half_plain.h - the loops of kernels/attention_half, for every CPU. */
#ifndef CO_TESTS_OPS_ATTENTION_HALF_PLAIN_H
#define CO_TESTS_OPS_ATTENTION_HALF_PLAIN_H

#include "kernels/attention_half/attention_half.h"

extern const attention_half_loops attention_half_loops_plain;

#endif
