/*
 * lookup.c - bytes to floats through a table, in plain C; and the choice.
 */
#include "data/lookup.h"

#include <string.h>

#define LOOKUP_STEP 8

void co_lookup_plain(float *out, const uint8_t *in, size_t n, const float table[CO_LOOKUP_LEVELS])
{
    size_t i = 0;

    for (; i + LOOKUP_STEP <= n; i += LOOKUP_STEP) {
        uint64_t bytes;

        memcpy(&bytes, in + i, sizeof(bytes)); /* one load for eight: loads are what bounds this */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        bytes = __builtin_bswap64(bytes);
#endif
        for (size_t k = 0; k < LOOKUP_STEP; k++)
            out[i + k] = table[bytes >> 8 * k & 0xff];
    }
    for (; i < n; i++)
        out[i] = table[in[i]];
}

void co_lookup(float *out, const uint8_t *in, size_t n, const float table[CO_LOOKUP_LEVELS])
{
#ifdef CO_DATA_X86
    if (__builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bw")) {
        co_lookup_avx512(out, in, n, table);
        return;
    }
#endif
    co_lookup_plain(out, in, n, table);
}
