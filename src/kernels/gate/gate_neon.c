/* gate_neon.c - the loops of gate.h for NEON. */
#define LANES      4
#define GATE_TABLE gate_loops_neon

#include "kernels/gate/gate_impl.h"
