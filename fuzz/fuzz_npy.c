/*
 * fuzz_npy.c - the NPY reader over any bytes, plain or gzip.
 *
 * What it accepts must hold as many bytes as it says.
 */
#include <stdlib.h>

#include "data/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t bytes;
    co_npy npy;

    if (co_npy_parse(&npy, data, size, "input") != CO_OK)
        return 0;
    bytes = (size_t)co_shape_count(&npy.shape) * co_dtype_size(npy.dtype);
    if (bytes == 0 || npy.shape.ndim < 1)
        abort();
    for (size_t i = 0; i < bytes; i++)
        (void)((const volatile uint8_t *)npy.data)[i]; /* volatile, so that the reads stay */
    co_npy_close(&npy);
    return 0;
}
