/* fuzz_shard_index.c - the reader of an index of shards over any bytes, and over the same bytes
   with sizes and checksums made right, which a fuzzer cannot guess. */
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "data/shard_index.h"
#include "data/shard_layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_check(const uint8_t *data, size_t size)
{
    co_shard_index index;

    if (co_shard_index_parse(&index, data, size, "input") == CO_OK)
        for (uint64_t i = 0; i < index.samples; i++) {
            const co_shard_entry e = co_shard_index_entry(&index, i);
            const char *name = co_shard_index_name(&index, i);

            if (e.label >= index.classes || e.shard >= index.shards ||
                e.offset > co_shard_index_shard_size(&index, e.shard) ||
                (name && strlen(name) > size) || (name == NULL) != index.records.packed ||
                strchr(index.shard_name[e.shard], '/'))
                abort();
        }
    co_shard_index_free(&index);
}

static void fuzz_put(uint8_t *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static void fuzz_repair(uint8_t *bytes, size_t size, uint32_t version)
{
    memcpy(bytes, SHARD_MAGIC, 8);
    fuzz_put(bytes + SHARD_AT_VERSION, version, 4);
    fuzz_put(bytes + SHARD_AT_SIZE, size, 8);
    fuzz_put(bytes + SHARD_AT_CHECK,
             libdeflate_crc32(0, bytes + CO_SHARD_HEAD, size - CO_SHARD_HEAD), 4);
    fuzz_put(bytes + SHARD_AT_HEAD_CHECK, libdeflate_crc32(0, bytes, SHARD_AT_HEAD_CHECK), 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *right;

    fuzz_check(data, size);
    if (size < CO_SHARD_HEAD)
        return 0;
    right = malloc(size);
    if (!right)
        return 0;
    memcpy(right, data, size);
    fuzz_repair(right, size, SHARD_VERSION);
    fuzz_check(right, size);
    fuzz_repair(right, size, SHARD_OF_PACKS);
    fuzz_check(right, size);
    free(right);
    return 0;
}
