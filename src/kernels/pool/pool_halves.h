/* pool_halves.h - the loops of pool.h for BF16, for a file that defines LANES and POOL_TABLE. */
#include "kernels/half16.h"

typedef uint16_t pool_cell;

#define pool_take half16_load
#define pool_put  half16_store

#include "kernels/pool/pool_impl.h"
