/*
 * block_serial.h - the words of kernels/cuda/grid.h on a host: blocks run one after another, and in
 * a phase its threads do. Included before each file of kernels.
 */
#ifndef TESTS_STANDIN_BLOCK_SERIAL_H
#define TESTS_STANDIN_BLOCK_SERIAL_H

#define CUDA_GRID_DEFINED

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/cuda/block.h"

/* Where a worker is; a block's SHARED variables are its worker's. */
typedef struct serial_place {
    uint32_t thread, threads, block, blocks;
} serial_place;

extern _Thread_local serial_place serial_at;

typedef struct serial_kernel {
    const char *name;
    size_t size; /* of its argument */
    void (*run)(const void *arg);
    const struct serial_kernel *next;
} serial_kernel;

void serial_add(serial_kernel *kernel);

/* The head of a function, which runs one block. */
#define KERNEL(name, type)                                                                         \
    static void name##_block(const type arg);                                                      \
    static void name##_run(const void *arg)                                                        \
    {                                                                                              \
        name##_block(*(const type *)arg);                                                          \
    }                                                                                              \
    __attribute__((constructor)) static void name##_add(void)                                      \
    {                                                                                              \
        static serial_kernel kernel = {#name, sizeof(type), name##_run, NULL};                     \
        serial_add(&kernel);                                                                       \
    }                                                                                              \
    static void name##_block(const type arg)

#define KERNEL_OF(name, type, blocks) KERNEL(name, type)

#define INLINE static inline
#define SHARED static _Thread_local
/* As many as a block can have. */
#define OWN(type, name, n) static _Thread_local type name[CUDA_BLOCK][n]
#define MINE(name)         name[THREAD]
#define THREAD             serial_at.thread
#define THREADS            serial_at.threads
#define BLOCK              serial_at.block
#define BLOCKS             serial_at.blocks
#define PHASE              for (THREAD = 0; THREAD < THREADS; THREAD++)
#define SYNC()             ((void)0)
#define EACH(i, n)                                                                                 \
    for (size_t i = (size_t)BLOCK * THREADS, end_ = (n); i < end_; i = serial_next(i))

/* After the block's last thread, its first one's next element. */
static inline size_t serial_next(size_t i)
{
    return (i + 1) % serial_at.threads ? i + 1
                                       : i + 1 + (size_t)(serial_at.blocks - 1) * serial_at.threads;
}

static inline void serial_add_to(uint32_t *at, uint32_t value)
{
    *at += value;
}

static inline void serial_max_to(uint32_t *at, uint32_t value)
{
    *at = value > *at ? value : *at;
}

#define ROLLED
#define CALLED                   static inline
#define FMA(a, b, c)             ((a) * (b) + (c))
#define ATOMIC_ADD(at, value)    serial_add_to(at, value)
#define ATOMIC_ADD_64(at, value) (*(at) += (value))
#define ATOMIC_MAX(at, value)    serial_max_to(at, value)
#define WIDEN_F16(half)          half_widen_f16(half)
#define ROUND_F16(value)         half_round_f16(value)

#include "standin/warp_serial.h"

#endif
