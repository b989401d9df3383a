/* gate_avx2.c - the loops of gate.h for AVX2. */
#define LANES      8
#define GATE_TABLE gate_loops_avx2

#include "kernels/gate/gate_impl.h"
