/*
 * grid.h - how kernels of a GPU are written: in the C that is C++, too, as phases of a block.
 *
 * A kernel gets one struct by value. Its blocks are independent of each other. What the threads of
 * a block do between two barriers is a PHASE, the statement after that word:
 *
 * - Outside of phases a block has one course: loops and conditions there do not depend on THREAD,
 *   and variables there are the same for all of its threads. They are read in phases, not written.
 * - What one phase leaves to another is in SHARED arrays. `continue` ends a thread's part of a
 * phase.
 * - SYNC lets all threads have read a SHARED variable outside of a phase before a phase writes it.
 *
 * EACH (i, n) takes the threads of all blocks through 0 .. n - 1, without a barrier; variables of
 * its body are a thread's own, those before it may hold a sum or a maximum of what a thread sees.
 *
 * So the same file can be run block by block on a host, by other definitions of these words
 * (CUDA_GRID_DEFINED).
 */
#ifndef CO_KERNELS_CUDA_GRID_H
#define CO_KERNELS_CUDA_GRID_H

#ifndef CUDA_GRID_DEFINED

#define KERNEL(name, type) extern "C" __global__ void name(const type arg)
#define SHARED             __shared__
#define THREAD             threadIdx.x
#define THREADS            blockDim.x
#define BLOCK              blockIdx.x
#define BLOCKS             gridDim.x
#define PHASE              for (bool phase_ = true; phase_; __syncthreads(), phase_ = false)
#define SYNC()             __syncthreads()
#define EACH(i, n)                                                                                 \
    for (size_t i = (size_t)BLOCK * THREADS + THREAD; i < (n); i += (size_t)BLOCKS * THREADS)
#define ATOMIC_ADD(at, value) atomicAdd(at, value)
#define ATOMIC_MAX(at, value) atomicMax(at, value)

#endif
#endif
