/* taps_avx2.c - the loops of taps.h for AVX2. */
#define LANES      8
#define TAPS_ROWS  6
#define TAPS_DEPTH 4
#define TAPS_TABLE taps_loops_avx2
#define TAPS_NAME  "taps:avx2"

#include "backends/onednn/taps_impl.h"
