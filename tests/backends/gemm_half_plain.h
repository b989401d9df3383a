/* gemm_half_plain.h - the loops of kernels/gemm_half with tiles in plain C, for every CPU. */
#ifndef CO_TESTS_BACKENDS_GEMM_HALF_PLAIN_H
#define CO_TESTS_BACKENDS_GEMM_HALF_PLAIN_H

#include "kernels/gemm_half/gemm_half.h"

extern const gemm_half_loops gemm_half_loops_plain;

#endif
