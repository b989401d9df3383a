/*
 * standin.h - a CUDA driver without a GPU, on the mock device: the functions that Cohort uses, with
 * the arguments that it gives them. Every other argument is refused.
 *
 * Tests find it as libcuda.so.1 along LD_LIBRARY_PATH; the program has no other way to it.
 */
#ifndef TESTS_STANDIN_STANDIN_H
#define TESTS_STANDIN_STANDIN_H

#include <cuda.h>

#include "device/mock_queue.h"

#define STANDIN_EXPORT __attribute__((visibility("default")))
#define STANDIN_MEMORY ((size_t)1 << 30)

/* Variables of the environment that are read at each call. */
#define STANDIN_VERSION "STANDIN_VERSION" /* of CUDA; 13000 if not set */
#define STANDIN_GPUS    "STANDIN_GPUS"    /* 1 if not set */
#define STANDIN_LOSE    "STANDIN_LOSE"    /* a file: which process removes it loses its GPU */
#define STANDIN_AT      "STANDIN_AT"      /* by which of its kernels, from 1 */

#define STANDIN_GRAPHS "STANDIN_GRAPHS" /* a file, to which each launch of a graph adds a byte */

/* The device of the context that is the calling thread's. NULL: it has none. */
co_device *standin_device(void);
CUresult standin_result(co_status st);

static inline void *standin_at(uintptr_t at)
{
    return (void *)at; /* NOLINT(performance-no-int-to-ptr): an address of the GPU */
}

/* Of libnccl.so.2, by dlsym: buffers that have been registered so far. */
#define STANDIN_REGISTERED "standin_registered"
typedef int standin_registered_fn(void);

/* What nvrtc.c compiles everything to. */
#define STANDIN_CODE "kernels of the stand-in"

/* For tests, by dlsym: all pending and future work is dropped, and fails. */
#define STANDIN_BREAK "standin_break"
typedef void standin_break_fn(void);

#endif
