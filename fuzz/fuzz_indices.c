/*
 * fuzz_indices.c - the reader of a list of samples per rank over any bytes.
 *
 * What it accepts must be samples of the set, none twice. The first byte chooses the ranks.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "data/sample_lists.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_COUNT 1000
#define FUZZ_RANKS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint32_t order[FUZZ_COUNT];
    static bool seen[FUZZ_COUNT];
    uint64_t sizes[FUZZ_RANKS] = {0}, n = 0;
    const int ranks = size ? 1 + data[0] % FUZZ_RANKS : 1;

    if (size == 0 ||
        co_indices_parse(order, sizes, data + 1, size - 1, FUZZ_COUNT, ranks, "input") != CO_OK)
        return 0;
    memset(seen, 0, sizeof(seen));
    for (int r = 0; r < ranks; r++)
        n += sizes[r];
    if (n == 0 || n > FUZZ_COUNT)
        abort();
    for (uint64_t i = 0; i < n; i++) {
        if (order[i] >= FUZZ_COUNT || seen[order[i]])
            abort();
        seen[order[i]] = true;
    }
    return 0;
}
