/*
 * winograd3_floats.h - the loops of winograd3.h for tensors of floats, for a file that defines
 * LANES, WINOGRAD3_TABLE and WINOGRAD3_NAME.
 */
#define WINOGRAD3_TILE 4
#include "kernels/winograd3/winograd3_lines.h"

#define WINOGRAD3_FLOATS true

typedef float cell;

SIMD_INLINE vec winograd3_take(winograd3_bits bits, const cell *from)
{
#if LANES == 16
    return (vec)_mm512_maskz_load_ps(bits, from);
#else
    return bits ? simd_load(from) : (vec){0};
#endif
}

SIMD_INLINE void winograd3_put(cell *to, vec value)
{
    simd_store(to, value);
}

SIMD_INLINE vec winograd3_weight(vec value)
{
    return value;
}

#include "kernels/winograd3/winograd3_images.h"
