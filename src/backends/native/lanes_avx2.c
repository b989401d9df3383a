/* lanes_avx2.c - the loops of native.h for AVX2 and FMA. */
#define LANES        8
#define LANES_TILE_O 3
#define LANES_TILE_V 3
#define LANES_TILE_J 3
#define LANES_TABLE  native_lanes_avx2
#define LANES_NAME   "AVX2"

#include "backends/native/lanes_impl.h"
