/* lanes_basic.c - the loops of native.h for what every machine has. */
#define LANES        4
#define LANES_TILE_O 3
#define LANES_TILE_V 3
#define LANES_TILE_J 3
#define LANES_TABLE  native_lanes_basic
#define LANES_NAME   "no vector extension"

#include "backends/native/lanes_impl.h"
