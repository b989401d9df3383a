/* taps_avx512.c - the loops of taps.h for AVX-512. */
#define LANES      16
#define TAPS_ROWS  8
#define TAPS_DEPTH 8
#define TAPS_TABLE taps_loops_avx512
#define TAPS_NAME  "taps:avx512"

#include "backends/onednn/taps_impl.h"
