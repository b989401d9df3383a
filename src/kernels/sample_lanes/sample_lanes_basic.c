/* sample_lanes_basic.c - the loops of sample_lanes.h without vector extensions. */
#define LANES             4
#define LANES_TILE_O      3
#define LANES_TILE_V      3
#define LANES_TILE_J      3
#define LANES_SPARSE_ROWS 3
#define LANES_SPOT_COST   10
#define LANES_SPARSE_VECS 3
#define LANES_SQUARE_VECS 2
#define LANES_TABLE       lanes_loops_basic
#define LANES_NAME        "no vector extension"

typedef float basic_vec __attribute__((vector_size(16), may_alias));

static inline unsigned lanes_nonzero(basic_vec v)
{
    return (unsigned)(v[0] != 0) | (unsigned)(v[1] != 0) << 1 | (unsigned)(v[2] != 0) << 2 |
           (unsigned)(v[3] != 0) << 3;
}

typedef int lanes_int __attribute__((vector_size(16), may_alias));

static inline lanes_int lanes_read_bytes(const unsigned char *from)
{
    return (lanes_int){from[0], from[1], from[2], from[3]};
}

static inline void lanes_write_bytes(unsigned char *to, lanes_int v)
{
    for (int l = 0; l < LANES; l++)
        to[l] = (unsigned char)v[l];
}

#include "kernels/sample_lanes/sample_lanes_impl.h"
