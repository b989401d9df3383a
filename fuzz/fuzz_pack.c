/*
 * fuzz_pack.c - the reader of packed files over any bytes, and over the same bytes with checksums
 * made right, which a fuzzer cannot guess.
 *
 * Records of a file that it accepts must lie inside it and have labels below the classes.
 */
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "data/pack_format.h"
#include "data/pack_layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_check(const uint8_t *data, size_t size)
{
    co_pack pack;

    if (co_pack_parse(&pack, data, size, "input") != CO_OK)
        return;
    for (int split = 0; split < CO_PACK_SPLITS; split++)
        for (uint64_t i = 0; i < pack.head.count[split]; i++) {
            const co_pack_entry entry = co_pack_entry_at(&pack, (co_split)split, i);
            co_bytes record;

            if (entry.label >= pack.head.classes || entry.size > size ||
                entry.offset > size - entry.size)
                abort();
            (void)co_pack_record(&record, &pack, (co_split)split, i);
        }
    for (uint32_t c = 0; pack.class_name && c < pack.head.classes; c++)
        if (strlen(pack.class_name[c]) > size)
            abort();
    co_pack_close(&pack);
}

static void fuzz_put(uint8_t *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *right;
    uint64_t index = 0;

    fuzz_check(data, size);
    if (size < PACK_HEAD)
        return 0;
    right = malloc(size);
    if (!right)
        return 0;
    memcpy(right, data, size);
    memcpy(right, PACK_MAGIC, 8);
    fuzz_put(right + PACK_VERSION, CO_PACK_VERSION, 4);
    fuzz_put(right + PACK_SIZE, size, 8);
    for (int i = 0; i < 8; i++)
        index |= (uint64_t)right[PACK_INDEX + i] << 8 * i;
    if (index <= size)
        fuzz_put(right + PACK_INDEX_CHECK, libdeflate_crc32(0, right + index, size - index), 4);
    fuzz_put(right + PACK_HEAD_CHECK, libdeflate_crc32(0, right, PACK_HEAD_CHECK), 4);
    fuzz_check(right, size);
    free(right);
    return 0;
}
