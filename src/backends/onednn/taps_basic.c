/* taps_basic.c - the loops of taps.h for what every machine has. */
#define LANES      8
#define TAPS_ROWS  4
#define TAPS_DEPTH 2
#define TAPS_TABLE taps_loops_basic
#define TAPS_NAME  "taps"

#include "backends/onednn/taps_impl.h"
