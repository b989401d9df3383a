/* fuzz_tar.c - the reader of tar files and of the samples in them over any bytes, and over the same
   bytes with the headers' checksums made right, which a fuzzer cannot guess. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "data/tar_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct fuzz_bytes {
    const uint8_t *at;
    size_t size;
} fuzz_bytes;

static co_status fuzz_read(void *arg, uint8_t *out, uint64_t offset, size_t n)
{
    const fuzz_bytes *bytes = arg;

    if (offset > bytes->size || n > bytes->size - offset)
        abort();
    memcpy(out, bytes->at + offset, n);
    return CO_OK;
}

/* An index of samples that were accepted must be one itself. */
static void fuzz_check(const uint8_t *data, size_t size)
{
    static const uint8_t tag[CO_SHARD_TAG];
    fuzz_bytes bytes = {data, size};
    const co_tar_source source = {fuzz_read, &bytes, size, "input"};
    co_shard_builder builder = {0};
    co_shard_index index;
    uint8_t *made;
    size_t n;

    if (co_shard_builder_shard(&builder, "input.tar", size, tag) == CO_OK &&
        co_tar_walk(&builder, &source, 0, "label", true) == CO_OK && builder.samples > 0 &&
        co_shard_builder_finish(&made, &n, &builder, builder.labels, NULL, true) == CO_OK) {
        if (co_shard_index_parse(&index, made, n, "made") != CO_OK)
            abort();
        co_shard_index_free(&index);
        co_free(made);
    }
    co_shard_builder_free(&builder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *right;

    fuzz_check(data, size);
    right = malloc(size ? size : 1);
    if (!right)
        return 0;
    memcpy(right, data, size);
    for (size_t at = 0; at + CO_TAR_BLOCK <= size; at += CO_TAR_BLOCK) {
        unsigned sum = 0;
        char text[8];

        if (!right[at])
            continue;
        memset(right + at + 148, ' ', 8);
        for (size_t i = 0; i < CO_TAR_BLOCK; i++)
            sum += right[at + i];
        snprintf(text, sizeof(text), "%06o", sum);
        memcpy(right + at + 148, text, 7);
    }
    fuzz_check(right, size);
    free(right);
    return 0;
}
