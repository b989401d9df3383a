/*
 * fuzz_idx.c - the IDX reader over any bytes, plain or gzip, taken as labels and as images.
 *
 * What it accepts must hold as many bytes as it says.
 */
#include <stdlib.h>

#include "data/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_as(const uint8_t *data, size_t size, int ndim)
{
    size_t count = 1;
    co_idx idx;

    if (co_idx_parse(&idx, data, size, ndim, "input") != CO_OK)
        return;
    for (int i = 0; i < ndim; i++)
        count *= idx.dim[i];
    if (count == 0)
        abort();
    for (size_t i = 0; i < count; i++)
        (void)((const volatile uint8_t *)idx.data)[i]; /* volatile, so that the reads stay */
    co_idx_close(&idx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_as(data, size, 1);
    fuzz_as(data, size, 3);
    return 0;
}
