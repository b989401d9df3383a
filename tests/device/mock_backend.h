/*
 * mock_backend.h - kernels that queue their work: those of backends of the host, each call of which
 * a worker of the mock device makes when its turn has come.
 */
#ifndef TESTS_DEVICE_MOCK_BACKEND_H
#define TESTS_DEVICE_MOCK_BACKEND_H

#include <cohort/ext/kernel.h>

#define MOCK_MAX_KERNELS 64

typedef struct mock_kernel {
    co_kernel kernel;    /* of the mock device */
    const co_kernel *of; /* of the host; borrowed */
} mock_kernel;

typedef struct mock_backend {
    mock_kernel kernel[MOCK_MAX_KERNELS];
    const co_kernel *list[MOCK_MAX_KERNELS + 1];
    co_backend backend;
    const co_backend *all[2]; /* `backend`, and NULL */
} mock_backend;

/* All kernels of `of`, ended by NULL, which read and write plain tensors alone and keep nothing of
   their own. `out` must stay where it is. */
void mock_backend_init(mock_backend *out, const co_backend *const *of);

#endif
