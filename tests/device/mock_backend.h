/*
 * mock_backend.h - kernels of host backends, called by a worker of the mock device in queue order.
 */
#ifndef TESTS_DEVICE_MOCK_BACKEND_H
#define TESTS_DEVICE_MOCK_BACKEND_H

#include <cohort/ext/kernel.h>

#define MOCK_MAX_KERNELS 64

typedef struct mock_kernel {
    co_kernel kernel;    /* what the mock device offers */
    const co_kernel *of; /* the host's kernel; borrowed */
} mock_kernel;

typedef struct mock_backend {
    mock_kernel kernel[MOCK_MAX_KERNELS];
    const co_kernel *list[MOCK_MAX_KERNELS + 1];
    co_backend backend;
    const co_backend *all[2]; /* `backend`, and NULL */
} mock_backend;

/* Wraps all kernels of `of` (NULL-terminated) that use plain tensors only and keep no state. `out`
   must not move. */
void mock_backend_init(mock_backend *out, const co_backend *const *of);

#endif
