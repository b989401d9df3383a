/*
 * grid.h - how kernels of a GPU are written: in the C that is C++, too, as phases of a block.
 *
 * A kernel gets one struct by value. Its blocks are independent of each other. What the threads of
 * a block do between two barriers is a PHASE, the statement after that word:
 *
 * - Outside of phases a block has one course: loops and conditions there do not depend on THREAD,
 *   and variables there are the same for all of its threads. They are read in phases, not written.
 * - What one phase leaves to another is in SHARED arrays, or in a thread's OWN ones, which it alone
 *   sees: OWN (type, name, n) declares, MINE(name) is the array. `continue` ends a thread's part of
 *   a phase.
 * - SYNC lets all threads have read a SHARED variable outside of a phase before a phase writes it.
 *
 * EACH (i, n) takes the threads of all blocks through 0 .. n - 1, without a barrier; variables of
 * its body are a thread's own, those before it may hold a sum or a maximum of what a thread sees.
 *
 * FMA (a, b, c) is a b + c, rounded once on a GPU. INLINE is before functions that get OWN arrays.
 * KERNEL_OF (name, type, blocks) is a KERNEL of whose blocks so many are to have room on a
 * multiprocessor at once. WIDEN_F16 and ROUND_F16 are an instruction each there. ROLLED is before a
 * loop of few turns that would become much code, CALLED before a function that is called and not
 * copied.
 *
 * So the same file can be run block by block on a host, by other definitions of these words
 * (CUDA_GRID_DEFINED).
 */
#ifndef CO_KERNELS_CUDA_GRID_H
#define CO_KERNELS_CUDA_GRID_H

#include "kernels/cuda/block.h"

#ifndef CUDA_GRID_DEFINED

#define KERNEL(name, type) extern "C" __global__ void name(const type arg)
#define KERNEL_OF(name, type, blocks)                                                              \
    extern "C" __global__ void __launch_bounds__(CUDA_BLOCK, blocks) name(const type arg)
#define INLINE             static __forceinline__
#define SHARED             __shared__
#define OWN(type, name, n) type name[n]
#define MINE(name)         name
#define THREAD             threadIdx.x
#define THREADS            blockDim.x
#define BLOCK              blockIdx.x
#define BLOCKS             gridDim.x
#define PHASE              for (bool phase_ = true; phase_; __syncthreads(), phase_ = false)
#define SYNC()             __syncthreads()
#define EACH(i, n)                                                                                 \
    for (size_t i = (size_t)BLOCK * THREADS + THREAD; i < (n); i += (size_t)BLOCKS * THREADS)
#define ROLLED                   _Pragma("unroll 1")
#define CALLED                   static __noinline__
#define FMA(a, b, c)             __fmaf_rn(a, b, c)
#define ATOMIC_ADD(at, value)    atomicAdd(at, value)
#define ATOMIC_ADD_64(at, value) atomicAdd((unsigned long long *)(at), value)
#define ATOMIC_MAX(at, value)    atomicMax(at, value)
#define WIDEN_F16(half)          grid_widen_f16(half)
#define ROUND_F16(value)         grid_round_f16(value)

static __forceinline__ float grid_widen_f16(unsigned short half)
{
    float value;

    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
}

/* To nearest, ties to even. */
static __forceinline__ unsigned short grid_round_f16(float value)
{
    unsigned short half;

    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
}

#endif
#endif
