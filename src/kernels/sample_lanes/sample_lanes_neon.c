/* sample_lanes_neon.c - the loops of sample_lanes.h for NEON. */
#define LANES             4
#define LANES_TILE_O      5
#define LANES_TILE_V      4
#define LANES_TILE_J      5
#define LANES_SPARSE_ROWS 5
#define LANES_SPOT_COST   10
#define LANES_SPARSE_VECS 5
#define LANES_SQUARE_VECS 4
#define LANES_TABLE       lanes_loops_neon
#define LANES_NAME        "NEON"

#include <arm_neon.h>
#include <string.h>

static inline unsigned lanes_nonzero(float32x4_t v)
{
    const uint32x4_t bit = {1, 2, 4, 8};

    return vaddvq_u32(vbicq_u32(bit, vceqzq_f32(v)));
}

typedef uint32x4_t lanes_int;

static inline lanes_int lanes_read_bytes(const unsigned char *from)
{
    uint32_t all;

    memcpy(&all, from, sizeof(all));
    return vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(all)))));
}

static inline void lanes_write_bytes(unsigned char *to, lanes_int v)
{
    const uint16x4_t half = vmovn_u32(v);
    const uint32_t all = vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(half, half))), 0);

    memcpy(to, &all, sizeof(all));
}

#include "kernels/sample_lanes/sample_lanes_impl.h"
