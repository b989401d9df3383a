/*
 * winograd43_floats.h - the loops of winograd43.h for tensors of floats, for a file that defines
 * LANES, WINOGRAD43_TABLE and WINOGRAD43_NAME.
 */
#include "kernels/winograd43/winograd43_lines.h"

#define WINOGRAD43_FLOATS true

typedef float cell;

SIMD_INLINE vec winograd43_take(winograd43_bits bits, const cell *from)
{
#if LANES == 16
    return (vec)_mm512_maskz_load_ps(bits, from);
#else
    return bits ? simd_load(from) : (vec){0};
#endif
}

SIMD_INLINE void winograd43_put(cell *to, vec value)
{
    simd_store(to, value);
}

SIMD_INLINE vec winograd43_weight(vec value)
{
    return value;
}

#include "kernels/winograd43/winograd43_images.h"
