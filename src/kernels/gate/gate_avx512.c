/* gate_avx512.c - the loops of gate.h for AVX-512. */
#define LANES      16
#define GATE_TABLE gate_loops_avx512

#include "kernels/gate/gate_impl.h"
