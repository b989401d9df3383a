/* gate_basic.c - the loops of gate.h for any processor. */
#define LANES      4
#define GATE_TABLE gate_loops_basic

#include "kernels/gate/gate_impl.h"
