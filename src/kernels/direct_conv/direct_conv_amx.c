/* direct_conv_amx.c - the loops of direct_conv_tiles.h with AMX. */
#define DIRECT_CONV_TABLE direct_conv_loops_amx
#define DIRECT_CONV_NAME  "direct:amx"

#include "kernels/direct_conv/direct_conv_tiles.h"
