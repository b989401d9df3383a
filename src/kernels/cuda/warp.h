/*
 * warp.h - what the 32 threads of a warp do together: products of blocks of 16-bit numbers on
 * tensor cores, of GPUs of compute capability 8.0 and later.
 *
 * Words for kernels, as those of grid.h. They are outside of phases, where all threads of a block
 * take them, and are no barriers:
 *
 * - ALONE is before a statement that each thread does with its OWN arrays, as PHASE is.
 * - A warp_block is a thread's part of a 16 x 16 block of 16-bit numbers, a warp_sums of a 16 x 8
 *   block of floats (PTX ISA, mma.m16n8k16): of its r-th element the row is WARP_ROW(r), the column
 *   WARP_COLUMN(r); of the r-th pair in a left factor WARP_ROW(r % 2 * 2) and WARP_COLUMN(0) + 8 (r
 *   / 2).
 * - LOAD_AS_ROWS(b, i, tile, step, row, column) makes b[i] a right factor, the block of a SHARED
 *   tile from (row, column) on, whose rows are `step` numbers apart; LOAD_AS_COLUMNS its transpose.
 * - MULTIPLY_ADD(c, i, a, j, b, k, type) adds a[j] b[k] to c[i] and c[i + 1], a 16 x 16 block.
 * - QUAD_MAX(v, i) and QUAD_SUM(v, i) give v[i] the maximum or the sum over the four threads that
 *   share rows.
 *
 * PAIR(low, high, type) is two numbers, rounded. OWNED(type, name, n) is a parameter that gets an
 * OWN array. UNROLL (i, n) is a loop from 0 to n - 1 whose index finds elements of OWN arrays.
 */
#ifndef CO_KERNELS_CUDA_WARP_H
#define CO_KERNELS_CUDA_WARP_H

#include "kernels/cuda/elements.h"

typedef struct warp_block {
    uint32_t v[4];
} warp_block;

typedef struct warp_sums {
    float v[4];
} warp_sums;

#define WARP_THREADS   32
#define WARP           (THREAD / WARP_THREADS)
#define LANE           (THREAD % WARP_THREADS)
#define WARP_ROW(r)    (LANE / 4 + (r) / 2 * 8)
#define WARP_COLUMN(r) (LANE % 4 * 2 + (r) % 2)

#ifndef CUDA_GRID_DEFINED

#define ALONE                for (bool alone_ = true; alone_; alone_ = false)
#define OWNED(type, name, n) type *name
#define UNROLL(i, n)         _Pragma("unroll") for (uint32_t i = 0; i < (n); i++)
#define LOAD_AS_ROWS(b, i, tile, step, row, column)                                                \
    warp_load_rows(&(b)[i], (const uint16_t *)(const void *)(tile) +                               \
                                ((row) + LANE % 16) * (step) + (column) + LANE / 16 * 8)
#define LOAD_AS_COLUMNS(b, i, tile, step, row, column)                                             \
    warp_load_columns(&(b)[i], (const uint16_t *)(const void *)(tile) +                            \
                                   ((row) + LANE / 16 * 8 + LANE % 8) * (step) + (column) +        \
                                   LANE / 8 % 2 * 8)
#define MULTIPLY_ADD(c, i, a, j, b, k, type)                                                       \
    do {                                                                                           \
        warp_multiply_add(&(c)[i], &(a)[j], (b)[k].v, type);                                       \
        warp_multiply_add(&(c)[(i) + 1], &(a)[j], (b)[k].v + 2, type);                             \
    } while (0)
#define QUAD_MAX(v, i)        ((v)[i] = warp_quad_max((v)[i]))
#define QUAD_SUM(v, i)        ((v)[i] = warp_quad_sum((v)[i]))
#define PAIR(low, high, type) warp_pair(low, high, type)

#if __CUDA_ARCH__ >= 800

/* Each thread's address is that of a row of 8 numbers. */
static __forceinline__ void warp_load_rows(warp_block *to, const uint16_t *at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to->v[0]), "=r"(to->v[1]), "=r"(to->v[2]), "=r"(to->v[3])
                 : "r"((uint32_t)__cvta_generic_to_shared(at))
                 : "memory");
}

static __forceinline__ void warp_load_columns(warp_block *to, const uint16_t *at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to->v[0]), "=r"(to->v[1]), "=r"(to->v[2]), "=r"(to->v[3])
                 : "r"((uint32_t)__cvta_generic_to_shared(at))
                 : "memory");
}

#define WARP_MMA(type)                                                                             \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 "                             \
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                          \
        : "+f"(c->v[0]), "+f"(c->v[1]), "+f"(c->v[2]), "+f"(c->v[3])                               \
        : "r"(a->v[0]), "r"(a->v[1]), "r"(a->v[2]), "r"(a->v[3]), "r"(b[0]), "r"(b[1]))

/* 8 columns. */
static __forceinline__ void warp_multiply_add(warp_sums *c, const warp_block *a, const uint32_t *b,
                                              cuda_number type)
{
    if (type == CUDA_NUMBER_BF16)
        WARP_MMA("bf16");
    else
        WARP_MMA("f16");
}

static __forceinline__ uint32_t warp_pair(float low, float high, cuda_number type)
{
    uint32_t pair;

    if (type == CUDA_NUMBER_BF16)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

#else /* who launches does not launch these kernels there */

static __forceinline__ void warp_load_rows(warp_block *to, const uint16_t *at)
{
    __trap();
}

static __forceinline__ void warp_load_columns(warp_block *to, const uint16_t *at)
{
    __trap();
}

static __forceinline__ void warp_multiply_add(warp_sums *c, const warp_block *a, const uint32_t *b,
                                              cuda_number type)
{
    __trap();
}

static __forceinline__ uint32_t warp_pair(float low, float high, cuda_number type)
{
    return 0;
}

#endif

static __forceinline__ float warp_quad_max(float v)
{
    v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 1));
    return fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 2));
}

static __forceinline__ float warp_quad_sum(float v)
{
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    return v + __shfl_xor_sync(0xffffffffu, v, 2);
}

#endif
#endif
