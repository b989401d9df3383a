/*
 * winograd_floats.h - the loops of winograd.h for tensors of floats, for a file that defines
 * LANES, WINOGRAD_TABLE and WINOGRAD_NAME.
 */
#define WINOGRAD_TILE 4
#include "kernels/winograd/winograd_lines.h"

#define WINOGRAD_FLOATS true

typedef float cell;

SIMD_INLINE vec winograd_take(winograd_bits bits, const cell *from)
{
#if LANES == 16
    return (vec)_mm512_maskz_load_ps(bits, from);
#else
    return bits ? simd_load(from) : (vec){0};
#endif
}

SIMD_INLINE void winograd_put(cell *to, vec value)
{
    simd_store(to, value);
}

SIMD_INLINE vec winograd_weight(vec value)
{
    return value;
}

#include "kernels/winograd/winograd_images.h"
