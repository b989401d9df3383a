/*
 * fuzz_run_data.c - the reader of data.json over any bytes.
 *
 * What it accepts has three sizes of a sample, of which memory may be taken, and a name or none for
 * each class.
 */
#include <stdlib.h>

#include "train/run_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    co_run_data run;

    if (co_run_data_parse(&run, (const char *)data, size, "input") != CO_OK)
        return 0;
    if (run.classes < 1 || !run.name || run.stored.ndim != 3 || run.sample.ndim != 3)
        abort();
    for (int i = 0; i < 3; i++)
        if (run.sample.dim[i] < 1 || run.stored.dim[i] < (run.encoded && i ? 0 : 1))
            abort();
    co_run_data_free(&run);
    return 0;
}
