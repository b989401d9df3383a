/*
 * elements.h - elements of a tensor of any type of floats, one by one or CUDA_TOGETHER neighbours
 * in accesses of 16 bytes each. Tensors begin at multiples of 32 bytes.
 *
 * `together` is 1 or CUDA_TOGETHER, and a constant where it is passed on to here, so that arrays of
 * a thread are registers; neighbours begin at a multiple of it.
 */
#ifndef CO_KERNELS_CUDA_ELEMENTS_H
#define CO_KERNELS_CUDA_ELEMENTS_H

#include "core/half_impl.h"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/number.h"

typedef struct __attribute__((aligned(16))) elements_f32 {
    float v[4];
} elements_f32;

/* Of 16 bits, two in each word, the first in its lower half. */
typedef struct __attribute__((aligned(16))) elements_16 {
    uint32_t pair[CUDA_TOGETHER / 2];
} elements_16;

static inline float element_widen(uint16_t half, cuda_number type)
{
    return type == CUDA_NUMBER_F16 ? WIDEN_F16(half) : half_widen_bf16(half);
}

static inline uint16_t element_round(float value, cuda_number type)
{
    return type == CUDA_NUMBER_F16 ? ROUND_F16(value) : half_round_bf16(value);
}

/* A value of this type. */
static inline float element_rounded(float value, cuda_number type)
{
    return type == CUDA_NUMBER_F32 ? value : element_widen(element_round(value, type), type);
}

static inline float element_read(const void *from, size_t at, cuda_number type)
{
    return type == CUDA_NUMBER_F32 ? ((const float *)from)[at]
                                   : element_widen(((const uint16_t *)from)[at], type);
}

static inline void element_write(void *to, size_t at, cuda_number type, float value)
{
    if (type == CUDA_NUMBER_F32)
        ((float *)to)[at] = value;
    else
        ((uint16_t *)to)[at] = element_round(value, type);
}

INLINE void elements_read_all(float *v, const void *from, size_t at, cuda_number type)
{
    if (type == CUDA_NUMBER_F32) {
        const elements_f32 *four = (const elements_f32 *)(const void *)((const float *)from + at);
        const elements_f32 low = four[0], high = four[1];

        for (int e = 0; e < 4; e++) {
            v[e] = low.v[e];
            v[4 + e] = high.v[e];
        }
    } else {
        const elements_16 all = *(const elements_16 *)(const void *)((const uint16_t *)from + at);

        for (int e = 0; e < CUDA_TOGETHER; e++)
            v[e] = element_widen((uint16_t)(all.pair[e / 2] >> e % 2 * 16), type);
    }
}

INLINE void elements_write_all(void *to, size_t at, cuda_number type, const float *v)
{
    if (type == CUDA_NUMBER_F32) {
        elements_f32 *four = (elements_f32 *)(void *)((float *)to + at);
        elements_f32 low, high;

        for (int e = 0; e < 4; e++) {
            low.v[e] = v[e];
            high.v[e] = v[4 + e];
        }
        four[0] = low;
        four[1] = high;
    } else {
        elements_16 all;

        for (int e = 0; e < CUDA_TOGETHER; e += 2)
            all.pair[e / 2] = element_round(v[e], type) | (uint32_t)element_round(v[e + 1], type)
                                                              << 16;
        *(elements_16 *)(void *)((uint16_t *)to + at) = all;
    }
}

INLINE void elements_read(float *v, const void *from, size_t at, cuda_number type, int together)
{
    if (together == 1)
        v[0] = element_read(from, at, type);
    else
        elements_read_all(v, from, at, type);
}

INLINE void elements_write(void *to, size_t at, cuda_number type, const float *v, int together)
{
    if (together == 1)
        element_write(to, at, type, v[0]);
    else
        elements_write_all(to, at, type, v);
}

#endif
