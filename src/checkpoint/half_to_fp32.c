/*
 * half_to_fp32.c - convert half precision in files to fp32.
 *
 * Both types are subsets of F32, so nothing is rounded; NaNs stay NaNs with their payload.
 */
#include <string.h>

#include "checkpoint/format.h"

static const char half_f16[] = "F16", half_bf16[] = "BF16";

const char *format_half_name(const char *name)
{
    if (strcmp(name, half_f16) == 0)
        return half_f16;
    return strcmp(name, half_bf16) == 0 ? half_bf16 : NULL;
}

/* IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 fraction bits; to the bits of binary32. */
static uint32_t half_value(uint32_t half)
{
    const uint32_t sign = (half & 0x8000) << 16;
    uint32_t exponent = half >> 10 & 31, fraction = half & 1023;

    if (exponent == 31)
        return sign | 0x7f800000 | fraction << 13;
    if (exponent == 0 && fraction == 0)
        return sign;
    exponent += 127 - 15;
    if (exponent == 127 - 15) {
        /* Subnormal: fraction * 2^-24. Shift its first one to the place before the point. */
        for (exponent++; !(fraction & 1024); exponent--)
            fraction <<= 1;
        fraction &= 1023;
    }
    return sign | exponent << 23 | fraction << 13;
}

void format_half_to_fp32(float *to, const uint8_t *from, size_t count, const char *half)
{
    const bool brain = half == half_bf16; /* the upper half of an F32 */

    for (size_t i = 0; i < count; i++) {
        const uint32_t bits = (uint32_t)from[2 * i] | (uint32_t)from[2 * i + 1] << 8;
        const uint32_t wide = brain ? bits << 16 : half_value(bits);

        memcpy(&to[i], &wide, sizeof(wide));
    }
}
