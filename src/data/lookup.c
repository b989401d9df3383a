/*
 * lookup.c - bytes to floats through a table, in plain C; and the choice.
 */
#include "data/lookup.h"

#include <stdbool.h>
#include <string.h>

#define LOOKUP_STEP 8

void co_lookup_split(co_lookup_table *table)
{
    for (size_t level = 0; level < CO_LOOKUP_LEVELS; level++) {
        uint32_t bits;

        memcpy(&bits, &table->value[level], sizeof(bits));
        for (unsigned k = 0; k < 4; k++)
            table->byte[k][level] = (uint8_t)(bits >> 8 * k);
    }
}

void co_lookup_plain(float *out, const uint8_t *in, size_t n, const co_lookup_table *table)
{
    size_t i = 0;

    for (; i + LOOKUP_STEP <= n; i += LOOKUP_STEP) {
        uint64_t bytes;

        memcpy(&bytes, in + i, sizeof(bytes)); /* one load for eight: loads are what bounds this */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        bytes = __builtin_bswap64(bytes);
#endif
        for (size_t k = 0; k < LOOKUP_STEP; k++)
            out[i + k] = table->value[bytes >> 8 * k & 0xff];
    }
    for (; i < n; i++)
        out[i] = table->value[in[i]];
}

static bool lookup_has_avx512(void)
{
#ifdef CO_DATA_X86
    return __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bw");
#else
    return false;
#endif
}

void co_lookup(float *out, const uint8_t *in, size_t n, const co_lookup_table *table)
{
#ifdef CO_DATA_X86
    if (lookup_has_avx512()) {
        co_lookup_avx512(out, in, n, table);
        return;
    }
#endif
    co_lookup_plain(out, in, n, table);
}

void co_lookup_past(float *out, const uint8_t *in, size_t n, const co_lookup_table *table)
{
#ifdef CO_DATA_X86
    if (lookup_has_avx512()) {
        co_lookup_past_avx512(out, in, n, table);
        return;
    }
#endif
    co_lookup_plain(out, in, n, table);
}

void co_lookup_settle(void)
{
#ifdef CO_DATA_X86
    if (lookup_has_avx512())
        co_lookup_settle_avx512();
#endif
}
