/* pool_bf16.c - the loops of pool.h for BF16. */
#define LANES      16
#define POOL_TABLE pool_loops_bf16

#include "kernels/half16.h"

typedef uint16_t pool_cell;

#define pool_take half16_load
#define pool_put  half16_store

#include "kernels/pool/pool_impl.h"
