/* batchnorm_neon.c - batch norm's loops on 4 channels at once, for NEON. */
#define LANES      4
#define NORM_TABLE norm_loops_neon

#include <arm_neon.h>

#include "kernels/batchnorm/batchnorm.h"
#include "kernels/cell.h"

static inline uint16_t norm_is_kept(vec v)
{
    const uint32x4_t bit = {1, 2, 4, 8};

    return (uint16_t)vaddvq_u32(vbicq_u32(bit, vclezq_f32((float32x4_t)v)));
}

static inline vec norm_keep(vec v, uint16_t bits)
{
    const uint32x4_t bit = {1, 2, 4, 8};

    return (vec)vandq_u32((uint32x4_t)v, vtstq_u32(vdupq_n_u32(bits), bit));
}

#include "kernels/batchnorm/batchnorm_impl.h"
