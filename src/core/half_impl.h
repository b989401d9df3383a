/* half_impl.h - one element, by integer arithmetic; included by each set of loops. */
#ifndef CO_CORE_HALF_IMPL_H
#define CO_CORE_HALF_IMPL_H

#include <string.h>

#include "core/half.h"

static inline uint32_t half_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float half_value(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline float half_widen_bf16(uint16_t half)
{
    return half_value((uint32_t)half << 16);
}

static inline uint16_t half_round_bf16(float value)
{
    const uint32_t bits = half_bits(value);
    const uint32_t nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const uint32_t quiet = bits >> 16 | 0x40;

    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet : nearest);
}

static inline float half_widen_f16(uint16_t half)
{
    const uint32_t sign = ((uint32_t)half & 0x8000) << 16, exponent = half >> 10 & 31;
    const uint32_t fraction = half & 0x3ff;

    if (exponent == 31)
        return half_value(sign | 0x7f800000 | fraction << 13 | (fraction ? 0x400000u : 0));
    if (exponent == 0) /* exact, and never subnormal as a float */
        return half_value(sign | half_bits((float)fraction * 0x1p-24f));
    return half_value(sign | (exponent + 112) << 23 | fraction << 13);
}

static inline uint16_t half_round_f16(float value)
{
    const uint32_t bits = half_bits(value), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    uint32_t nearest;

    if (size > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (size >> 13 & 0x3ff));
    if (size >= 0x38800000) { /* 2^-14: the smallest normal number */
        nearest = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
        if (nearest > 0x7c00)
            nearest = 0x7c00;
    } else if (size < 0x33000000) { /* 2^-25: half of the smallest subnormal one */
        nearest = 0;
    } else {
        const uint32_t fraction = (size & 0x7fffff) | 0x800000, shift = 126 - (size >> 23);

        nearest = (fraction + (1u << (shift - 1)) - 1 + (fraction >> shift & 1)) >> shift;
    }
    return (uint16_t)(sign | nearest);
}

/* Stochastic rounding, by 16 random bits. */

/* The part that is cut off is a 16-bit integer: the sum carries with that probability. */
static inline float half_random_bf16(float value, uint32_t random)
{
    const uint32_t bits = half_bits(value);
    const uint32_t quiet = bits | 0x400000;

    return half_value(((bits & 0x7fffffff) > 0x7f800000 ? quiet : bits + random) & 0xffff0000);
}

/* The same. Below 2^-14 in steps of 2^-24, with 16 bits of what is below them. */
static inline float half_random_f16(float value, uint32_t random)
{
    const uint32_t bits = half_bits(value), sign = bits & 0x80000000, size = bits & 0x7fffffff;
    const uint32_t normal = (size + (random >> 3)) & ~(uint32_t)0x1fff;
    uint32_t whole;

    if (size > 0x7f800000)
        return half_value(bits | 0x400000);
    if (size >= 0x38800000)
        return half_value(sign | (normal >= 0x47800000 ? 0x7f800000 : normal));
    whole = ((uint32_t)(half_value(size) * 0x1p40f) + random) >> 16;
    return half_value(sign | half_bits((float)whole * 0x1p-24f));
}

#endif
