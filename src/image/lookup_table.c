/*
 * lookup_table.c - lookup tables from bytes to floats: creation, loops in plain C, choice of loops.
 */
#include "image/lookup_table.h"

#include <math.h>
#include <string.h>

#include "core/isa.h"

#define LOOKUP_STEP 8

static uint32_t lookup_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

void co_lookup_split(co_lookup_table *table)
{
    for (size_t level = 0; level < CO_LOOKUP_LEVELS; level++) {
        const uint32_t bits = lookup_bits(table->value[level]);

        for (unsigned k = 0; k < 4; k++)
            table->byte[k][level] = (uint8_t)(bits >> 8 * k);
    }
    table->formula.holds = false;
}

static void lookup_invert(float inverse[2], float x)
{
    const double exact = 1.0 / (double)x;

    inverse[0] = (float)exact;
    inverse[1] = (float)(exact - (double)inverse[0]);
}

static float lookup_divide(float x, const float inverse[2])
{
    return fmaf(x, inverse[0], x * inverse[1]);
}

static bool lookup_holds(const co_lookup_table *table)
{
    const co_lookup_formula *f = &table->formula;

    for (int level = 0; level < CO_LOOKUP_LEVELS; level++) {
        const float part = lookup_divide((float)level, f->inverse_of_255);
        const float value = lookup_divide(part - f->mean, f->inverse_of_std);

        if (lookup_bits(value) != lookup_bits(table->value[level]))
            return false;
    }
    return true;
}

void co_lookup_make(co_lookup_table *table, float mean, float std)
{
    for (int level = 0; level < CO_LOOKUP_LEVELS; level++)
        table->value[level] = ((float)level / 255.0f - mean) / std;
    co_lookup_split(table);
    table->formula.mean = mean;
    lookup_invert(table->formula.inverse_of_255, 255.0f);
    lookup_invert(table->formula.inverse_of_std, std);
    table->formula.holds = lookup_holds(table);
}

static void lookup_plain(float *out, const uint8_t *in, size_t n, const co_lookup_table *table)
{
    size_t i = 0;

    for (; i + LOOKUP_STEP <= n; i += LOOKUP_STEP) {
        uint64_t bytes;

        memcpy(&bytes, in + i, sizeof(bytes)); /* one load for eight bytes: loads limit the speed */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        bytes = __builtin_bswap64(bytes);
#endif
        for (size_t k = 0; k < LOOKUP_STEP; k++)
            out[i + k] = table->value[bytes >> 8 * k & 0xff];
    }
    for (; i < n; i++)
        out[i] = table->value[in[i]];
}

const co_lookup_loops co_lookup_basic = {
    .name = "plain C",
    .look = lookup_plain,
    .stream = lookup_plain,
};

size_t co_lookup_loops_list(const co_lookup_loops *out[CO_LOOKUP_MAX_LOOPS])
{
    size_t n = 0;

    out[n++] = &co_lookup_basic;
#ifdef CO_IMAGE_X86
    if (co_isa_has(CO_ISA_AVX2))
        out[n++] = &co_lookup_avx2;
    if (co_isa_has_bytes())
        out[n++] = &co_lookup_avx512;
#endif
    return n;
}

static const co_lookup_loops *lookup_choose(const co_lookup_table *table)
{
    const co_lookup_loops *loops[CO_LOOKUP_MAX_LOOPS];
    size_t i = co_lookup_loops_list(loops) - 1;

    while (loops[i]->by_formula && !table->formula.holds) /* plain C never is */
        i--;
    return loops[i];
}

void co_lookup(float *out, const uint8_t *in, size_t n, const co_lookup_table *table)
{
    lookup_choose(table)->look(out, in, n, table);
}

void co_lookup_stream(float *out, const uint8_t *in, size_t n, const co_lookup_table *table)
{
    lookup_choose(table)->stream(out, in, n, table);
}

void co_lookup_fence(void)
{
#ifdef CO_IMAGE_X86
    __builtin_ia32_sfence();
#endif
}
